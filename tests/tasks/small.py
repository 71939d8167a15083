"""Small models of the tasks with random weights, and what their tests share."""

from pathlib import Path
from typing import Any, Dict, List, Optional

import torch
from allennlp.common import Params
from allennlp.data import Batch, DatasetReader, Instance, Vocabulary
from allennlp.data.token_indexers import SingleIdTokenIndexer
from allennlp.models import Model

import elmo_plugin.plugin  # noqa: F401
from elmo_plugin.bilm.character_indexer import CharacterIndexer

FIXTURES = Path(__file__).parents[2] / "fixtures"
CORPORA = {
    task: {split: FIXTURES / "corpora" / task / name.format(split) for split in ("train", "dev")}
    for task, name in {
        "coref": "{}.gold_conll",
        "ner": "{}.conll",
        "snli": "snli_1.0_{}.jsonl",
        "squad": "{}-v1.1.json",
        "srl": "{}.gold_conll",
        "sst": "{}.txt",
    }.items()
}
OWN = FIXTURES / "corpora/own"
#: Users' own files, which the rooms of three tasks read.
OWN_CORPORA = {
    "classifier": {"train": OWN / "reviews_train.csv", "dev": OWN / "reviews_dev.tsv"},
    "pairs": {"train": OWN / "pairs_train.csv", "dev": OWN / "pairs_dev.tsv"},
    "tagger": {s: FIXTURES / f"corpora/pos/{s}.conllu" for s in ("train", "dev")},
}
ROOMS = {"classifier": "sst", "pairs": "snli", "tagger": "ner"}
RELU = {"num_layers": 1, "activations": "relu"}
MODELS: Dict[str, Dict[str, Any]] = {
    "coref": {
        "encoder": {"type": "elmo-bilstm", "hidden_size": 5},
        "scoring": {"max_span_width": 4, "feedforward_dim": 7, "feature_dim": 3},
    },
    "ner": {
        "lower_encoder": {"type": "elmo-bilstm", "hidden_size": 7},
        "upper_encoder": {"type": "elmo-bilstm", "hidden_size": 3},
    },
    "snli": {
        "encoder": {"type": "elmo-bilstm", "hidden_size": 5},
        "composition_encoder": {"type": "elmo-bilstm", "hidden_size": 4},
        "feedforward_dim": 7,
    },
    "squad": {"encoder": {"type": "elmo-bigru", "hidden_size": 5}},
    "srl": {
        "encoder": {"type": "elmo-highway-lstm", "hidden_size": 7, "num_layers": 2},
        "predicate_dim": 5,
    },
    "sst": {
        "feedforward": {**RELU, "hidden_dims": 5},
        "encoder": {"type": "elmo-bilstm", "hidden_size": 4},
        "integrator": {"type": "elmo-bilstm", "hidden_size": 4},
        "classifier": {**RELU, "num_layers": 2, "hidden_dims": [9, 8]},
    },
}
# The width of the characters of the tasks that have them.
NUM_FILTERS = {"ner": 5, "squad": 3}


def plain_reader(task: str, **settings: Any) -> DatasetReader:
    """A reader with default settings, of the corpora above."""
    kind = {"tags": "plain"} if task == "tagger" else {}
    return DatasetReader.by_name(f"elmo-{task}")(**kind, **settings)


def experiment(name: str) -> Params:
    return Params.from_file(FIXTURES / f"experiments/{name}.jsonnet")


def build(task: str, vocab: Vocabulary, **settings: Any) -> Model:
    embedders: Dict[str, Any] = {"words": {"type": "embedding", "embedding_dim": 6}}
    if task in NUM_FILTERS:
        embedder = experiment(task)["model"]["text_field_embedder"]["token_embedders"]
        sizes = {"embedding_dim": 4, "num_filters": NUM_FILTERS[task]}
        embedders["characters"] = {**embedder["characters"].as_dict(quiet=True), **sizes}
    embedder = {"token_embedders": embedders}
    params = {"type": f"elmo-{task}", "text_field_embedder": embedder, **MODELS[task], **settings}
    return Model.from_params(vocab=vocab, params=Params(params).duplicate())


def make_reader(task: str, **settings: Any) -> DatasetReader:
    """A reader that indexes words, characters where the small model has them, and ELMo's ids."""
    if task in NUM_FILTERS:
        params = experiment(f"{task}_elmo")["dataset_reader"].as_dict(quiet=True)
        return DatasetReader.from_params(Params({**params, **settings}))
    indexers = {"words": SingleIdTokenIndexer(), "elmo": CharacterIndexer()}
    return DatasetReader.by_name(f"elmo-{task}")(token_indexers=indexers, **settings)


def read(task: str, split: str = "train", **settings: Any) -> List[Instance]:
    return list(make_reader(task, **settings).read(CORPORA[task][split]))


def placement(at: Optional[str], **elmo: Any) -> Optional[Dict[str, Any]]:
    """The settings of ELMo at a task's input, output or both, without dropout; or of none."""
    return at and {"type": "elmo-placement", "at": at, "elmo": {"dropout": 0.0, **elmo}}


def make_batch(vocab: Vocabulary, instances: List[Instance], elmo: bool = True) -> Dict[str, Any]:
    """A batch, as a model takes it; without `elmo`, as a baseline's reader indexes it."""
    batch = Batch(instances)
    batch.index_instances(vocab)
    fields = batch.as_tensor_dict()
    for field in fields.values():
        if not elmo and isinstance(field, dict):
            field.pop("elmo", None)
    return fields


def learn(
    model: Model, batches: List[Dict[str, Any]], rate: float, num_epochs: int
) -> Dict[str, float]:
    """Trains a new model with Adam; returns the metrics of its predictions for the same batches."""
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=rate)
    for _ in range(num_epochs):
        for batch in batches:
            optimizer.zero_grad()
            model(**batch)["loss"].backward()
            optimizer.step()
    model.get_metrics(reset=True)
    model.eval()
    for batch in batches:
        model(**batch)
    return model.get_metrics(reset=True)
