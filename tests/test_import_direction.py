"""
Imports run one way: commands, serve, integrations, analysis, tasks, elmo, bilm, modules. A module
may import what stands after it in this order, and `corpora`, `util` and top-level modules.
`archives`, `corpora`, `training`, `util` and top-level modules import nothing of ours but `util`.

Core modules import torch, NumPy, h5py, safetensors, filelock and the standard library only.
"""

import ast
import sys
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Tuple

import pytest

PACKAGE = Path(__file__).parent.parent / "elmo_plugin"
DIRECTION = (
    "commands",
    "serve",
    "integrations",
    "analysis",
    "tasks",
    "elmo",
    "bilm",
    "modules",
)
INDEPENDENT = ("archives", "corpora", "training", "util")
# Within a room, from top to bottom. A module belongs to the longest name that it begins with.
SUB_ROOMS: Dict[str, Tuple[Tuple[str, ...], ...]] = {
    "elmo": (
        ("elmo.store", "elmo.placement"),
        ("elmo",),
        ("elmo.cache",),
        ("elmo.token_batches",),
    ),
    "bilm": (
        ("bilm.pretraining", "bilm.files", "bilm.unit_layers", "bilm.character_indexer"),
        ("bilm",),
        ("bilm.options", "bilm.stored_options"),
        ("bilm.vocabulary_file",),
        ("bilm.pretraining.text",),
    ),
    "modules": (
        ("modules.seq2seq_encoders", "modules.token_embedders", "modules"),
        ("modules.recurrent",),
        ("modules.packed_linear",),
        ("modules.kernels", "modules.tuning"),
    ),
}
# What imports AllenNLP, or other packages that may be missing. All other modules are the core.
ALLENNLP_SIDE = (
    "elmo_plugin.allennlp_patches",
    "elmo_plugin.archives",
    "elmo_plugin.bilm.character_indexer",
    "elmo_plugin.commands.allennlp_input",
    "elmo_plugin.commands.allennlp_settings",
    "elmo_plugin.commands.evaluate",
    "elmo_plugin.commands.experiment_file",
    "elmo_plugin.commands.predict",
    "elmo_plugin.commands.study",
    "elmo_plugin.commands.subcommands",
    "elmo_plugin.commands.train",
    "elmo_plugin.dependencies",
    "elmo_plugin.elmo.cache.prefetch",
    "elmo_plugin.elmo.placement",
    "elmo_plugin.integrations.for_datasets",
    "elmo_plugin.integrations.for_flair",
    "elmo_plugin.integrations.for_sentence_transformers",
    "elmo_plugin.integrations.for_spacy",
    "elmo_plugin.modules.kernels.gpu.character_lookup",
    "elmo_plugin.modules.kernels.gpu.lstm_steps",
    "elmo_plugin.modules.kernels.gpu.softmax_rows",
    "elmo_plugin.modules.seq2seq_encoders",
    "elmo_plugin.modules.token_embedders",
    "elmo_plugin.plugin",
    "elmo_plugin.tasks",
    "elmo_plugin.training",
)
CORE_PACKAGES = {
    "elmo_plugin",
    "filelock",
    "h5py",
    "numpy",
    "safetensors",
    "torch",
    *sys.stdlib_module_names,
}
# Registers everything, and changes AllenNLP.
PLUGIN = ("plugin", "allennlp_patches")

Name = Tuple[str, ...]


def modules(package: Path = PACKAGE) -> List[str]:
    """The dotted names of all modules; a package stands for its `__init__`."""
    paths = (path.relative_to(package.parent) for path in package.rglob("*.py"))
    return sorted(".".join(path.with_suffix("").parts).removesuffix(".__init__") for path in paths)


class Import(NamedTuple):
    """A module that a file imports."""

    place: str
    name: Name
    is_hidden: bool
    is_optional: bool


def imports_of(path: Path, package: Path) -> Iterator[Import]:
    """All imports of a file, wherever they stand."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = list(ast.walk(tree))
    functions = [n for n in nodes if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]
    hidden = {inner for function in functions for inner in ast.walk(function)}
    # `if TYPE_CHECKING:` is never run.
    blocks = [n for n in nodes if isinstance(n, ast.Try)]
    blocks += [n for n in nodes if isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING"]
    optional = hidden | {inner for block in blocks for inner in block.body}
    for node in nodes:
        names: List[Name] = []
        if isinstance(node, ast.Import):
            names = [tuple(alias.name.split(".")) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = ("relative",) if node.level else tuple(node.module.split("."))
            # `from elmo_plugin import bilm` imports the room, not the package.
            names = [module + (alias.name,) for alias in node.names]
            names = [name if _is_module(name, package) else module for name in names]
        for name in names:
            place = f"{path.relative_to(package)}:{node.lineno}"
            yield Import(place, name, node in hidden, node in optional)


def _is_module(name: Name, package: Path) -> bool:
    path = package.parent.joinpath(*name)
    return path.is_dir() or path.with_suffix(".py").is_file()


def wrong_arrows(package: Path) -> List[str]:
    """One line for each import of ours that is not allowed, as `file:line: reason`."""
    wrong = []
    for path in sorted(package.rglob("*.py")):
        importer = path.relative_to(package).with_suffix("").parts
        if importer[0] in ("__init__", *PLUGIN):
            continue
        for found in imports_of(path, package):
            reason = ""
            if found.name[0] == "relative":
                reason = "a relative import"
            elif found.name[0] == package.name:
                reason = _why_wrong(importer, found.name[1:], package)
                if not reason and found.is_hidden:
                    reason = f"imports {'.'.join(found.name)} inside a function"
            if reason:
                wrong.append(f"{found.place}: {reason}")
    return wrong


def foreign_imports(package: Path) -> List[str]:
    """One line for each package that a core module imports and that may not be installed."""
    return [
        f"{found.place}: imports {'.'.join(found.name)}"
        for path in sorted(package.rglob("*.py"))
        if not ".".join(path.relative_to(package.parent).with_suffix("").parts).startswith(
            ALLENNLP_SIDE
        )
        for found in imports_of(path, package)
        # What is optional is imported where it is used, or in a `try` block.
        if found.name[0] not in CORE_PACKAGES
        and (found.name[0] == "allennlp" or not found.is_optional)
    ]


def _why_wrong(importer: Name, imported: Name, package: Path) -> str:
    room = importer[0]
    if not imported:
        # It holds the version, and loads archives with what the plugin registers.
        return "" if room in ("commands", "integrations") else f"imports {package.name} itself"
    other = imported[0]
    for name in (room, other):
        if name not in DIRECTION + INDEPENDENT and (package / name).is_dir():
            return f"{name} has no place among {DIRECTION + INDEPENDENT}"
    if other in PLUGIN:
        return "imports the plugin, which imports everything"
    if room == other:
        return _why_wrong_within(importer, imported, package)
    if other == "util":
        return ""
    if room not in DIRECTION or room == "modules":
        return f"{room} imports {other}, but must import only util"
    if other in DIRECTION and DIRECTION.index(other) < DIRECTION.index(room):
        return f"{room} imports {other}, which points back"
    return ""


def _why_wrong_within(importer: Name, imported: Name, package: Path) -> str:
    room = importer[0]
    if importer[-1] == "__init__":
        return ""
    if room == "tasks":
        is_task = (package / "tasks" / "/".join(imported[1:2])).is_dir()
        if is_task and imported[1:2] != importer[1:2]:
            return f"task {importer[1]} imports {'.'.join(imported)}"
        return ""
    if imported == (room,) and room in SUB_ROOMS:
        return f"imports {room} itself, of which it is a part"
    levels = [_level(".".join(name), SUB_ROOMS.get(room, ())) for name in (importer, imported)]
    if levels[1] < levels[0]:
        return f"{'.'.join(importer)} imports {'.'.join(imported)}, which points back"
    return ""


def _level(name: str, levels: Tuple[Tuple[str, ...], ...]) -> int:
    beginnings = [
        (len(beginning), level)
        for level, names in enumerate(levels)
        for beginning in names
        if f"{name}.".startswith(f"{beginning}.")
    ]
    return max(beginnings, default=(0, 0))[1]


def test_imports_run_one_way():
    assert wrong_arrows(PACKAGE) == []


def test_core_modules_import_no_package_that_may_be_missing():
    assert foreign_imports(PACKAGE) == []


def test_every_module_on_the_allennlp_side_exists():
    names = modules()
    for beginning in ALLENNLP_SIDE:
        assert beginning in names


def make(root: Path, files: Dict[str, str]) -> Path:
    for name in DIRECTION + INDEPENDENT + ("tasks/srl", "tasks/ner", "bilm/files", "elmo/cache"):
        files = {f"{name}/__init__.py": "", **files}
    files = {"__init__.py": "", "environment.py": "", "tasks/base.py": "", **files}
    files["plugin.py"] = "import elmo_plugin.tasks\n"
    for name, text in files.items():
        path = root / "elmo_plugin" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root / "elmo_plugin"


@pytest.mark.parametrize(
    "name, line, reason",
    [
        ("bilm/a.py", "import elmo_plugin.tasks.srl", "points back"),
        ("elmo/a.py", "from elmo_plugin import tasks", "points back"),
        ("analysis/a.py", "from .. import commands", "a relative import"),
        ("bilm/a.py", "if TYPE_CHECKING:\n    from elmo_plugin.elmo import x", "points back"),
        ("bilm/a.py", "from elmo_plugin.bilm.files import b", "points back"),
        ("bilm/a.py", "from elmo_plugin.bilm import Bilm", "of which it is a part"),
        ("elmo/cache/a.py", "from elmo_plugin.elmo.elmo import Elmo", "points back"),
        ("elmo/a.py", "def f():\n    from elmo_plugin.bilm import b", "inside a function"),
        ("modules/a.py", "from elmo_plugin.corpora import b", "only util"),
        ("util/a.py", "from elmo_plugin.training import b", "only util"),
        ("elmo/a.py", "import elmo_plugin", "imports elmo_plugin itself"),
        ("commands/a.py", "import elmo_plugin.plugin", "imports everything"),
        ("tasks/srl/a.py", "from elmo_plugin.tasks.ner import b", "task srl imports tasks.ner"),
        ("cellar/a.py", "import elmo_plugin.bilm", "cellar has no place"),
        ("commands/a.py", "from elmo_plugin.modules import b\nimport elmo_plugin", ""),
        ("tasks/__init__.py", "import elmo_plugin.tasks.srl, elmo_plugin.tasks.ner", ""),
        ("tasks/srl/a.py", "from elmo_plugin.tasks.base import c", ""),
        ("bilm/a.py", "import elmo_plugin_of_another\nfrom elmo_plugin.bilm.b import c", ""),
    ],
)
def test_an_arrow_that_points_back_is_found(tmp_path, name, line, reason):
    found = wrong_arrows(make(tmp_path, {name: line}))
    assert len(found) == bool(reason)
    for each in found:
        assert each.startswith(f"{name}:{line.count(chr(10)) + 1}: ") and reason in each


@pytest.mark.parametrize(
    "name, line, number",
    [
        ("bilm/a.py", "import overrides", 1),
        ("bilm/a.py", "def f():\n    import allennlp", 1),
        ("bilm/a.py", "try:\n    import allennlp\nexcept ImportError:\n    pass", 1),
        ("bilm/a.py", "def f():\n    import tqdm", 0),
        ("bilm/a.py", "try:\n    import lmdb\nexcept ImportError:\n    lmdb = None", 0),
        ("bilm/a.py", "import json, torch.nn\nfrom elmo_plugin import bilm", 0),
        ("tasks/srl/a.py", "import allennlp", 0),
    ],
)
def test_a_package_that_may_be_missing_is_found(tmp_path, name, line, number):
    assert len(foreign_imports(make(tmp_path, {name: line}))) == number
