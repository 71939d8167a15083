import gzip
import json

import pytest

from elmo_plugin.corpora.word_senses import (
    SenseCorpus,
    SenseInstance,
    SenseSentence,
    read_first_senses,
)

LINE = {
    "id": "tales.d000.s000",
    "tokens": ["Ice_cream", "melts", "."],
    "lemmas": ["Ice_cream", "melt", "."],
    "pos": ["NOUN", "VERB", "PUNCT"],
    "senses": ["ice_cream%1:13:00::", "melt%2:30:00:: melt%2:30:01::", None],
}
SENTENCE = SenseSentence(
    "tales",
    ("Ice_cream", "melts", "."),
    (
        SenseInstance(0, ("ice_cream", "NOUN"), ("ice_cream%1:13:00::",)),
        SenseInstance(1, ("melt", "VERB"), ("melt%2:30:00::", "melt%2:30:01::")),
    ),
)
XML = """<?xml version="1.0" encoding="UTF-8" ?>
<corpus lang="en" source="tales">
<text id="d000">
<sentence id="d000.s000">
<instance id="d000.s000.t000" lemma="ice_cream" pos="NOUN">Ice cream</instance>
<instance id="d000.s000.t001" lemma="melt" pos="VERB">melts</instance>
<wf lemma="." pos=".">.</wf>
</sentence>
<sentence id="d000.s001">
<wf lemma="yes" pos="X">Yes &amp; no</wf>
</sentence>
</text>
</corpus>
"""
KEYS = [
    "d000.s000.t000 ice_cream%1:13:00::",
    "d000.s000.t001 melt%2:30:00:: melt%2:30:01::",
]


def write_json(tmp_path, *lines):
    path = tmp_path / "x.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def write_xml(tmp_path, xml=XML, keys=KEYS):
    (tmp_path / "tales.data.xml").write_text(xml, encoding="utf-8")
    (tmp_path / "tales.gold.key.txt").write_text("\n".join(keys) + "\n", encoding="utf-8")
    return tmp_path / "tales.data.xml"


def test_json_lines_are_read_as_often_as_wanted(tmp_path):
    corpus = SenseCorpus(write_json(tmp_path, LINE))
    assert list(corpus) == list(corpus) == [SENTENCE]


def test_the_files_of_the_framework_give_the_same_sentences(tmp_path):
    first, second = SenseCorpus(write_xml(tmp_path))
    assert first == SENTENCE
    assert second == SenseSentence("tales", ("Yes_&_no",), ())


def test_ids_with_the_name_of_their_test_set_are_of_that_set(tmp_path):
    xml = XML.replace('id="d000', 'id="senseval2.d000')
    keys = [f"senseval2.{line}" for line in KEYS]
    assert [s.corpus for s in SenseCorpus(write_xml(tmp_path, xml, keys))] == ["senseval2"] * 2


def test_keys_may_be_in_another_order_and_files_compressed(tmp_path):
    path = write_xml(tmp_path, keys=KEYS[::-1])
    expected = list(SenseCorpus(path))
    for name in ("tales.data.xml", "tales.gold.key.txt"):
        plain = tmp_path / name
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(plain.read_bytes()))
        plain.unlink()
    assert expected[0] == SENTENCE
    assert list(SenseCorpus(path)) == list(SenseCorpus(f"{path}.gz")) == expected


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"id": 3}, 'x.jsonl:2: expected "id", a string, found 3'),
        ({"pos": "NOUN"}, 'x.jsonl:2: expected a list as "pos", found str'),
        ({"senses": [None]}, 'x.jsonl:2: expected 3 entries in "senses", one per token, found 1'),
        ({"lemmas": ["a", 2, "."]}, 'x.jsonl:2: expected strings in "lemmas", found 2'),
        ({"lemmas": ["a", None, "."]}, 'x.jsonl:2: expected strings in "lemmas", found None'),
    ],
)
def test_a_malformed_line_is_refused(tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        list(SenseCorpus(write_json(tmp_path, LINE, {**LINE, **changes})))


def test_a_corpus_without_senses_is_refused(tmp_path):
    path = write_json(tmp_path, {**LINE, "senses": [None] * 3})
    with pytest.raises(ValueError, match="x.jsonl: expected words with senses, found none"):
        list(SenseCorpus(path))


@pytest.mark.parametrize(
    "xml, keys, message",
    [
        (XML, KEYS[:1], "tales.gold.key.txt: expected a line for 'd000.s000.t001', found none"),
        (XML, [KEYS[0], "d000.s000.t001"], "tales.gold.key.txt:2: expected an id and its sense"),
        (XML[:-12], KEYS, "tales.data.xml: expected XML in UTF-8, found unclosed token: line 12"),
        (XML.replace("</wf>", "</w>", 1), KEYS, "tales.data.xml: .* mismatched tag: line 7"),
    ],
)
def test_malformed_files_of_the_framework_are_refused(tmp_path, xml, keys, message):
    with pytest.raises(ValueError, match=message):
        list(SenseCorpus(write_xml(tmp_path, xml, keys)))


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("tales.data.xml", XML.replace("Yes", "Yés").encode("latin-1"), "xml:10: .* byte 0xe9"),
        (
            "tales.data.xml.gz",
            gzip.compress(XML.encode())[:-20],
            r"gz:\d+: .* damaged or truncated",
        ),
    ],
)
def test_xml_that_cannot_be_decoded_is_refused_with_its_line(tmp_path, name, content, message):
    write_xml(tmp_path).unlink()
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        list(SenseCorpus(tmp_path / name))


def test_a_file_with_another_name_has_no_keys(tmp_path):
    path = write_xml(tmp_path).rename(tmp_path / "tales.xml")
    with pytest.raises(ValueError, match="expected a name that ends in .data.xml"):
        list(SenseCorpus(path))


def test_first_senses_of_the_wanted_lemmas_are_read(tmp_path):
    path = tmp_path / "first.tsv"
    path.write_text("Owl\tNOUN\towl%1:05:00::\n\nplay\tVERB\ta\nplay\tVERB\tb\nplay\tNOUN\tc\n")
    assert read_first_senses(path) == {
        ("owl", "NOUN"): "owl%1:05:00::",
        ("play", "VERB"): "a",
        ("play", "NOUN"): "c",
    }
    assert read_first_senses(path, {("play", "NOUN")}) == {("play", "NOUN"): "c"}
    path.write_text("play\tVERB\ta\nplay VERB b\n")
    with pytest.raises(ValueError, match="first.tsv:2: expected lemma, .* found 1 cells"):
        read_first_senses(path)
