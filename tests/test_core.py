"""What works where only torch, NumPy, safetensors, filelock and perhaps h5py are installed."""

import ast
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from pkgutil import walk_packages
from typing import List

import pytest

import elmo_plugin
from tests.test_import_direction import ALLENNLP_SIDE, modules

PROJECT = Path(__file__).resolve().parent.parent
# All other packages that pyproject.toml names, and what these bring along.
OTHERS = (
    "datasets fastapi flair huggingface_hub jinja2 lmdb matplotlib nltk packaging playwright "
    "pytest ray requests sacrebleu scipy sentence_transformers seqeval spacy starlette thinc tqdm "
    "uvicorn"
).split()
PREAMBLE = """
import os, sys
from tests.core_only import HIDDEN
HIDDEN += {hidden!r}
environment = dict(os.environ)
"""


def run(script: str, *arguments: object, cwd: Path = PROJECT, with_h5py: bool = False) -> str:
    """What a script prints in a process where nothing but the core's requirements is there."""
    preamble = PREAMBLE.format(hidden=OTHERS if with_h5py else [*OTHERS, "h5py"])
    command = [sys.executable, "-c", preamble + script, *map(str, arguments)]
    environment = {n: v for n, v in os.environ.items() if not n.startswith("ELMO_")}
    environment["PYTHONPATH"] = str(PROJECT)
    # PyTorch's optimizers set it if it is not set.
    environment.setdefault("TORCHINDUCTOR_CACHE_DIR", tempfile.gettempdir())
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def core_modules() -> List[str]:
    return [name for name in modules() if not name.startswith(ALLENNLP_SIDE)]


def test_every_core_module_can_be_imported_and_opens_no_file():
    script = """
before = set(sys.modules)
import elmo_plugin
loaded = set(sys.modules) - before
assert not loaded & {"torch", "numpy", "h5py"}
assert not [name for name in loaded if name.startswith("elmo_plugin.")]
opened = []
def note(event, arguments):
    if event == "open" and isinstance(arguments[0], (str, bytes)):
        name = os.fsdecode(arguments[0])
        if not name.endswith((".py", ".pyc", ".so")) and "__pycache__" not in name:
            opened.append(name)
import filelock, numpy, safetensors.numpy, torch
sys.addaudithook(note)
from importlib import import_module
for name in sys.argv[1:]:
    import_module(name)
assert dict(os.environ) == environment, set(os.environ.items()) ^ set(environment.items())
print(opened)
"""
    assert run(script, *core_modules()) == "[]\n"


def test_vectors_of_sentences_and_mixes_without_allennlp(tmp_path):
    script = """
from shutil import make_archive
import torch
from elmo_plugin import (
    Bilm, BilmOptions, Elmo, ScalarMix, embed_sentences, load_bilm, load_weights, save_weights
)
bilm = load_bilm()
sentences = [["The", "play", "began"], ["They", "play"]]
vectors = list(embed_sentences(bilm, sentences))
assert [v.shape[1] for v in vectors] == [3, 2]
# The compiler takes two seconds to import.
assert "torch._dynamo" not in sys.modules
elmo = Elmo(dropout=0.0)
ids = elmo.bilm.characters.batch_ids(sentences)
mixed = elmo(ids)
torch.testing.assert_close(mixed[0], vectors[0].mean(dim=0), atol=1e-5, rtol=1e-5)
mixed.sum().backward()
torch.testing.assert_close(ScalarMix(3).weights(), torch.full((3,), 1 / 3))
save_weights(bilm, "weights.safetensors")
bilm.save_pretrained("folder")
zipped = load_bilm(make_archive("folder", "zip", "folder"))
assert all(torch.equal(a, b) for a, b in zip(bilm.parameters(), zipped.parameters()))
again = Bilm(BilmOptions.from_dict(bilm.options.source))
load_weights(again, "weights.safetensors")
assert all(torch.equal(a, b) for a, b in zip(bilm.parameters(), again.parameters()))
assert dict(os.environ) == environment
print("done")
"""
    assert run(script, cwd=tmp_path) == "done\n"


def test_allennlp_does_not_find_modules_that_need_other_libraries():
    # It imports all that it finds for `--include-package elmo_plugin`.
    found = {module.name for module in walk_packages(elmo_plugin.__path__, "elmo_plugin.")}
    assert "elmo_plugin.elmo.embed" in found
    integrations = {name for name in modules() if name.startswith("elmo_plugin.integrations.")}
    assert integrations and not integrations & found


def test_the_public_names_are_those_that_a_type_checker_sees():
    tree = ast.parse((PROJECT / "elmo_plugin" / "__init__.py").read_text())
    imported = {
        alias.name
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for statement in node.body
        for alias in statement.names
    }
    others = {"load_archive", "load_predictor", "load_task"}
    assert imported == {*elmo_plugin.__all__, *others}
    assert imported <= set(dir(elmo_plugin))
    for name in imported:
        assert getattr(elmo_plugin, name).__name__ == name
    with pytest.raises(AttributeError, match="'elmo_plugin' has no attribute 'elmo2'"):
        elmo_plugin.elmo2  # noqa: B018


def test_all_public_names_can_be_listed_and_imported_without_allennlp():
    script = """
from elmo_plugin import *
import elmo_plugin
assert load_bilm
for name in dir(elmo_plugin):
    try:
        getattr(elmo_plugin, name)
    except ImportError as error:
        assert "pip install '.[allennlp]'" in str(error), error
        print(name)
"""
    assert run(script).split() == ["load_archive", "load_predictor", "load_task"]


@pytest.mark.parametrize(
    "line, before",
    [
        ("elmo_plugin", ""),
        ("elmo_plugin.plugin", "import elmo_plugin.bilm; elmo_plugin.ScalarMix"),
    ],
)
def test_allennlp_finds_the_plugin_under_both_names(tmp_path, line, before):
    (tmp_path / ".allennlp_plugins").write_text(f"{line}\n")
    script = f"""
import os
{before}
from allennlp.common.plugins import import_plugins
from allennlp.common.checks import ConfigurationError
import_plugins()
from allennlp.models import Model
from allennlp.modules import TokenEmbedder
from elmo_plugin.util import errors
print(all(f"elmo-{{task}}" in Model.list_available() for task in ("bilm", "srl", "coref")))
print(issubclass(errors.ConfigurationError, ConfigurationError), "ELMO_DATA" in os.environ)
print(TokenEmbedder.by_name("elmo-token-embedder").__name__)
"""
    environment = {n: v for n, v in os.environ.items() if not n.startswith("ELMO_")}
    environment["PYTHONPATH"] = str(PROJECT)
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.stdout == "True\nTrue True\nElmoTokenEmbedder\n", done.stderr


def test_a_bilm_is_trained_by_a_loop_without_allennlp(tmp_path):
    text = PROJECT / "fixtures" / "corpora" / "lm" / "small" / "train.txt"
    script = """
import runpy
sys.argv[0] = sys.argv[1]
del sys.argv[1]
runpy.run_path(sys.argv[0], run_name="__main__")
assert dict(os.environ) == environment
"""
    out = tmp_path / "out"
    example = PROJECT / "examples" / "train_bilm.py"
    options = ("--epochs", 3, "--tokens-per-batch", 256)
    lines = run(script, example, text, out, *options, with_h5py=True).splitlines()
    losses = [json.loads(line)["perplexity"] for line in lines]
    assert len(losses) == 3 and losses[2] < 0.9 * losses[0]
    load = """
from elmo_plugin import embed_sentences, load_bilm
bilm = load_bilm("options.json", "weights.hdf5")
print(next(embed_sentences(bilm, [["a", "b"]])).shape[1])
"""
    assert run(load, cwd=out, with_h5py=True) == "2\n"


def test_all_but_hdf5_works_without_h5py(tmp_path):
    script = """
from elmo_plugin import load_bilm, load_weights
from elmo_plugin.bilm.files.folders import save_bilm
from elmo_plugin.commands.main import main
from elmo_plugin.util.errors import ConfigurationError
open("text.txt", "w").write("They play chess .\\n")
main(["embed", "text.txt", "vectors.safetensors", "--top"])
main(["score", "text.txt", "--output", "words.tsv"])
main(["neighbours", "build", "text.txt", "index"])
bilm = load_bilm()
for uses_hdf5 in (
    lambda: main(["embed", "text.txt", "vectors.hdf5", "--top"]),
    lambda: load_weights(bilm, sys.argv[1]),
    lambda: save_bilm(bilm, "folder"),
):
    try:
        uses_hdf5()
    except (ConfigurationError, SystemExit) as error:
        print(error)
"""
    weights = PROJECT / "fixtures" / "bilm" / "weights.hdf5"
    refusals = run(script, weights, cwd=tmp_path).splitlines()[-3:]
    advice = "HDF5 needs the package h5py: pip install h5py, or use safetensors files."
    assert refusals == [f"elmo embed: {advice}", advice, advice]
    names = {"text.txt", "vectors.safetensors", "words.tsv", "index"}
    assert {path.name for path in tmp_path.iterdir()} == names


@pytest.mark.parametrize("command", ["train", "predict", "evaluate"])
def test_commands_of_trained_models_say_how_to_install_allennlp(command):
    script = """
from elmo_plugin.commands.main import main
for arguments in (["--help"], [sys.argv[1], "--help"]):
    try:
        main(arguments)
    except SystemExit as stopped:
        print(stopped.code)
"""
    help, shown = run(script, command).split("\n0\n")
    assert command in help
    assert shown.startswith(f"elmo {command}: ") and "'.[allennlp]'" in shown
    assert shown.count("\n") == 1
