"""What every reader of a corpus does: compression, marks, line ends, and refusals with a place."""

import gzip
import json

import pytest

from elmo_plugin.corpora import conll2003, conll2012, snli, squad, sst, tagged_words
from elmo_plugin.corpora.json_lines import parse_object, read_objects
from elmo_plugin.corpora.minimal_pairs import read_minimal_pairs
from elmo_plugin.corpora.records import read_labelled_texts
from elmo_plugin.corpora.word_senses import SenseCorpus, read_first_senses

CONLL2012 = """\
#begin document (tc/talk/0001); part 003
tc/talk/0001 3 0 Mary NNP (TOP(S(NP* - - - Ann (PERSON) (ARG0* (1)
tc/talk/0001 3 1 gave VBD (VP* give 01 4 Ann * (V*)) -

#end document
"""
PAIR = {"gold_label": "neutral", "sentence1": "A dog runs.", "sentence2": "It's late."}
SENSES = {
    "id": "tales.d000.s000",
    "tokens": ["Ice", "melts", "."],
    "lemmas": ["ice", "melt", "."],
    "pos": ["NOUN", "VERB", "PUNCT"],
    "senses": ["ice%1:27:00::", "melt%2:30:00::", None],
}
OWLS = {"sentence_good": "The owls sleep.", "sentence_bad": "The owls sleeps."}
CONTEXT = "Zoë runs a café. Her café opens at six."
ANSWER = {"text": "a café", "answer_start": 9}
QUESTION = {"id": "q2", "question": "What does Zoë run?", "answers": [ANSWER]}


def squad_file(**changes):
    """A file whose second question is changed; `None` stands for no such field."""
    question = {k: v for k, v in {**QUESTION, **changes}.items() if v is not None}
    first = {**QUESTION, "id": "q1"}
    paragraph = {"context": CONTEXT, "qas": [first, question]}
    return {"data": [{"title": "Cafés", "paragraphs": [paragraph]}]}


def labelled(suffix):
    """Reads a file under a name that says its format."""

    def read(path):
        return read_labelled_texts(path.rename(path.with_suffix(suffix)), ["a", "b"], "label")

    return read


READERS = {
    "csv": (labelled(".csv"), 'id,a,b,label\n1,"Say ""hi"",\nAda","x",1\n\n2,c,d,zwei\n'),
    "tsv": (labelled(".tsv"), 'b\ta\tlabel\n"x ""y"""\tz\t1\n'),
    "jsonl": (labelled(".jsonl"), '{"a": "x", "b": "y", "label": 1}\n'),
    "words in csv": (
        lambda path: conll2003.read_sentences(path.rename(path.with_suffix(".csv"))),
        'Ada,B-PER\n",",O\n,\nShe,O\n',
    ),
    "documents": (conll2012.read_documents, CONLL2012),
    "propositions": (conll2012.read_sentences, CONLL2012),
    "conll2003": (conll2003.read_sentences, "Ada NNP I-PER\nleft VBD O\n\nShe PRP O\n"),
    "columns": (lambda path: tagged_words.read_tag_columns(path, 1, 2), "Ada NNP\nleft VBD\n"),
    "conllu": (tagged_words.read_conllu, "# x\n1\tAda\t_\tPROPN\t_\t_\t0\troot\t_\t_\n"),
    "sst": (sst.read_trees, "(3 (2 A) (4 triumph))\n"),
    "objects": (read_objects, '{"a": 1}\n\n{"b": "x\u2028y"}\n'),
    "snli": (snli.read_pairs, json.dumps(PAIR) + "\n"),
    "squad": (squad.read_paragraphs, json.dumps(squad_file())),
    "pairs": (read_minimal_pairs, json.dumps(OWLS) + "\n"),
    "senses": (SenseCorpus, json.dumps(SENSES) + "\n"),
    "first senses": (lambda path: read_first_senses(path).items(), "Owl\tNOUN\towl%1:05:00::\n"),
}


@pytest.fixture
def read(write):
    return lambda name, content: list(READERS[name][0](write(content)))


@pytest.mark.parametrize("name", READERS)
def test_compression_mark_and_line_ends_do_not_matter(read, name):
    text = READERS[name][1]
    expected = read(name, text)
    assert expected
    assert read(name, gzip.compress(text.encode())) == expected
    assert read(name, "\ufeff" + text.replace("\n", "\r\n").rstrip("\r\n")) == expected


@pytest.mark.parametrize("name", [name for name in READERS if name != "first senses"])
@pytest.mark.parametrize("text", ["", "\n \n"])
def test_an_empty_file_is_refused(read, name, text):
    with pytest.raises(ValueError, match=r"x\.\w+: expected .*, found "):
        read(name, text)


@pytest.mark.parametrize("name", READERS)
def test_bytes_that_are_no_text_are_named_with_their_line(read, name):
    text = READERS[name][1].encode()
    with pytest.raises(ValueError, match=r"x\.\w+:\d+: expected UTF-8 text, found the byte 0xe9"):
        read(name, text + b"\n\xe9\n")


def snli_line(**changes):
    return json.dumps(PAIR) + "\n\n" + json.dumps({**PAIR, **changes})


def senses(**changes):
    return json.dumps(SENSES) + "\n" + json.dumps({**SENSES, **changes})


def owls(**changes):
    return json.dumps(OWLS) + "\n" + json.dumps({**OWLS, **changes})


Q2 = r': article 1 "Cafés", paragraph 1, question q2: '
BLANK = "1\tA\t_\t_\t_\t_\t0\troot\t_\t_\n"
ROW = "doc 0 0 w NN * - - - - * {} -\n"
# By reader: a file, and what the error says after its name.
MALFORMED = {
    "csv": [
        ("a,b\n", ": expected rows below a row with the names of the columns, found none"),
        ("a;b\n1;2\n", ":2: expected the column 'a', found a;b. The settings name the columns"),
        ("a,c,label\n1,2,3\n", ":2: expected the column 'b', found a, c, label"),
        ('a,b\n"1\n2",3\n4\n', ":4: expected 2 cells, as in the first row, found 1"),
        ("a,b,label\n1,2,x\n3,4, \n", ":3: expected a label in 'label', .* Label all rows"),
        ('a,b\n1,"2" 3\n', ":2: expected cells of Python's csv, found .* Write a cell with"),
        ('a,b\n1,2\n\n"3,4\n5,6\n', ":4: expected cells of Python's csv, found unexpected end"),
    ],
    "tsv": [
        # Written without quoting: Python's csv would make one cell of three.
        ('a\tb\n"Yes\t1\nhe said"\t2\n', ":2: expected cells with quotes as of Python's csv"),
    ],
    "jsonl": [
        ('{"a": "x", "b": 3}\n', """:1: expected a text in 'b', found {"b": 3}"""),
        ('{"a": "x"}\n', ":1: expected the column 'b', found a"),
        ('{"a": "x", "b": "y", "label": ["z"]}', ":1: expected a label in 'label', found"),
        ('{"a": "x", "b": "y"}\n{"a": "x", "b": "y", "label": "z"}', ":2: expected no label in"),
    ],
    "conll2003": [
        ("a O\nb I\n", ":2: expected a tag such as O, B-PER or I-PER in column 2, found 'I'"),
        ("a O\n\nb X-PER\n", ":3: .* found 'X-PER'"),
        ("a N O\n\nb N O\nc O\n", ":4: expected 3 columns, found 2. Columns are"),
        ("a\nb O\n", ":2: expected 1 columns, found 2"),
        ("-DOCSTART- O\n\n", ": expected one word per line, found no words"),
    ],
    "columns": [
        ("owls\n", ":1: expected at least 2 columns, found 1"),
    ],
    "conllu": [
        (f"{BLANK}", ":1: expected a value of `upos`, found none. Choose another column"),
        ("# x\n2 C NOUN\n", ":2: expected the number of a word and nine other columns"),
        (BLANK.replace("1", "one"), ":1: expected the number of a word .* found 'one A"),
        ("# only a comment\n", ": expected one word per line, found no words"),
    ],
    "propositions": [
        (ROW.format("x)"), r":1: expected brackets such as \(LABEL\*, .* column 12.*'x\)'"),
        (ROW.format("(*"), ":1: expected brackets such as"),
        (ROW.format("*)"), r":1: expected an open bracket for \*\) in column 12 to close"),
        (
            ROW.format("(V*)") + ROW.format("(ARG1*") + "\n" + ROW.format("*)"),
            r":2: expected the bracket \(ARG1 of column 12 to close within .* found the end of the",
        ),
        (ROW.format("*"), r":1: expected \(V\*\) in column 12 or a frameset in column 8"),
        (ROW.format("(V*)") + "a b\n", ":2: expected at least 12 columns, found 2"),
        (ROW.format("(V*)") + ROW.format("* *"), ":2: expected 13 columns, found 14"),
        (
            CONLL2012 + CONLL2012.replace("Mary", "[WORD]").replace("gave", "[WORD]"),
            r":7: .*\[WORD\].*skeleton2conll.sh",
        ),
    ],
    "documents": [
        (CONLL2012.replace("(1)", "1)"), r":2: expected an open bracket for 1\) in column 13"),
        (CONLL2012.replace("(1)", "(1"), r":2: expected the bracket \(1 of column 13 to close"),
        (CONLL2012.replace(" (1)", ""), r":2: expected brackets such as \(3, 3\), .*'\(ARG0\*'"),
        *(
            (CONLL2012.replace("(1)", cell), ":2: expected brackets such as .* in column 13")
            for cell in ("3", "(x)", "(3|-")
        ),
        (CONLL2012[:-15], ":1: expected #end document .*, found the end of the file. Was it"),
        (CONLL2012[:-15] + CONLL2012, ":4: expected #end document first, found #begin"),
        ("\n" + ROW.format("*"), r":2: expected #begin document \(ID\).* first, found a sentence"),
        ("#end document\n" + CONLL2012, ":1: expected #begin .* first, found #end document"),
        (CONLL2012.replace("(tc/talk/0001)", "a"), ":1: .* found #begin document a; .* brackets"),
        (CONLL2012.replace("(tc", "(#tc"), r":1: expected #begin .* found #begin document \(#tc"),
        (CONLL2012 + "#begin document (b)\n#end document", ":7: expected a sentence in the doc"),
    ],
    "objects": [
        ('{"a": 1}\n[1]\n', r":2: expected a JSON object, found '\[1\]'"),
        ('{"a": 1}\n{"a": 1\n', """:2: expected a JSON object, found '{"a": 1' .*cut off"""),
        ('{"a": 1}\n{"a": 1} {"b": 2}\n', ":2: expected a JSON object"),
        (
            '{"a": ["\\ud83d"]}',
            r":1: expected text, found the lone surrogate .ud83d. It is half",
        ),
        ('{"a": ' + "[" * 200_000, ":1: expected a JSON object"),
    ],
    "snli": [
        (
            snli_line(gold_label="entails"),
            ':3: expected "gold_label" to be entailment, .*"entails"',
        ),
        (snli_line(gold_label=None), ':3: expected "gold_label" .* null.* Label all pairs'),
        (snli_line(gold_label=["neutral"]), ':3: expected "gold_label"'),
        (
            '{"sentence1": "A", "sentence2": "B"}\n' + snli_line(),
            ':2: expected no "gold_label", found',
        ),
        (snli_line(sentence2=None), ':3: expected "sentence2" with a sentence, .*, found null'),
        ('{"gold_label": "neutral"}', ':1: expected "sentence1" .*found {"gold_label": "neutral"}'),
        (
            {**PAIR, "gold_label": "-"},
            ': expected pairs with a label, found "gold_label": "-" in all 1',
        ),
    ],
    "pairs": [
        (owls(sentence_bad=None), ':2: expected "sentence_bad" with a string, as in'),
        (owls(sentence_good=" "), ":2: expected two sentences that differ"),
        (owls(sentence_bad=OWLS["sentence_good"]), ":2: expected two sentences that differ"),
        (owls(UID=3), ':2: expected "UID" with a string, .* found 3'),
    ],
    "senses": [
        (senses(id=3), ':2: expected "id" with a string, found 3'),
        (senses(pos="NOUN"), ':2: expected "pos" with a list, found "NOUN"'),
        (
            senses(senses=[None]),
            r':2: expected "senses" with 3 strings, one per token, found \[null',
        ),
        (senses(lemmas=["a", None, "."]), ':2: expected "lemmas" with 3 strings'),
        ({**SENSES, "senses": [None] * 3}, ": expected words with senses, found none"),
    ],
    "first senses": [
        ("a\tVERB\tb\nplay VERB b\n", ":2: expected lemma, .* found 1 cells"),
    ],
    "squad": [
        ("Tea is hot.\n", ": expected a JSON object like .*'Tea is hot.'.*another format"),
        (json.dumps(squad_file())[:-9], ": expected a JSON object like .*cut off"),
        ([squad_file()], ": expected a JSON object like"),
        ({"version": "1.1"}, ': expected "data" with a list, as in .*, found {"version": "1.1"}'),
        ({"data": {}}, ': expected "data" with a list, .* found {}'),
        ({"data": []}, ": expected at least one question, as in .*, found none"),
        ({"data": ["Tea"]}, ': article 1: expected "paragraphs" with a list, .*found "Tea"'),
        ({"data": [{"title": "Tea"}]}, ': article 1 "Tea": expected "paragraphs"'),
        (
            {"data": [{"paragraphs": [{"context": "\n", "qas": []}]}]},
            ': article 1, paragraph 1: expected "context" with some text',
        ),
        (squad_file(question=""), f"{Q2}expected \"question\" with some text, found ''"),
        (squad_file(question=None), f'{Q2}expected "question" with a string, .*found {{"id"'),
        (squad_file(question="Who\ud83d?"), ": expected text, found the lone surrogate"),
        (squad_file(answers="a café"), f'{Q2}expected "answers" with a list'),
        (squad_file(id=2), '.*, question 2: expected "id" with a string, .*found 2'),
        (squad_file(id="q1"), '.*, question q1: expected a unique "id"'),
        (squad_file(answers=[]), f"{Q2}expected an answer, as for the questions before, found 0"),
        (
            squad_file(is_impossible=True),
            f"{Q2}expected a question that .*SQuAD 2.0. Use SQuAD 1.1",
        ),
        *(
            (squad_file(answers=[answer]), Q2 + message)
            for answer, message in [
                (
                    {**ANSWER, "answer_start": 8},
                    "expected the answer 'a café' at character 8 .*found ' a caf'",
                ),
                (
                    {"text": "six.", "answer_start": -4},
                    ".*at character -4 of the context, found ''",
                ),
                ({"text": "A café", "answer_start": 9}, ".*found 'a café'"),
                ({"text": " ", "answer_start": 3}, "expected \"text\" with some text, found ' '"),
                ({"text": "a café"}, 'expected "answer_start" with an integer'),
                ({"text": "a café", "answer_start": "9"}, '.* with an integer, .*found "9"'),
                ({"text": "oë", "answer_start": True}, ".* with an integer, .*found true"),
                ({"text": 6, "answer_start": 35}, 'expected "text" with a string, .*found 6'),
                ("a café", 'expected "text" with a string, .*found "a caf'),
            ]
        ),
    ],
    "sst": [
        *(
            (
                f"(2 Fine)\n\n{line}\n",
                f":3:{column}: expected {message}, found .* A tree is one line",
            )
            for line, column, message in [
                ("(3 (2 A) (4 gem)", 17, r"\( or \)"),
                ("(3", 3, r"\( or a word"),
                ("(3 (2 A) (4 gem)))", 18, "the end of the line"),
                ("(5 gem)", 2, "a label from 0 to 4"),
                ("(3 (2 ) (4 gem))", 7, r"\( or a word"),
                ("(3 (2 A gem))", 9, r"\)"),
                ("(3 (2 A) gem)", 10, r"\( or \)"),
                ("A gem .", 1, r"\("),
            ]
        ),
    ],
}


@pytest.mark.parametrize(
    "name, content, message",
    [(name, *case) for name, cases in MALFORMED.items() for case in cases],
)
def test_what_is_malformed_is_named_with_its_place(read, name, content, message):
    with pytest.raises(ValueError, match=f"x\\.\\w+{message}") as error:
        read(name, content)
    assert "\n" not in str(error.value)


def test_half_of_a_character_is_refused_and_a_whole_one_read():
    assert parse_object('{"a": "\\ud83d\\ude00"}', "line 1") == {"a": "\U0001f600"}


def test_the_error_shows_what_a_line_should_be():
    with pytest.raises(ValueError, match=r"line 3: expected a JSON object like \{example\}, found"):
        parse_object("They play.", "line 3", "{example}")
