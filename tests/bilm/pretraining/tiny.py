"""A text and an experiment so small that training takes a second."""

import copy
from pathlib import Path
from random import Random
from typing import Any, Dict, List

OPTIONS: Dict[str, Any] = {
    "bidirectional": True,
    "char_cnn": {
        "activation": "relu",
        "embedding": {"dim": 3},
        "filters": [[1, 4], [2, 4]],
        "max_characters_per_token": 8,
        "n_characters": 262,
        "n_highway": 1,
    },
    "lstm": {
        "cell_clip": 3,
        "dim": 8,
        "n_layers": 2,
        "proj_clip": 3,
        "projection_dim": 4,
        "use_skip_connections": True,
    },
}
ORDERS: Dict[str, Dict[str, Any]] = {
    "sentences": {"order": "sentences", "tokens_per_batch": 60},
    "streams": {"order": "streams", "batch_size": 6, "num_steps": 10},
}
NUM_WORDS = 30


def make_options(**changes: Any) -> Dict[str, Any]:
    return {**copy.deepcopy(OPTIONS), **changes}


def make_sentences(num_sentences: int, seed: int = 0) -> List[List[str]]:
    """Sentences of 1 to 12 words, whose words are not equally frequent."""
    draw = Random(seed)
    words = [f"w{number}" for number in range(NUM_WORDS)]
    weights = [1.0 / (rank + 1) for rank in range(NUM_WORDS)]
    return [draw.choices(words, weights, k=draw.randint(1, 12)) for _ in range(num_sentences)]


def write_text(path: Path, sentences: List[List[str]]) -> Path:
    path.write_text("".join(" ".join(words) + "\n" for words in sentences))
    return path


def make_experiment(folder: Path, order: str, **trainer: Any) -> Dict[str, Any]:
    """About 12 batches an epoch, a checkpoint every fourth; dropout and samples."""
    train = write_text(folder / "train.txt", make_sentences(100))
    heldout = write_text(folder / "heldout.txt", make_sentences(12, seed=1))
    return {
        "dataset_reader": {"type": "elmo-bilm", "options": make_options()},
        "train_data_path": str(train),
        "validation_data_path": str(heldout),
        "vocabulary": {"type": "elmo-bilm", "text": str(train)},
        "model": {
            "type": "elmo-bilm",
            "options": make_options(),
            "num_samples": 8,
            "dropout": 0.1,
            "seed": 5,
        },
        "data_loader": {"type": "elmo-bilm", **ORDERS[order]},
        "validation_data_loader": {"type": "elmo-bilm", "tokens_per_batch": 50, "shuffle": False},
        "trainer": {
            "type": "elmo-bilm",
            "optimizer": {"type": "elmo-adam", "lr": 0.01},
            "num_epochs": 2,
            "grad_norm": 1.0,
            "validation_metric": "-perplexity",
            "checkpointer": {"type": "elmo-atomic", "save_every_num_batches": 4},
            "run_confidence_checks": False,
            **trainer,
        },
        "evaluate_on_test": False,
    }


def without_characters(experiment: Dict[str, Any]) -> Dict[str, Any]:
    """The same with token embeddings."""
    for part in ("dataset_reader", "model"):
        del experiment[part]["options"]["char_cnn"]
    return experiment
