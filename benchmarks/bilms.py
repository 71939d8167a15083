"""BiLMs of the published sizes with random weights, ours and AllenNLP's."""

import json
import tempfile
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

import torch
from allennlp.modules.elmo import Elmo as AllenNlpElmo
from common import Row

from elmo_plugin import Bilm, BilmOptions, Elmo, save_weights
from elmo_plugin.bilm.files.load import COMPUTE_DTYPES

ELEMENT_SIZES = {"float32": 4, "bfloat16": 2}
# The largest allowed difference of a layer from AllenNLP's, relative to its norm.
LARGEST_ERRORS = {"float32": "<= 1e-5 relative", "bfloat16": "<= 0.01 relative"}
PUBLISHED_FILTERS = [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512], [7, 1024]]


class Size(NamedTuple):
    dim: int
    projection_dim: int
    n_highway: int
    filters: List[List[int]]


SIZES = {
    "small": Size(1024, 128, 1, PUBLISHED_FILTERS),
    "full": Size(4096, 512, 2, PUBLISHED_FILTERS),
    # Only for testing the benchmarks.
    "tiny": Size(16, 8, 1, [[1, 4], [2, 4], [3, 8]]),
}


class Pair(NamedTuple):
    """AllenNLP's biLM and ours with the same weights, ours in several dtypes."""

    peer: AllenNlpElmo
    ours: Dict[str, Elmo]

    def largest_errors(self, batches: Sequence[torch.Tensor]) -> Dict[str, float]:
        """The largest relative error of a layer over the batches, by dtype."""
        errors: Dict[str, float] = dict.fromkeys(self.ours, 0.0)
        for ids in batches:
            # AllenNLP carries state from batch to batch, ours does not.
            self.peer._elmo_lstm._elmo_lstm.reset_states()
            with torch.no_grad():
                exact = self.peer._elmo_lstm(ids)["activations"]
                for dtype, elmo in self.ours.items():
                    layers = elmo.bilm(ids).layers.float()
                    relative = ((a - b).norm() / b.norm() for a, b in zip(layers, exact))
                    errors[dtype] = max(errors[dtype], *map(float, relative))
        return errors


def options_of(size: str) -> Dict[str, Any]:
    """The contents of options.json for one of `SIZES`."""
    dim, projection_dim, n_highway, filters = SIZES[size]
    return {
        "char_cnn": {
            "activation": "relu",
            "embedding": {"dim": 16},
            "filters": filters,
            "max_characters_per_token": 50,
            "n_characters": 262,
            "n_highway": n_highway,
        },
        "lstm": {
            "cell_clip": 3,
            "dim": dim,
            "n_layers": 2,
            "proj_clip": 3,
            "projection_dim": projection_dim,
            "use_skip_connections": True,
        },
    }


def load_pair(size: str, dtypes: Optional[Sequence[str]] = None, device: str = "cpu") -> Pair:
    """Both biLMs in evaluation mode, ours in all dtypes."""
    torch.manual_seed(0)
    # AllenNLP's convolutions would otherwise be less exact than its matrix products.
    torch.backends.cudnn.allow_tf32 = False
    with tempfile.TemporaryDirectory() as directory:
        files = (f"{directory}/options.json", f"{directory}/weights.hdf5")
        Path(files[0]).write_text(json.dumps(options_of(size)), encoding="utf-8")
        save_weights(Bilm(BilmOptions.from_dict(options_of(size))), files[1])
        peer = AllenNlpElmo(*files, num_output_representations=1, dropout=0.0).to(device).eval()
        ours = {
            dtype: Elmo(*files, dropout=0.0, dtype=dtype).to(device).eval()
            for dtype in dtypes or COMPUTE_DTYPES
        }
    return Pair(peer, ours)


def error_rows(name: str, errors: Dict[str, float]) -> List[Row]:
    return [
        Row(
            f"{name}, {dtype}: largest error of a layer",
            "relative",
            error,
            floor=LARGEST_ERRORS.get(dtype),
        )
        for dtype, error in errors.items()
    ]
