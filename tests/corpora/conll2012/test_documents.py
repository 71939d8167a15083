"""Documents: only the columns that coreference needs are read."""

import pytest

from elmo_plugin.corpora.conll2012 import Mention, read_documents, read_sentences

from . import INSTANCE, rows, write
from .test_reader import error_of

LITBANK = """\
#begin document (9_a_tale_brat); part 0
9_a_tale_brat\t0\t0\tHer\t_\t_\t_\t_\t_\t_\t_\t_\t(1|(0)
9_a_tale_brat\t0\t1\tlamp\t_\t_\t_\t_\t_\t_\t_\t_\t1)
9_a_tale_brat\t0\t2\t_\t_\t_\t_\t_\t_\t_\t_\t_\t

#end document
"""


def test_a_document_has_several_parts(tmp_path):
    part = rows("(V*)")
    text = "".join(
        f"#begin document (a (b)); part {number}\n{part}\n{part}#end document\n"
        for number in ("000", "001", "0002")
    )
    documents = list(read_documents(write(tmp_path, text)))
    assert [(document.document_id, document.part) for document in documents] == [
        ("a (b)", 0),
        ("a (b)", 1),
        ("a (b)", 2),
    ]
    assert [len(document.sentences) for document in documents] == [2, 2, 2]
    assert documents[1].sentences[1].line_number == 9


def test_the_line_that_begins_a_document_is_kept_as_it_is(tmp_path):
    lines = [
        "#begin document (a); part 0",
        "#begin document (b)",
        " #begin  document\t(c c); part 1 ",
    ]
    text = "".join(f"{line}\r\n{rows('(V*)')}#end document\n" for line in lines)
    documents = list(read_documents(write(tmp_path, text)))
    assert [document.begin_line for document in documents] == lines
    assert [(d.document_id, d.part) for d in documents] == [("a", 0), ("b", 0), ("c c", 1)]


def test_litbank_is_read_as_it_is_published(tmp_path):
    path = write(tmp_path, LITBANK)
    (document,) = read_documents(path)
    (sentence,) = document.sentences
    assert (document.document_id, document.part) == ("9_a_tale_brat", 0)
    assert sentence.words == ("Her", "lamp", "_")
    assert sentence.speakers == (None, None, None)
    assert sentence.mentions == (Mention(0, 0, 0), Mention(1, 0, 1))
    with pytest.raises(ValueError, match="dev.gold_conll:4: expected 13 columns"):
        list(read_sentences(path))


@pytest.mark.parametrize(
    "change, is_read_for_srl",
    [
        ((" (ARG1*) ", " (ARG1* "), True),
        ((" (V* ", " (V* (V* "), True),
        ((" (PERSON) ", " _ "), False),
        (("tc/talk/0001 3 ", "tc/talk/0001 x "), False),
    ],
)
def test_columns_that_are_not_needed_may_hold_anything(tmp_path, change, is_read_for_srl):
    expected = list(read_documents(write(tmp_path, INSTANCE)))
    path = write(tmp_path, INSTANCE.replace(*change))
    assert list(read_documents(path)) == expected
    if is_read_for_srl:
        with pytest.raises(ValueError, match="dev.gold_conll:"):
            list(read_sentences(path))
    else:
        assert len(list(read_sentences(path))) == 1


def test_too_few_columns_or_no_coreference_is_refused(tmp_path):
    text = INSTANCE.replace(" (ARG0*) 1)", "")
    assert error_of(write(tmp_path, text), read_documents).startswith(
        "dev.gold_conll:3: expected coreference such as (3, 3), (3) or (3|5) in the last column"
    )
    text = INSTANCE.replace(" - - (DATE*) (ARG1*) (V*) (2)", "")
    assert error_of(write(tmp_path, text), read_documents) == (
        "dev.gold_conll:6: expected at least 12 columns, found 8. Complete the line; columns are "
        "separated by spaces or tabs."
    )


def test_mentions_come_in_the_order_in_which_the_scorer_meets_them(tmp_path):
    text = (
        "#begin document (a); part 000\n" + rows(coreference="(7|(5|(9) 5)|7) -") + "#end document"
    )
    (document,) = read_documents(write(tmp_path, text))
    assert [mention.cluster_id for mention in document.sentences[0].mentions] == [9, 7, 5]


@pytest.mark.parametrize(
    "text, message",
    [
        (
            "#begin document (a); part 000\n{}",
            "1: expected #end document for the document begun here, found the end of the file. "
            "Add the line after the document's last sentence, or copy the file again if it was cut "
            "off.",
        ),
        (
            "#begin document (a); part 000\n{}#begin document (b); part 000\n{}#end document\n",
            "1: expected #end document for the document begun here, "
            "found #begin document at PATH:3. Add the line after the document's last sentence, or "
            "copy the file again if it was cut off.",
        ),
        (
            "\n{}#end document\n",
            "2: expected a line such as #begin document (ID); part 000 first, found a sentence. "
            "Put the line before the first sentence of each document.",
        ),
        (
            "#end document\n",
            "1: expected a line such as #begin document (ID); part 000 first, found #end document. "
            "Put the line before the first sentence of each document.",
        ),
        (
            "#begin document a\n{}#end document\n",
            "1: expected #begin document (ID); part 000, found #begin document a. Put the name in "
            "brackets, and do not start it with #, which starts a comment.",
        ),
        (
            "#begin document (#a); part 000\n{}#end document\n",
            "1: expected #begin document (ID); part 000, found #begin document (#a); part 000. Put "
            "the name in brackets, and do not start it with #, which starts a comment.",
        ),
        (
            "#begin document (a); part 000\n{}#end document\n"
            "#begin document (b); part 000\n#end document\n",
            "4: expected a sentence in the document begun here, found #end document at line 5. "
            "Delete both lines.",
        ),
    ],
)
def test_document_lines_must_come_in_pairs(tmp_path, text, message):
    path = write(tmp_path, text.replace("{}", rows("(V*)")))
    assert error_of(path, read_documents) == f"dev.gold_conll:{message.replace('PATH', str(path))}"
