import pytest
from allennlp.common.checks import ConfigurationError

from elmo_plugin.tasks.bilm.reader import BilmReader


def test_an_instance_holds_the_words_of_a_sentence(tmp_path):
    (tmp_path / "a.txt").write_text("a b c\n\nd\n")
    instances = list(BilmReader(max_tokens=2).read(tmp_path / "a.txt"))
    assert [instance["words"].metadata for instance in instances] == [["a", "b"], ["c"], ["d"]]
    assert BilmReader().text_to_instance(("x", "y"))["words"].metadata == ["x", "y"]


def test_impossible_settings_are_refused(make_options):
    with pytest.raises(ConfigurationError, match="found `options` and `options_file`"):
        BilmReader(options=make_options(), options_file="options.json")
    with pytest.raises(ConfigurationError, match="`lstm.dim` is missing"):
        BilmReader(options={**make_options(), "lstm": {}})
    with pytest.raises(ConfigurationError, match="`max_tokens` of at least 1, found 0"):
        BilmReader(max_tokens=0)
