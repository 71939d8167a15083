"""CoNLL-2012: propositions and coreference, as read and as written for their scorers."""

import gzip
from pathlib import Path

import pytest

from elmo_plugin.corpora.conll2012 import (
    Document,
    DocumentSentence,
    Frame,
    Mention,
    Sentence,
    read_documents,
    read_sentences,
)

ROOT = Path(__file__).parents[2]
CORPORA = ROOT / "fixtures/corpora"
INSTANCE = """\
#begin document (tc/talk/0001); part 003
tc/talk/0001 3 0 Mary NNP (TOP(S(NP* - - - Ann (PERSON) (ARG0* * (1|(2)
tc/talk/0001 3 1 Stone NNP *) - - - Ann * *) (ARG0*) 1)
tc/talk/0001 3 2 gave VBD (VP* give 01 4 Ann * (V* * -
tc/talk/0001 3 3 up RP *)) - - - Ann * *) * -
tc/talk/0001 3 4 running VBG *)) run 02 - - (DATE*) (ARG1*) (V*) (2)

#end document
"""
LITBANK = """\
#begin document (9_a_tale_brat); part 0
9_a_tale_brat\t0\t0\tHer\t_\t_\t_\t_\t_\t_\t_\t_\t(1|(0)
9_a_tale_brat\t0\t1\tlamp\t_\t_\t_\t_\t_\t_\t_\t_\t1)
9_a_tale_brat\t0\t2\t_\t_\t_\t_\t_\t_\t_\t_\t_\t

#end document
"""


def rows(*columns, coreference=None, framesets=None):
    """A sentence with the given predicate columns, each a string of cells."""
    cells = [column.split() for column in columns]
    num_tokens = len((cells or [coreference.split()])[0])
    coreference = (coreference or "- " * num_tokens).split()
    framesets = (framesets or "- " * num_tokens).split()
    return "".join(
        " ".join(
            ["doc", "0", str(row), f"w{row}", "NN", "*", "-", framesets[row], "-", "-"]
            + ["*", *(column[row] for column in cells), coreference[row]]
        )
        + "\n"
        for row in range(num_tokens)
    )


def mentions_of(path):
    (document,) = read_documents(path)
    return [sentence.mentions for sentence in document.sentences]


def test_one_sentence_field_by_field(write):
    path = write(INSTANCE)
    sentence = Sentence(
        location=f"{path}:2",
        words=("Mary", "Stone", "gave", "up", "running"),
        lemmas=(None, None, "give", None, "run"),
        framesets=(None, None, "01", None, "02"),
        frames=(
            Frame(2, "give", ("B-ARG0", "I-ARG0", "B-V", "I-V", "B-ARG1")),
            Frame(4, "run", ("O", "B-ARG0", "O", "O", "B-V")),
        ),
    )
    assert list(read_sentences(path)) == [sentence]
    speakers = ("Ann", "Ann", "Ann", "Ann", None)
    mentions = (Mention(2, 0, 0), Mention(1, 0, 1), Mention(2, 4, 4))
    of_document = DocumentSentence(2, sentence.words, speakers, mentions)
    begin_line = "#begin document (tc/talk/0001); part 003"
    assert list(read_documents(path)) == [
        Document("tc/talk/0001", 3, begin_line, (of_document,)),
    ]


def test_sentences_are_read_without_document_lines_and_without_frames(write):
    path = write(f"# a comment\n\n\n{rows('(V*)')}\n\n{rows(coreference='- -')}")
    sentences = list(read_sentences(path))
    assert [sentence.location[-2:] for sentence in sentences] == [":4", ":7"]
    assert [len(sentence.frames) for sentence in sentences] == [1, 0]


def test_a_folder_is_read_in_the_order_of_its_paths(tmp_path):
    """As of OntoNotes: `nw/wsj/00/wsj_0001.v4_gold_conll` beside files of other annotations."""
    for name in ("nw/b.v4_gold_conll", "bc/01/a.v9_gold_conll", "a.gold_conll", "z.gold_conll.gz"):
        text = INSTANCE.replace("Mary", name.replace("/", "|")).encode()
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    for name in ("nw/b.v4_auto_conll", "nw/b.v4_gold_skel", "nw/b.onf", ".gold_conll"):
        (tmp_path / name).write_text("another format")
    (tmp_path / "nw/loop").symlink_to(tmp_path)
    expected = ["a.gold_conll", "bc|01|a.v9_gold_conll", "nw|b.v4_gold_conll", "z.gold_conll.gz"]
    assert [sentence.words[0] for sentence in read_sentences(tmp_path)] == expected
    documents = list(read_documents(tmp_path))
    assert [document.sentences[0].words[0] for document in documents] == expected
    # An error names the file.
    (tmp_path / "nw/b.v4_gold_conll").write_text(INSTANCE.replace("(1|(2)", "(1|2)"))
    with pytest.raises(ValueError, match="nw/b.v4_gold_conll:2: expected an open bracket"):
        list(read_documents(tmp_path))
    with pytest.raises(ValueError, match=f"{ROOT / 'docs'}: expected files .gold_conll in this"):
        list(read_documents(ROOT / "docs"))


def test_a_word_may_hold_any_character_but_a_blank(write):
    for word in ("1\u00a0000\u2028\x00(*#", "[WORD]"):
        path = write(rows("(V*) *").replace(" w0 ", f" \t {word} "))
        assert next(read_sentences(path)).words == (word, "w1")


@pytest.mark.parametrize(
    "columns, framesets, index, tags",
    [
        # Adjacent spans of one label stay apart.
        (["(ARG1*) (ARG1* *) (V*)"], None, 3, "B-ARG1 B-ARG1 I-ARG1 B-V"),
        # Without (V*), a column belongs to the row with its frameset.
        (["* * *"], "01 - 02", 0, "O O O"),
        (["* (V*) *", "* * *"], "01 - 02", 2, "O O O"),
        (["(ARG1* (V*) *)"], None, 1, "B-ARG1 I-ARG1 I-ARG1"),
    ],
)
def test_arguments_become_tags_of_a_predicate(write, columns, framesets, index, tags):
    frame = next(read_sentences(write(rows(*columns, framesets=framesets)))).frames[-1]
    assert (frame.predicate_index, frame.tags) == (index, tuple(tags.split()))


def test_of_nested_arguments_the_outer_one_is_kept_with_a_warning(write, caplog):
    path = write("\n" + rows("(ARG1* (ARG2* *)) (V*)"))
    (sentence,) = read_sentences(path)
    assert sentence.frames[0].tags == ("B-ARG1", "I-ARG1", "I-ARG1", "B-V")
    assert caplog.messages == [
        f"{path}:3: the argument ARG2 lies inside another one and is left out"
    ]


@pytest.mark.parametrize(
    "coreference, mentions",
    [
        # The mention of a cluster that was opened last closes first.
        ("(3|(5 (3 3)|(3) 5)|3)", [(3, 0, 3), (5, 0, 3), (3, 1, 2), (3, 2, 2)]),
        # In the order in which the scorer meets them.
        ("(7|(5|(9) 5)|7) -", [(9, 0, 0), (7, 0, 1), (5, 0, 1)]),
    ],
)
def test_brackets_of_clusters_become_mentions(write, coreference, mentions):
    path = write(f"#begin document (a); part 0\n{rows(coreference=coreference)}#end document")
    assert mentions_of(path) == [tuple(Mention(*mention) for mention in mentions)]


def test_a_document_has_several_parts_and_its_first_line_is_kept(write):
    part = rows("(V*)")
    lines = {
        "#begin document (a (b)); part 000": ("a (b)", 0),
        "#begin document (a (b)); part 0012": ("a (b)", 12),
        "#begin document (b)": ("b", 0),
        " #begin  document\t(c c); part 1 ": ("c c", 1),
    }
    path = write("".join(f"{line}\r\n{part}\n{part}#end document\n" for line in lines))
    documents = list(read_documents(path))
    assert {d.begin_line: (d.document_id, d.part) for d in documents} == lines
    assert [len(document.sentences) for document in documents] == [2] * 4
    assert documents[1].sentences[1].line_number == 9


def test_litbank_is_read_as_it_is_published(write):
    path = write(LITBANK)
    (document,) = read_documents(path)
    (sentence,) = document.sentences
    assert (document.document_id, document.part) == ("9_a_tale_brat", 0)
    assert sentence.words == ("Her", "lamp", "_")
    assert sentence.speakers == (None, None, None)
    assert sentence.mentions == (Mention(0, 0, 0), Mention(1, 0, 1))
    with pytest.raises(ValueError, match="x.txt:4: expected 13 columns"):
        list(read_sentences(path))


@pytest.mark.parametrize(
    "change", [(" (ARG1*) ", " (ARG1* "), (" (PERSON) ", " _ "), (" 3 ", " x ")]
)
def test_documents_need_no_other_columns(write, change):
    expected = mentions_of(write(INSTANCE))
    assert mentions_of(write(INSTANCE.replace(*change))) == expected
