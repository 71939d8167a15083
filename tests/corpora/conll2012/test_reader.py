import gzip
import logging
import re

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

from . import INSTANCE, document, rows, write


def error_of(path, read=read_sentences):
    with pytest.raises(ValueError) as error:
        list(read(path))
    return str(error.value).removeprefix(f"{path.parent}/")


def test_one_sentence_field_by_field(tmp_path):
    path = write(tmp_path, INSTANCE)
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
        Document("tc/talk/0001", 3, begin_line, (of_document,), str(path)),
    ]


def test_sentences_are_read_without_document_lines(tmp_path):
    path = write(tmp_path, f"# a comment\n\n\n{rows('(V*)')}\n\n{rows('(V*)')}")
    assert [sentence.location[-2:] for sentence in read_sentences(path)] == [":4", ":7"]


def test_unlabelled_input_has_no_frames(tmp_path):
    path = write(tmp_path, "doc 0 0 Hello UH * - - - - * -\ndoc 0 1 ! . * - - - - - -\n")
    (sentence,) = read_sentences(path)
    assert sentence.words == ("Hello", "!")
    assert sentence.frames == ()


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
    assert documents[1].path == str(tmp_path / "bc/01/a.v9_gold_conll")
    # An error names the file.
    (tmp_path / "nw/b.v4_gold_conll").write_text(INSTANCE.replace("(1|(2)", "(1|2)"))
    with pytest.raises(ValueError, match="nw/b.v4_gold_conll:2: expected an open coreference"):
        list(read_documents(tmp_path))


def test_a_folder_without_such_files_is_refused(tmp_path):
    (tmp_path / "a.v4_gold_skel").write_text(INSTANCE)
    for read in (read_sentences, read_documents):
        with pytest.raises(ValueError, match=f"{tmp_path}: expected files .gold_conll in this"):
            list(read(tmp_path))


@pytest.mark.parametrize("read", [read_sentences, read_documents])
def test_a_skeleton_is_refused(tmp_path, read):
    skeleton = re.sub(r"(?m)^(\S+ \d+ \d+) \S+", r"\1 [WORD]", INSTANCE)
    path = write(tmp_path, INSTANCE + skeleton)
    with pytest.raises(ValueError, match=r"dev.gold_conll:10: .*\[WORD\].*skeleton2conll.sh"):
        list(read(path))
    # One such word is a word.
    assert list(read(write(tmp_path, INSTANCE.replace(" Mary ", " [WORD] "))))


def test_line_endings_and_blanks_do_not_matter(tmp_path):
    def sentences(text):
        return [document.sentences for document in read_documents(write(tmp_path, text))]

    plain = sentences(INSTANCE)
    changed = "\ufeff" + INSTANCE.replace("\n", "  \t\r\n").replace(" NNP ", "\t  NNP ")
    assert sentences(changed) == plain
    assert sentences(INSTANCE.rstrip("\n")) == plain


def test_a_word_may_hold_any_character_but_a_blank(tmp_path):
    word = "1\u00a0000\u2028\x00(*#"
    path = write(tmp_path, f"doc 0 0 {word} CD * - - - - * -\n")
    assert next(read_sentences(path)).words == (word,)


def test_adjacent_spans_of_one_label_stay_apart(tmp_path):
    path = write(tmp_path, rows("(ARG1*) (ARG1* *) (V*)"))
    (sentence,) = read_sentences(path)
    assert sentence.frames[0].tags == ("B-ARG1", "B-ARG1", "I-ARG1", "B-V")


@pytest.mark.parametrize("columns, index", [(("* * *",), 0), (("* (V*) *", "* * *"), 2)])
def test_a_column_without_v_belongs_to_the_row_with_its_frameset(tmp_path, columns, index):
    path = write(tmp_path, rows(*columns, framesets="01 - 02"))
    frame = next(read_sentences(path)).frames[-1]
    assert (frame.predicate_index, frame.tags) == (index, ("O", "O", "O"))


def test_of_nested_arguments_the_outer_one_is_kept_with_a_warning(tmp_path, caplog):
    path = write(tmp_path, "\n" + rows("(ARG1* (ARG2* *)) (V*)"))
    with caplog.at_level(logging.WARNING):
        (sentence,) = read_sentences(path)
    assert sentence.frames[0].tags == ("B-ARG1", "I-ARG1", "I-ARG1", "B-V")
    assert caplog.messages == [
        f"{path}:3: the argument ARG2 lies inside another one and is left out"
    ]


def test_a_predicate_inside_an_argument_is_still_found(tmp_path):
    path = write(tmp_path, rows("(ARG1* (V*) *)"))
    assert next(read_sentences(path)).frames[0].predicate_index == 1


def test_the_last_opened_mention_of_a_cluster_closes_first(tmp_path):
    path = write(tmp_path, document(rows(coreference="(3|(5 (3 3)|(3) 5)|3)")))
    assert next(read_documents(path)).sentences[0].mentions == (
        Mention(3, 0, 3),
        Mention(5, 0, 3),
        Mention(3, 1, 2),
        Mention(3, 2, 2),
    )


def test_too_few_columns(tmp_path):
    path = write(tmp_path, rows("(V*)") + "doc 0 1 w NN * - - -\n")
    assert error_of(path) == (
        "dev.gold_conll:2: expected at least 12 columns, found 9. Complete the line; columns are "
        "separated by spaces or tabs."
    )


@pytest.mark.parametrize("other, found", [(rows("*", "*"), 14), (rows(coreference="-"), 12)])
def test_rows_of_different_width(tmp_path, other, found):
    path = write(tmp_path, rows("(V*)") + other)
    assert error_of(path) == (
        f"dev.gold_conll:2: expected 13 columns as in the first line of the sentence, found {found}"
        ". Correct the line, or separate sentences by an empty line."
    )


@pytest.mark.parametrize(
    "read, sentence, kind, column, cell",
    [
        (read_sentences, rows("(V*) *)"), "argument", 12, "*)"),
        (read_sentences, rows("(V*) (ARG1*))"), "argument", 12, "(ARG1*))"),
        (read_documents, rows("(V*) *", coreference="(3) 3)"), "coreference", 13, "3)"),
        (read_documents, rows("(V*) *", coreference="(3 (3)|4)"), "coreference", 13, "4)"),
    ],
)
def test_a_closing_bracket_that_was_not_opened_names_its_line(
    tmp_path, read, sentence, kind, column, cell
):
    assert error_of(write(tmp_path, document(sentence)), read) == (
        f"dev.gold_conll:3: expected an open {kind} bracket in column {column} for {cell} to "
        "close, found none. Open it in the same sentence or delete it."
    )


@pytest.mark.parametrize(
    "read, sentence, kind, column, label",
    [
        (read_sentences, rows("(V*) (ARG1* *"), "argument", 12, "ARG1"),
        (read_documents, rows("(V*) * *", coreference="(2) (2 -"), "coreference", 13, "2"),
    ],
)
def test_a_bracket_left_open_names_the_line_that_opened_it(
    tmp_path, read, sentence, kind, column, label
):
    path = write(tmp_path, document(sentence + "\n" + rows("(V*) *)")))
    assert error_of(path, read) == (
        f"dev.gold_conll:3: expected the {kind} bracket ({label} of column {column} to close "
        "within its sentence, found the end of the sentence at line 4. Close it or delete it."
    )


@pytest.mark.parametrize("cell", ["ARG0*", "(*", "*(ARG0", "(ARG0*)x", "**"])
def test_a_malformed_bracket_cell(tmp_path, cell):
    assert error_of(write(tmp_path, rows(f"(V*) {cell}"))) == (
        "dev.gold_conll:2: expected an argument bracket such as (LABEL*, * or *) in column 12, "
        f"found {cell}"
    )


@pytest.mark.parametrize("cell", ["3", "(x)", "(3)|", "(3|-", "((3)", "*"])
def test_a_malformed_coreference_cell(tmp_path, cell):
    path = write(tmp_path, document(rows(coreference=f"- {cell}")))
    assert error_of(path, read_documents) == (
        "dev.gold_conll:3: expected coreference such as (3, 3), (3) or (3|5) in the last column, "
        f"found {cell}. Write a dash if there is none."
    )


def test_a_predicate_column_without_predicate(tmp_path):
    path = write(tmp_path, rows("(V*) *", "(ARG0*) *", framesets="01 -"))
    assert error_of(path) == (
        "dev.gold_conll:1: expected (V*) in column 13 or a frameset in column 8 for predicate 2, "
        "found neither. Mark the predicate, or remove the column."
    )


@pytest.mark.parametrize("text", ["", "\n\n", "# a comment\n"])
@pytest.mark.parametrize("read", [read_sentences, read_documents])
def test_a_file_without_sentences(tmp_path, text, read):
    assert error_of(write(tmp_path, text), read) == (
        "dev.gold_conll: expected one word per line, found no words. Name another file, "
        "or write sentences to this one."
    )


def test_a_mention_that_crosses_the_end_of_its_sentence(tmp_path):
    first, second = rows(coreference="- (4 -"), rows(coreference="4) -")
    path = write(tmp_path, document(f"{first}\n{second}"))
    assert error_of(path, read_documents).startswith(
        "dev.gold_conll:3: expected the coreference bracket (4 of column 12 to close within its "
    )


def test_bytes_that_are_not_utf8_are_named(tmp_path):
    path = write(tmp_path, rows("(V*)").encode() + b"\ndoc 0 0 caf\xe9 NN\n")
    assert error_of(path).startswith("dev.gold_conll:3: expected UTF-8 text, found the byte 0xe9")
