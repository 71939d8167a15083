from pathlib import Path

import pytest
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import Batch, DatasetReader, Vocabulary
from allennlp.models import Model

import elmo_plugin.plugin  # noqa: F401

EXPERIMENTS = Path(__file__).parents[2] / "fixtures/experiments"


@pytest.mark.parametrize(
    "task, field, expected",
    [
        ("srl", "tags", "roles (in CoNLL-2012, one column per predicate)"),
        ("ner", "tags", "tags (the last column of CoNLL-2003)"),
        ("sst", "label", "labels (at the nodes of the trees)"),
        ("snli", "label", "labels (the field `gold_label`)"),
        ("squad", "answer_span", "answers (the field `answers` of each question)"),
        ("coref", "gold_mentions", "mentions (the last column of CoNLL-2012)"),
    ],
)
def test_training_without_labels_names_the_task_and_what_is_missing(task, field, expected):
    params = Params.from_file(EXPERIMENTS / f"{task}.jsonnet")
    reader = DatasetReader.from_params(params["dataset_reader"])
    instances = list(reader.read(params["train_data_path"]))[:2]
    for instance in instances:
        del instance.fields[field]
        reader.apply_token_indexers(instance)
    vocab = Vocabulary.from_instances(instances)
    batch = Batch(instances)
    batch.index_instances(vocab)
    with pytest.raises(ConfigurationError) as error:
        # NER's model needs tags to be built at all.
        model = Model.from_params(vocab=vocab, params=params["model"])
        model(**batch.as_tensor_dict())
    assert str(error.value) == (
        f"elmo-{task}: training needs {expected}, but the instances have none. Set "
        "`train_data_path` to a corpus that has them."
    )
