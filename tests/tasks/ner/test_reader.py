import pytest
from allennlp.common.checks import ConfigurationError
from allennlp.data import Token

from elmo_plugin.tasks.ner import TagReader

TEXT = """\
-DOCSTART- -X- -X- O

Ada NNP I-NP I-PER
Lind NNP I-NP I-PER
York NNP I-NP B-PER
left VBD I-VP O

# NN I-NP O
-DOCSTART- -X- -X- O
Leeds NNP I-NP I-LOC
"""


def test_one_instance_per_sentence_with_every_field(tmp_path):
    path = tmp_path / "x.conll"
    path.write_text(TEXT)
    first, second, third = TagReader().read(path)
    assert [token.text for token in first["tokens"]] == ["Ada", "Lind", "York", "left"]
    assert first["tags"].labels == ["B-PER", "L-PER", "U-PER", "O"]
    assert first["metadata"].metadata == {
        "words": ["Ada", "Lind", "York", "left"],
        "gold_tags": ["B-PER", "I-PER", "B-PER", "O"],
        "is_document_start": True,
        "document": 1,
    }
    assert not second["metadata"].metadata["is_document_start"]
    assert third["metadata"].metadata["is_document_start"]
    assert [each["metadata"].metadata["document"] for each in (second, third)] == [1, 2]
    assert third["tags"].labels == ["U-LOC"]


def test_chunks_are_read_from_another_column(tmp_path):
    path = tmp_path / "x.conll"
    path.write_text(TEXT)
    (first, *_) = TagReader(tag_column=3).read(path)
    assert first["tags"].labels == ["B-NP", "I-NP", "L-NP", "U-VP"]
    with pytest.raises(ConfigurationError, match="`tag_column` of at least 2, found 1"):
        TagReader(tag_column=1)


def test_words_alone_are_read_without_tags(tmp_path):
    path = tmp_path / "x.conll"
    path.write_text("Ada\nleft\n")
    (instance,) = TagReader().read(path)
    assert set(instance.fields) == {"tokens", "metadata"}
    assert instance["metadata"].metadata["gold_tags"] is None


def test_the_scheme_of_a_file_does_not_change_its_instances():
    tokens = [Token(word) for word in "a b c".split()]
    for tags in ("I-A I-A B-A", "B-A I-A B-A", "B-A E-A S-A", "B-A L-A U-A"):
        instance = TagReader().text_to_instance(tokens, tags.split())
        assert instance["tags"].labels == ["B-A", "L-A", "U-A"]


def test_plain_tags_of_columns_and_of_conllu_stay_as_they_are(tmp_path):
    path = tmp_path / "x.conll"
    path.write_text(TEXT)
    (first, *_) = TagReader(tag_column=2, tags="plain").read(path)
    assert first["tags"].labels == first["metadata"]["gold_tags"] == ["NNP", "NNP", "NNP", "VBD"]
    path = tmp_path / "x.conllu.gz"
    rows = ["# x", "1-2\tAdaran" + 8 * "\t_", "1\tAda\t_\tPROPN\tNNP" + 5 * "\t_", ""]
    path.write_text("\n".join([*rows, "1\tGo" + 8 * "\t_", ""]))
    tagged, untagged = TagReader(tags="plain", tag="xpos").read(path)
    assert tagged["tags"].labels == ["NNP"] and "tags" not in untagged.fields
    assert untagged["metadata"]["gold_tags"] is None
    with pytest.raises(ConfigurationError, match="`tag` to be one of upos, xpos, .*'lemma'"):
        TagReader(tag="lemma")
    with pytest.raises(ConfigurationError, match="`tags` to be one of spans, plain"):
        TagReader(tags="BIO")
