import numpy
import pytest

from elmo_plugin.elmo import embed_sentences
from elmo_plugin.integrations.for_datasets import embed_dataset
from elmo_plugin.util.errors import ConfigurationError

# Its requirement fsspec < 2026.2.1 does not fit the constraints of these tests.
datasets = pytest.importorskip("datasets", reason="needs datasets: pip install '.[datasets]'")

ROWS = {"tokens": [["They", "play", "chess"], ["Chess"], []] * 3, "number": list(range(9))}


@pytest.fixture
def dataset():
    return datasets.Dataset.from_dict(ROWS)


def check(rows, bilm, chosen=(0, 1, 2)):
    rows = list(rows)
    for row, layers in zip(rows, embed_sentences(bilm, ROWS["tokens"]), strict=True):
        expected = layers[list(chosen)].mean(dim=0).numpy()
        found = numpy.array(row["elmo"], dtype="float32").reshape(expected.shape)
        numpy.testing.assert_allclose(found, expected, atol=1e-6)
    assert [row["number"] for row in rows] == ROWS["number"]


@pytest.mark.parametrize("batch_size", [2, 1024])
def test_every_row_has_the_vectors_of_its_tokens(dataset, bilm, batch_size):
    check(embed_dataset(dataset, bilm, batch_size=batch_size), bilm)
    check(embed_dataset(dataset, bilm, layers="last"), bilm, [2])


def test_a_row_of_raw_text_can_have_one_vector(dataset, bilm):
    raw = datasets.Dataset.from_dict({"text": [" ".join(words) for words in ROWS["tokens"]]})
    found = embed_dataset(raw, bilm, "text", layers=[0, 2], tokenizer="en", pool="max")
    for row, layers in zip(found, embed_sentences(bilm, ROWS["tokens"]), strict=True):
        vectors = layers[[0, 2]].mean(dim=0)
        expected = vectors.amax(dim=0) if len(vectors) else numpy.zeros(bilm.output_dim)
        numpy.testing.assert_allclose(row["elmo"], expected, atol=1e-6)
    with pytest.raises(ConfigurationError, match="Expected `pool`"):
        embed_dataset(raw, bilm, "text", pool="sum")


def test_other_kinds_of_data_sets_and_names_of_columns(dataset, bilm):
    check(embed_dataset(dataset.to_iterable_dataset(), bilm), bilm)
    check(embed_dataset(datasets.DatasetDict(train=dataset), bilm)["train"], bilm)
    renamed = dataset.rename_column("tokens", "words")
    found = embed_dataset(renamed, bilm, column="words", new_column="vectors")
    assert found.column_names == ["words", "number", "vectors"]


def test_what_is_in_the_cache_of_datasets_is_not_computed_again(dataset, bilm, tmp_path):
    dataset.save_to_disk(tmp_path / "data")
    on_disk = datasets.load_from_disk(tmp_path / "data")
    first = embed_dataset(on_disk, bilm)
    assert embed_dataset(on_disk, bilm).cache_files == first.cache_files
    assert embed_dataset(on_disk, bilm, layers="last").cache_files != first.cache_files


def test_text_that_is_not_tokenised_and_wrong_layers_are_named(dataset, bilm):
    with pytest.raises(TypeError, match="Expected a list of strings"):
        embed_dataset(datasets.Dataset.from_dict({"tokens": ["They play"]}), bilm)
    with pytest.raises(ConfigurationError, match="different numbers from 0"):
        embed_dataset(dataset, bilm, layers=[5])
