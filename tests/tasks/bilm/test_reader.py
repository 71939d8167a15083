import json

import pytest
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import DatasetReader

from elmo_plugin.bilm import BilmOptions
from elmo_plugin.tasks.bilm.reader import BilmReader


def test_the_options_are_given_or_read_from_a_file(make_options, options_file, tmp_path):
    options = make_options(max_characters_per_token=10)
    file = tmp_path / "options.json"
    file.write_text(json.dumps(options))
    expected = BilmOptions.from_dict(options)
    assert BilmReader(options=options).options == expected
    assert BilmReader(options_file=str(file)).options == expected
    assert BilmReader().options == BilmOptions.from_file(options_file)


def test_it_is_built_from_a_configuration(make_options, tmp_path):
    params = Params({"type": "elmo-bilm", "options": make_options(), "max_tokens": 7})
    reader = DatasetReader.from_params(params, serialization_dir=None)
    (tmp_path / "a.txt").write_text("a " * 9)
    assert isinstance(reader, BilmReader)
    assert [len(words) for words in reader.text(tmp_path / "a.txt").sentences()] == [7, 2]


def test_an_instance_holds_the_words_of_a_sentence(tmp_path):
    (tmp_path / "a.txt").write_text("a b c\n\nd\n")
    instances = list(BilmReader(max_tokens=2).read(tmp_path / "a.txt"))
    assert [instance["words"].metadata for instance in instances] == [["a", "b"], ["c"], ["d"]]
    assert BilmReader().text_to_instance(("x", "y"))["words"].metadata == ["x", "y"]


def test_impossible_settings_are_refused(make_options):
    with pytest.raises(ConfigurationError, match="`options` or `options_file`, found both"):
        BilmReader(options=make_options(), options_file="options.json")
    with pytest.raises(ConfigurationError, match="`lstm.dim` is missing"):
        BilmReader(options={**make_options(), "lstm": {}})
    with pytest.raises(ConfigurationError, match="`max_tokens` of at least 1, found 0"):
        BilmReader(max_tokens=0)
    with pytest.raises(ConfigurationError, match="nowhere.json does not exist"):
        BilmReader(options_file="nowhere.json")
