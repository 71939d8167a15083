import pytest
from allennlp.common.checks import ConfigurationError

from elmo_plugin.tasks.srl import SrlReader

TWO_PREDICATES = """\
#begin document (x); part 000
x 0 0 Mary NNP (TOP* - - - - * (ARG0*) * -
x 0 1 tried VBD * try 01 - - * (V*) * -
x 0 2 to TO * - - - - * (ARG1* * -
x 0 3 sing VB * sing 02 - - * *) (V*) -

x 0 0 Really RB (TOP*) - - - - * -

#end document
"""


def test_one_instance_per_predicate_with_every_field(tmp_path):
    path = tmp_path / "x.gold_conll"
    path.write_text(TWO_PREDICATES)
    tried, sing = SrlReader().read(path)
    assert [token.text for token in tried["tokens"]] == ["Mary", "tried", "to", "sing"]
    assert tried["predicate_indicator"].labels == [0, 1, 0, 0]
    assert tried["tags"].labels == ["B-ARG0", "B-V", "B-ARG1", "I-ARG1"]
    assert tried["metadata"].metadata == {
        "words": ["Mary", "tried", "to", "sing"],
        "predicate_index": 1,
        "lemma": "try",
        "gold_tags": ["B-ARG0", "B-V", "B-ARG1", "I-ARG1"],
        "is_last_of_sentence": False,
    }
    assert sing["predicate_indicator"].labels == [0, 0, 0, 1]
    assert sing["metadata"].metadata["is_last_of_sentence"]


def test_a_file_without_predicate_columns_is_read_without_tags(tmp_path):
    path = tmp_path / "x.gold_conll"
    path.write_text("x 0 0 Mary NNP (TOP* - - - - * -\nx 0 1 sings VBZ *) sing 02 - - * -\n")
    (instance,) = SrlReader().read(path)
    assert "tags" not in instance.fields
    assert instance["metadata"].metadata["gold_tags"] is None
    assert instance["metadata"].metadata["predicate_index"] == 1


def test_sentences_over_the_limit_are_skipped_and_counted(tmp_path, caplog):
    path = tmp_path / "x.gold_conll"
    path.write_text(TWO_PREDICATES)
    caplog.set_level("INFO")
    assert list(SrlReader(max_tokens=3).read(path)) == []
    assert "skipped 1 sentences of more than 3 tokens" in caplog.text


def test_a_file_without_predicates_is_refused(tmp_path):
    path = tmp_path / "x.gold_conll"
    path.write_text("x 0 0 Really RB (TOP*) - - - - * -\n")
    with pytest.raises(ConfigurationError, match="holds no predicate"):
        list(SrlReader().read(path))


@pytest.mark.parametrize("tagged_first", [True, False])
def test_predicate_columns_are_needed_in_all_sentences_or_in_none(tmp_path, tagged_first):
    tagged = "x 0 0 Stop VB * stop 01 - - * (V*) -\n"
    untagged = "x 0 0 Go VB * go 02 - - * -\n"
    without_predicate = "x 0 0 Now RB * - - - - * -\n"
    sentences = [tagged, without_predicate, untagged] if tagged_first else [untagged, tagged]
    path = tmp_path / "x.gold_conll"
    path.write_text("\n".join(sentences))
    message = "5: expected a column per predicate" if tagged_first else "3: expected no predicate"
    with pytest.raises(ValueError, match=f"x.gold_conll:{message}"):
        list(SrlReader().read(path))
    path.write_text("\n".join([tagged, without_predicate]))
    assert [len(each["tokens"]) for each in SrlReader().read(path)] == [1]
