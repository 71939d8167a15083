import gzip

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


def write_xml(tmp_path, xml=XML, keys=KEYS):
    (tmp_path / "tales.data.xml").write_text(xml, encoding="utf-8")
    (tmp_path / "tales.gold.key.txt").write_text("\n".join(keys) + "\n", encoding="utf-8")
    return tmp_path / "tales.data.xml"


def test_json_lines_are_read_as_often_as_wanted(write):
    corpus = SenseCorpus(write(LINE))
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


def test_xml_that_cannot_be_decoded_or_has_no_keys_is_refused(tmp_path):
    path = write_xml(tmp_path)
    path.write_bytes(XML.replace("Yes", "Yés").encode("latin-1"))
    with pytest.raises(ValueError, match="xml:10: .* byte 0xe9"):
        list(SenseCorpus(path))
    path = write_xml(tmp_path).rename(tmp_path / "tales.xml")
    with pytest.raises(ValueError, match="expected a name that ends in .data.xml"):
        list(SenseCorpus(path))


def test_first_senses_of_the_wanted_lemmas_are_read(write):
    path = write("Owl\tNOUN\towl%1:05:00::\n\nplay\tVERB\ta\nplay\tVERB\tb\nplay\tNOUN\tc\n")
    assert read_first_senses(path) == {
        ("owl", "NOUN"): "owl%1:05:00::",
        ("play", "VERB"): "a",
        ("play", "NOUN"): "c",
    }
    assert read_first_senses(path, {("play", "NOUN")}) == {("play", "NOUN"): "c"}
