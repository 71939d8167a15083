import copy
import json
import os
import random
import signal
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Callable, Dict, List

# What the user's environment says must not change what is tested.
for _name in (
    "ELMO_BILM",
    "ELMO_DATA",
    "ELMO_GLOVE",
    "ELMO_GLOVE_DIM",
    "ELMO_GLOVE_CASED",
    "ELMO_TURIAN",
    "ELMO_COVE",
    "ELMO_WIDE",
    "ELMO_SEED",
    "ELMO_TRAIN",
    "ELMO_DEV",
    "ELMO_TEST",
):
    os.environ.pop(_name, None)
# Nothing is left in the user's cache, and nothing comes from there.
os.environ["ELMO_CACHE"] = ""
# Results of a tiny random biLM are exact; the one that ships may be trained anew.
FIXTURE = Path(__file__).parent.parent / "fixtures" / "bilm"
os.environ["ELMO_OPTIONS"] = str(FIXTURE / "options.json")
os.environ["ELMO_WEIGHTS"] = str(FIXTURE / "weights.hdf5")
# Everything here is so small that a second thread only waits for the first.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Ray gives its workers the lowest priority but four: beside other tests they would take minutes to
# start.
os.environ["RAY_worker_niceness"] = "0"
# A shell starts background jobs with SIGINT ignored, which the programs under test would inherit.
signal.signal(signal.SIGINT, signal.default_int_handler)

import numpy  # noqa: E402
import pytest  # noqa: E402
import torch  # noqa: E402

if not torch.cuda.is_available():
    # Triton is imported later, and then interprets the kernels for GPUs.
    os.environ["TRITON_INTERPRET"] = "1"

if find_spec("allennlp"):
    import elmo_plugin.plugin  # noqa: F401
from elmo_plugin.bilm import Bilm, BilmOptions, load_bilm  # noqa: E402
from elmo_plugin.elmo.cache.layer_cache import LayerCache  # noqa: E402
from elmo_plugin.util import bfloat16  # noqa: E402


@pytest.fixture(autouse=True)
def no_cache_stays_open():
    """Its folder goes with the test."""
    yield
    LayerCache.close_all()


@pytest.fixture(autouse=True)
def same_random_numbers():
    """Those that a test alone has, too, so that its failure can be reproduced."""
    random.seed(0)
    numpy.random.seed(0)
    torch.manual_seed(0)


@pytest.fixture
def set_num_threads():
    """`torch.set_num_threads`, undone after the test."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.fixture
def with_bfloat16(monkeypatch):
    """As on a processor that has instructions for bfloat16."""
    monkeypatch.setattr(bfloat16, "CPU_HAS_BFLOAT16", True)


@pytest.fixture
def without_bfloat16(monkeypatch):
    """As on one that has none."""
    monkeypatch.setattr(bfloat16, "CPU_HAS_BFLOAT16", False)


@pytest.fixture(scope="session")
def options_file() -> Path:
    """Options of the fixture biLM."""
    return FIXTURE / "options.json"


@pytest.fixture(scope="session")
def weight_file() -> Path:
    """Weights of the fixture biLM."""
    return FIXTURE / "weights.hdf5"


@pytest.fixture(scope="session")
def sentences() -> List[List[str]]:
    """The sentences whose activations are known; one is empty."""
    return json.loads((FIXTURE / "sentences.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def golden() -> List[torch.Tensor]:
    """Per sentence: shape `(num_layers, num_tokens + 2, output_dim)`, float64."""
    with numpy.load(FIXTURE / "golden.npz") as arrays:
        return [torch.from_numpy(arrays[str(number)]) for number in range(len(arrays))]


@pytest.fixture(scope="session")
def shared_bilm(options_file, weight_file) -> Bilm:
    """The fixture biLM, for tests that only read with it."""
    return load_bilm(options_file, weight_file)


@pytest.fixture
def bilm(shared_bilm) -> Bilm:
    """The fixture biLM, a test's own."""
    return copy.deepcopy(shared_bilm)


@pytest.fixture(scope="session")
def make_options() -> Callable[..., Dict[str, Any]]:
    """
    Small options of a published biLM's kind: 23 filters, 20 cells, 6 outputs per direction.
    Settings are changed by their last name: `make_options(n_layers=4, activation="tanh")`.
    """

    def make(**changes: Any) -> Dict[str, Any]:
        options: Dict[str, Any] = {
            "bidirectional": True,
            "char_cnn": {
                "activation": "relu",
                "embedding": {"dim": 4},
                "filters": [[1, 5], [2, 5], [3, 6], [5, 7]],
                "max_characters_per_token": 50,
                "n_characters": 262,
                "n_highway": 1,
            },
            "lstm": {
                "cell_clip": 1.5,
                "dim": 20,
                "n_layers": 2,
                "proj_clip": 1.0,
                "projection_dim": 6,
                "use_skip_connections": True,
            },
        }
        for name, value in changes.items():
            if name in options:
                options[name] = value
                continue
            part = "lstm" if name in options["lstm"] else "char_cnn"
            options[part][name] = {"dim": value} if name == "embedding" else value
        return options

    return make


@pytest.fixture(scope="session")
def make_bilm(make_options) -> Callable[..., Bilm]:
    """A biLM of small options with weights so large that clips are active."""

    def make(seed: int = 0, stateful: bool = False, warm_up: bool = False, **changes) -> Bilm:
        options = BilmOptions.from_dict(make_options(**changes))
        bilm = Bilm(options, stateful=stateful, warm_up=warm_up)
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for parameter in bilm.parameters():
                fan_in = parameter.size(-1) if parameter.dim() > 1 else 4
                parameter.normal_(0.0, 1.5 * fan_in**-0.5, generator=generator)
            bilm.character_encoder.embedding.weight.normal_(generator=generator)
            bilm.character_encoder.embedding.weight[0].zero_()
        return bilm.eval()

    return make


@pytest.fixture(scope="session")
def tagger(tmp_path_factory) -> Path:
    """The archive of a tagger that was trained for an epoch on a part of its corpus."""
    from tests.trained import train_once

    overrides = {
        "trainer.num_epochs": 1,
        "dataset_reader.max_instances": 5,
        "validation_dataset_reader.max_instances": 4,
        "validation_data_loader.batches_per_epoch": 1,
    }
    return train_once(tmp_path_factory, "ner_in_part", "ner", overrides)
