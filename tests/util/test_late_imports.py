import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from elmo_plugin.util.late_imports import LateName, late_imports


@pytest.fixture
def importer(tmp_path, monkeypatch):
    """Imports a new module of the package `early`, made of the given lines, in the context."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    heavy = tmp_path / "heavy"
    (heavy / "parts").mkdir(parents=True)
    (tmp_path / "early").mkdir()
    (tmp_path / "early" / "__init__.py").touch()
    (heavy / "__init__.py").write_text("__version__ = '1.2'\n")
    (heavy / "parts" / "__init__.py").write_text(
        "class Base:\n    def __init__(self, size):\n        self.size = size\nTABLE = {'a': 1}\n"
    )

    def run(lines: str, module: str = "early.module"):
        path = tmp_path / f"{module.replace('.', '/')}.py"
        path.write_text(lines)
        with late_imports(["heavy"], ("early",)):
            __import__(module)
        return sys.modules[module]

    yield run
    for name in set(sys.modules) - before:
        if name.partition(".")[0] in ("heavy", "early", "other"):
            del sys.modules[name]


def is_imported() -> bool:
    return "heavy" in sys.modules


@pytest.mark.parametrize(
    "lines",
    [
        "import heavy\ndef use():\n    return heavy.parts.Base(3).size",
        "import heavy.parts as parts\ndef use():\n    return parts.Base(3).size",
        "from heavy import parts\ndef use():\n    return parts.Base(3).size",
        "from heavy.parts import Base\ndef use():\n    return Base(3).size",
        "from heavy.parts import TABLE\ndef use():\n    return TABLE['a'] + 2",
        "import heavy\ndef use():\n    return 3 if heavy.__version__ == '1.2' else 0",
    ],
)
def test_a_library_is_imported_when_a_name_is_used(importer, lines):
    module = importer(lines)
    assert not is_imported()
    assert module.use() == 3
    assert is_imported()


def test_annotations_and_questions_import_nothing(importer):
    module = importer(
        "from typing import Dict, Optional, Union\n"
        "import heavy\n"
        "CACHE: Dict[str, heavy.parts.Base] = {}\n"
        "def find(name: Optional[heavy.parts.Base], n: Union[int, heavy.parts.Base]) -> int: ...\n"
        "def is_base(x):\n"
        "    return isinstance(x, (heavy.parts.Base, set))\n"
    )
    assert not module.is_base([]) and module.is_base(set())
    assert not is_imported()
    from heavy.parts import Base

    assert module.is_base(Base(1)) and not module.is_base([])


def test_a_base_class_is_imported_when_an_object_is_constructed(importer):
    module = importer(
        "from heavy.parts import Base\n"
        "class Child(Base):\n"
        "    def __init__(self, size, name):\n"
        "        super().__init__(size)\n"
        "        self.name = name\n"
        "class Grandchild(Child):\n"
        "    pass\n"
    )
    assert not is_imported()
    for kind in (module.Grandchild, module.Child, module.Grandchild):
        made = pickle.loads(pickle.dumps(kind(2, name="x")))
        assert (made.size, made.name, type(made)) == (2, "x", kind)
    assert module.Child.__bases__ == (sys.modules["heavy.parts"].Base,)


def test_others_get_the_library_and_what_is_imported_stays(importer):
    other = importer("import heavy", module="other")
    assert other.heavy is sys.modules["heavy"]
    module = importer("import heavy")
    assert module.heavy is other.heavy


def test_a_function_that_imports_by_name_gets_the_library(importer):
    assert importer("heavy = __import__('heavy')").heavy is sys.modules["heavy"]


def test_modules_imported_later_get_the_library(importer):
    before = __import__
    importer("import heavy")
    assert __import__ is before
    with pytest.raises(ZeroDivisionError):
        importer("1 / 0", module="early.broken")
    assert __import__ is before


def test_names_are_pickled_and_used_by_several_threads(importer):
    module = importer("from heavy.parts import Base")
    name = pickle.loads(pickle.dumps(module.Base))
    assert isinstance(name, LateName) and not is_imported()
    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(name, range(50)))
    assert [each.size for each in made] == list(range(50))
    assert len({type(each) for each in made}) == 1


def test_a_missing_name_is_named(importer):
    module = importer("from heavy.parts import Bass")
    with pytest.raises(AttributeError, match="'heavy.parts' has no attribute 'Bass'"):
        module.Bass()


def test_a_missing_library_is_named():
    with pytest.raises(ImportError, match="No module named 'heavier'"):
        LateName("heavier").parts.Base()


OF_ALLENNLP = """
import pickle, sys
from pathlib import Path

import elmo_plugin

predictor = elmo_plugin.load_task("ner")
found = predictor.predict_json({"sentence": "Ada Lovelace lived in London."})
print([each["text"] for each in found["entities"]])
LATE = "fairscale nltk scipy sklearn spacy tensorboardX torchvision torch._dynamo".split()
print([name for name in LATE if name in sys.modules])

import torch
from allennlp.common import Params
from allennlp.common.cached_transformers import get as get_model, get_tokenizer
from allennlp.common.util import sanitize
from allennlp.data.image_loader import TorchImageLoader
from allennlp.data.tokenizers import SpacyTokenizer
from allennlp.fairness.fairness_metrics import Independence
from allennlp.modules.transformer.activation_layer import ActivationLayer
from allennlp.nn.parallel.fairscale_fsdp_accelerator import _FSDP
from allennlp.training.learning_rate_schedulers import LearningRateScheduler
from allennlp.training.metrics import Auc, SpearmanCorrelation
from allennlp.training.optimizers import Optimizer

auc, correlation = Auc(), SpearmanCorrelation()
auc(torch.tensor([0.1, 0.9, 0.8]), torch.tensor([0, 1, 1]))
correlation(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, 2.0, 3.0]))
assert auc.get_metric() == 1 and abs(correlation.get_metric() - 1) < 1e-6

import spacy
import transformers

spacy.blank("en").to_disk("blank")
tokens = SpacyTokenizer("blank", pos_tags=False).tokenize("Ada, here")
assert [each.text for each in tokens] == ["Ada", ",", "here"]
assert sanitize([spacy.blank("en")("Ada")[0], None]) == ["Ada", "None"]

Path("vocab.txt").write_text("\\n".join(("[PAD] [UNK] [CLS] [SEP] [MASK] ada here").split()))
transformers.BertTokenizerFast("vocab.txt").save_pretrained("bert")
config = transformers.BertConfig(7, 8, 1, 1, 8, max_position_embeddings=8)
transformers.BertModel(config).save_pretrained("bert")
tokenizer = get_tokenizer("bert")
assert isinstance(tokenizer, transformers.PreTrainedTokenizerBase)
assert tokenizer.tokenize("Ada here") == ["ada", "here"]
assert get_model("bert", make_copy=True)(torch.tensor([[2, 5]])).pooler_output.shape == (1, 8)

layer = ActivationLayer(2, 3, "gelu", pool=False)
assert layer(torch.ones(1, 2)).shape == (1, 3)
parameters = list(layer.named_parameters())
for name, base in (("adafactor", "Adafactor"), ("adamw", "AdamW")):
    params = Params({"type": f"huggingface_{name}"})
    optimizer = Optimizer.from_params(params, model_parameters=parameters)
    assert isinstance(optimizer, getattr(transformers.optimization, base))
    layer(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    pickle.loads(pickle.dumps(optimizer.state_dict()))
params = Params({"type": "constant_with_warmup", "num_warmup_steps": 2})
scheduler = LearningRateScheduler.from_params(params, optimizer=optimizer, num_epochs=1)
assert scheduler.lr_scheduler.lr_lambdas[0](1) == 0.5
assert pickle.loads(pickle.dumps(Independence(2, 2, "wasserstein")))

try:
    _FSDP(layer)
except Exception as error:
    # Fairscale's constructor needs several processes.
    assert "torch.distributed" in str(error) or "process group" in str(error), error
import fairscale, torchvision
assert issubclass(_FSDP, fairscale.nn.FullyShardedDataParallel)
torchvision.io.write_png(torch.zeros(3, 4, 5, dtype=torch.uint8), "black.png")
assert TorchImageLoader(size_divisibility=0)("black.png")[0].shape[0] == 3
"""


def test_allennlp_works_as_before(tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", OF_ALLENNLP],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["['Ada Lovelace', 'London']", "[]"]
