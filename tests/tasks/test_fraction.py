from pathlib import Path

import pytest
from allennlp.common.checks import ConfigurationError
from allennlp.data import DatasetReader
from allennlp.data.data_loaders import MultiProcessDataLoader

import elmo_plugin.plugin  # noqa: F401

CORPORA = Path(__file__).parents[2] / "fixtures/corpora"
TRAIN = {
    "ner": "ner/train.conll",
    "snli": "snli/snli_1.0_train.jsonl",
    "squad": "squad/train-v1.1.json",
    "srl": "srl/train.gold_conll",
    "sst": "sst/train.txt",
    "coref": "coref/train.gold_conll",
}


def read(task, **settings):
    """The texts of the instances."""
    reader = DatasetReader.by_name(f"elmo-{task}")(**settings)
    return [str(instance) for instance in reader.read(str(CORPORA / TRAIN[task]))]


@pytest.mark.parametrize("task", TRAIN)
def test_a_fraction_is_a_sample_in_the_order_of_the_file(task):
    everything = read(task)
    half, fewer = (read(task, fraction=share, fraction_seed=3) for share in (0.5, 0.3))
    assert len(fewer) <= len(half) < len(everything)
    remaining = iter(everything)
    assert all(text in remaining for text in half)
    remaining = iter(half)
    assert all(text in remaining for text in fewer)


def test_its_size_is_about_right_and_another_seed_draws_another():
    everything = read("sst")
    samples = [read("sst", fraction=0.25, fraction_seed=seed) for seed in range(8)]
    assert sum(map(len, samples)) / 8 == pytest.approx(len(everything) / 4, rel=0.35)
    assert samples[0] == read("sst", fraction=0.25) != samples[1]


def test_it_does_not_depend_on_workers():
    path = str(CORPORA / TRAIN["ner"])
    texts = []
    for num_workers in (0, 2):
        reader = DatasetReader.by_name("elmo-ner")(fraction=0.5)
        loader = MultiProcessDataLoader(reader, path, batch_size=4, num_workers=num_workers)
        found = (str(instance["metadata"].metadata) for instance in loader.iter_instances())
        texts.append(sorted(found))
    assert texts[0] == texts[1] and texts[0]


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"fraction": 0.0}, "above 0 and at most 1, found 0.0"),
        ({"fraction": 1.5}, "above 0 and at most 1, found 1.5"),
        ({"fraction": 1e-9}, "A `fraction` of 1e-09 leaves nothing of"),
    ],
)
def test_a_fraction_that_leaves_nothing_is_refused(settings, message):
    with pytest.raises(ConfigurationError, match=message):
        read("ner", **settings)
