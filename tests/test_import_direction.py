"""
Imports run one way: commands, serve, integrations, analysis, tasks, elmo, bilm, modules. A module
may import what stands after it in this order, and `corpora`, `util` and top-level modules.
`archives`, `corpora`, `metrics`, `training`, `util` and top-level modules import nothing of ours
but `util`.

Core modules import torch, NumPy, h5py, safetensors and the standard library only.
"""

import ast
import sys
from pathlib import Path
from typing import Dict, Iterator, List, Tuple

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
INDEPENDENT = ("archives", "corpora", "metrics", "training", "util")
# Within a room, from top to bottom. A module belongs to the longest name that it begins with.
SUB_ROOMS: Dict[str, Tuple[Tuple[str, ...], ...]] = {
    "elmo": (
        ("elmo.dump", "elmo.placement"),
        ("elmo.token_embedder",),
        ("elmo",),
        ("elmo.cache",),
        ("elmo.token_batches",),
    ),
    "bilm": (
        ("bilm.pretraining", "bilm.io", "bilm.character_indexer"),
        # `Bilm` inherits its methods for files from `bilm.io.hub`.
        ("bilm", "bilm.fingerprint"),
        ("bilm.io.hub",),
        ("bilm.io.weight_files",),
        ("bilm.io.weight_fit", "bilm.io.array_files"),
        ("bilm.options",),
        ("bilm.character_cnn_options",),
        ("bilm.settings_reader",),
        ("bilm.vocabulary_file",),
    ),
    "modules": (
        ("modules.seq2seq_encoders", "modules.token_embedders", "modules"),
        ("modules.recurrent",),
        ("modules.linear",),
        ("modules.kernels", "modules.tuning"),
    ),
}
# What imports AllenNLP, or other packages that may be missing. All other modules are the core.
ALLENNLP_SIDE = (
    "elmo_plugin.allennlp_patches",
    "elmo_plugin.archives",
    "elmo_plugin.analysis.studies.checks",
    "elmo_plugin.bilm.character_indexer",
    "elmo_plugin.commands.evaluate",
    "elmo_plugin.commands.predict",
    "elmo_plugin.commands.study",
    "elmo_plugin.commands.subcommands",
    "elmo_plugin.dependencies",
    "elmo_plugin.elmo.cache.prefetch",
    "elmo_plugin.elmo.placement",
    "elmo_plugin.elmo.token_embedder",
    "elmo_plugin.integrations.datasets",
    "elmo_plugin.integrations.flair",
    "elmo_plugin.integrations.sentence_transformers",
    "elmo_plugin.integrations.spacy",
    "elmo_plugin.metrics",
    "elmo_plugin.modules.kernels.gpu.character_lookup",
    "elmo_plugin.modules.kernels.gpu.lstm_steps",
    "elmo_plugin.modules.kernels.gpu.softmax_rows",
    "elmo_plugin.modules.seq2seq_encoders",
    "elmo_plugin.modules.token_embedders",
    "elmo_plugin.plugin",
    "elmo_plugin.tasks",
    "elmo_plugin.training",
)
CORE_PACKAGES = {"elmo_plugin", "h5py", "numpy", "safetensors", "torch", *sys.stdlib_module_names}
# Registers everything, and changes AllenNLP.
PLUGIN = ("plugin", "allennlp_patches")

Name = Tuple[str, ...]


def modules(package: Path = PACKAGE) -> List[str]:
    """The dotted names of all modules; a package stands for its `__init__`."""
    paths = (path.relative_to(package.parent) for path in package.rglob("*.py"))
    return sorted(".".join(path.with_suffix("").parts).removesuffix(".__init__") for path in paths)


def wrong_arrows(package: Path) -> List[str]:
    """One line for each import that is not allowed, as `file:line: reason`."""
    wrong = []
    for path in sorted(package.rglob("*.py")):
        importer = (package.name, *path.relative_to(package).with_suffix("").parts)
        if importer[1] in ("__init__", *PLUGIN):
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node, imported in _imports(tree, importer, package):
            reason = _why_wrong(importer[1:], imported[1:], package)
            if not reason and _is_hidden(tree, node):
                reason = f"imports {'.'.join(imported)} inside a function"
            if reason:
                wrong.append(f"{path.relative_to(package)}:{node.lineno}: {reason}")
    return wrong


def foreign_imports(package: Path) -> List[str]:
    """One line for each package that a core module imports and that may not be installed."""
    wrong = []
    for path in sorted(package.rglob("*.py")):
        name = ".".join(path.relative_to(package.parent).with_suffix("").parts)
        if name.startswith(ALLENNLP_SIDE):
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            found = []
            if isinstance(node, ast.Import):
                found = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                found = [node.module]
            for imported in found:
                top = imported.partition(".")[0]
                # What is optional is imported where it is used, or in a `try` block.
                is_optional = top != "allennlp" and _is_optional(tree, node)
                if top not in CORE_PACKAGES and not is_optional:
                    wrong.append(f"{path.relative_to(package)}:{node.lineno}: imports {imported}")
    return wrong


def _imports(tree: ast.AST, importer: Name, package: Path) -> Iterator[Tuple[ast.stmt, Name]]:
    """Statement and dotted name of everything of ours that a file imports, wherever it does so."""
    for node in ast.walk(tree):
        names: List[Name] = []
        if isinstance(node, ast.Import):
            names = [tuple(alias.name.split(".")) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = tuple(node.module.split(".")) if node.module else ()
            if node.level:
                module = importer[: len(importer) - node.level] + module
            # `from elmo_plugin import bilm` imports the room, not the package.
            names = [module + (alias.name,) for alias in node.names]
            names = [name if _is_module(name, package) else module for name in names]
        yield from ((node, name) for name in names if name[:1] == (package.name,))


def _is_module(name: Name, package: Path) -> bool:
    path = package.parent.joinpath(*name)
    return path.is_dir() or path.with_suffix(".py").is_file()


def _is_hidden(tree: ast.AST, node: ast.stmt) -> bool:
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    return any(node in ast.walk(f) for f in ast.walk(tree) if isinstance(f, functions))


def _is_optional(tree: ast.AST, node: ast.stmt) -> bool:
    # `if TYPE_CHECKING:` is never run.
    blocks = (part for part in ast.walk(tree) if isinstance(part, (ast.Try, ast.If)))
    blocks = (part for part in blocks if isinstance(part, ast.Try) or _is_for_types(part))
    return _is_hidden(tree, node) or any(node in part.body for part in blocks)


def _is_for_types(part: ast.If) -> bool:
    return isinstance(part.test, ast.Name) and part.test.id == "TYPE_CHECKING"


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
    for name in DIRECTION + INDEPENDENT + ("tasks/srl", "tasks/ner", "bilm/io", "elmo/cache"):
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
        ("bilm/a.py", "from elmo_plugin.elmo import Elmo", "points back"),
        ("bilm/a.py", "import elmo_plugin.tasks.srl", "points back"),
        ("elmo/a.py", "from elmo_plugin import tasks", "points back"),
        ("analysis/a.py", "from ..commands import b", "points back"),
        ("analysis/a.py", "from .. import commands", "points back"),
        ("analysis/a.py", "from elmo_plugin.integrations import b", "points back"),
        ("bilm/deep/a.py", "from ...elmo import b", "points back"),
        ("bilm/a.py", "def f():\n    import elmo_plugin.elmo", "points back"),
        ("bilm/a.py", "if TYPE_CHECKING:\n    from elmo_plugin.elmo import x", "points back"),
        ("bilm/__init__.py", "from elmo_plugin.elmo import x", "points back"),
        ("bilm/a.py", "from elmo_plugin.bilm.io.b import x", "points back"),
        ("bilm/a.py", "from elmo_plugin.bilm.io import b", "points back"),
        ("bilm/a.py", "from elmo_plugin.bilm.pretraining.b import x", "points back"),
        ("bilm/a.py", "from elmo_plugin.bilm import Bilm", "of which it is a part"),
        ("elmo/cache/a.py", "from elmo_plugin.elmo.elmo import Elmo", "points back"),
        ("elmo/elmo.py", "import elmo_plugin.elmo.dump.b", "points back"),
        ("modules/recurrent/a.py", "import elmo_plugin.modules.seq2seq_encoders", "points back"),
        ("elmo/a.py", "def f():\n    from elmo_plugin.bilm import b", "inside a function"),
        ("modules/a.py", "from elmo_plugin.corpora import b", "only util"),
        ("corpora/a.py", "import elmo_plugin.modules", "only util"),
        ("training/a.py", "from elmo_plugin.bilm import b", "only util"),
        ("util/a.py", "from elmo_plugin.bilm import b", "only util"),
        ("util/a.py", "from elmo_plugin.training import b", "only util"),
        ("environment.py", "from elmo_plugin.bilm import b", "only util"),
        ("elmo/a.py", "from elmo_plugin import load_bilm", "imports elmo_plugin itself"),
        ("elmo/a.py", "import elmo_plugin", "imports elmo_plugin itself"),
        ("commands/a.py", "import elmo_plugin.plugin", "imports everything"),
        ("tasks/srl/a.py", "from elmo_plugin.tasks.ner import b", "task srl imports tasks.ner"),
        ("tasks/srl/a.py", "from ..ner import b", "task srl imports tasks.ner"),
        ("tasks/srl/a.py", "from elmo_plugin.tasks import ner", "task srl imports tasks.ner"),
        ("tasks/srl/a.py", "import elmo_plugin.tasks", "task srl imports tasks"),
        ("cellar/a.py", "import elmo_plugin.bilm", "cellar has no place"),
    ],
)
def test_an_arrow_that_points_back_is_found(tmp_path, name, line, reason):
    (found,) = wrong_arrows(make(tmp_path, {name: line}))
    assert found.startswith(f"{name}:{line.count(chr(10)) + 1}: ")
    assert reason in found


@pytest.mark.parametrize(
    "name, line",
    [
        ("commands/a.py", "from elmo_plugin.modules import b"),
        ("commands/a.py", "import elmo_plugin"),
        ("integrations/a.py", "import elmo_plugin"),
        ("analysis/a.py", "from elmo_plugin import elmo, bilm"),
        ("tasks/__init__.py", "import elmo_plugin.tasks.srl, elmo_plugin.tasks.ner"),
        ("tasks/srl/a.py", "from elmo_plugin.tasks.srl.b import c"),
        ("tasks/srl/a.py", "from . import b\nfrom .. import srl"),
        ("tasks/srl/a.py", "from elmo_plugin.tasks.base import c"),
        ("tasks/srl/a.py", "from elmo_plugin.corpora.b import c\nimport elmo_plugin.environment"),
        ("bilm/a.py", "import torch, elmo_plugin_of_another\nfrom elmo_plugin.bilm.b import c"),
        ("bilm/io/a.py", "from elmo_plugin.bilm.b import c\nfrom elmo_plugin.bilm.io.b import c"),
        ("bilm/__init__.py", "from elmo_plugin.bilm.io.b import c"),
        ("elmo/elmo.py", "from elmo_plugin.elmo.cache.b import c"),
        ("corpora/a.py", "from elmo_plugin.corpora import b"),
        ("training/a.py", "from elmo_plugin.util import b"),
    ],
)
def test_an_arrow_that_runs_the_right_way_is_left_alone(tmp_path, name, line):
    assert wrong_arrows(make(tmp_path, {name: line})) == []


@pytest.mark.parametrize(
    "name, line, number",
    [
        ("bilm/a.py", "import overrides", 1),
        ("bilm/a.py", "from allennlp.data import Vocabulary", 1),
        ("bilm/a.py", "def f():\n    import allennlp", 1),
        ("bilm/a.py", "try:\n    import allennlp\nexcept ImportError:\n    pass", 1),
        ("bilm/a.py", "def f():\n    import tqdm", 0),
        ("bilm/a.py", "try:\n    import lmdb\nexcept ImportError:\n    lmdb = None", 0),
        ("bilm/a.py", "if TYPE_CHECKING:\n    import spacy", 0),
        ("bilm/a.py", "if True:\n    import spacy", 1),
        ("bilm/a.py", "import json, torch.nn\nfrom . import b", 0),
        ("tasks/srl/a.py", "import allennlp", 0),
    ],
)
def test_a_package_that_may_be_missing_is_found(tmp_path, name, line, number):
    assert len(foreign_imports(make(tmp_path, {name: line}))) == number
