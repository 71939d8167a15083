"""
Imports run one way: commands, analysis, tasks, elmo, bilm, modules. A room may import rooms that
stand after it, and `corpora`, `training`, `util` and top-level modules, which import nothing of
ours, except that `training` may import `util`.
"""

import ast
from pathlib import Path
from typing import Dict, Iterator, List, Tuple

import pytest

PACKAGE = Path(__file__).parent.parent / "elmo_plugin"
DIRECTION = ("commands", "analysis", "tasks", "elmo", "bilm", "modules")
INDEPENDENT = ("archives", "corpora", "metrics", "training", "util")


def wrong_arrows(package: Path) -> List[str]:
    """One line for each import that may not be, as `file:line: reason`."""
    wrong = []
    for path in sorted(package.rglob("*.py")):
        importer = (package.name, *path.relative_to(package).with_suffix("").parts)
        if importer == (package.name, "__init__"):
            continue
        for line, imported in _imports(path, importer, package):
            reason = _why_wrong(importer[1:], imported[1:], package)
            if reason:
                wrong.append(f"{path.relative_to(package)}:{line}: {reason}")
    return wrong


def _imports(
    path: Path, importer: Tuple[str, ...], package: Path
) -> Iterator[Tuple[int, Tuple[str, ...]]]:
    """Line and dotted name of everything of ours that a file imports, wherever it does so."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: List[Tuple[str, ...]] = []
        if isinstance(node, ast.Import):
            names = [tuple(alias.name.split(".")) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = tuple(node.module.split(".")) if node.module else ()
            if node.level:
                module = importer[: len(importer) - node.level] + module
            # `from elmo_plugin import bilm` imports the room, not the whole.
            names = [module + (alias.name,) for alias in node.names]
            names = [name if _is_module(name, package) else module for name in names]
        yield from ((node.lineno, name) for name in names if name[:1] == (package.name,))


def _is_module(name: Tuple[str, ...], package: Path) -> bool:
    path = package.parent.joinpath(*name)
    return path.is_dir() or path.with_suffix(".py").is_file()


def _why_wrong(importer: Tuple[str, ...], imported: Tuple[str, ...], package: Path) -> str:
    if not imported:
        return f"imports {package.name} itself, which imports everything"
    room, other = importer[0], imported[0]
    for name in (room, other):
        if name not in DIRECTION + INDEPENDENT and (package / name).is_dir():
            return f"{name} has no place among {DIRECTION + INDEPENDENT}"
    if room == other:
        is_shared = len(imported) > 1 and (package / "tasks" / f"{imported[1]}.py").is_file()
        is_other = importer[1] != "__init__" and imported[1:2] != importer[1:2]
        if room == "tasks" and is_other and not is_shared:
            return f"task {importer[1]} imports {'.'.join(imported)}"
        return ""
    if other == "util":
        return ""
    if room not in DIRECTION or room == "modules":
        return f"{room} imports {other}, but must import only util"
    if other in DIRECTION and DIRECTION.index(other) < DIRECTION.index(room):
        return f"{room} imports {other}, which points back"
    return ""


def test_imports_run_one_way():
    assert wrong_arrows(PACKAGE) == []


def make(root: Path, files: Dict[str, str]) -> Path:
    for name in DIRECTION + INDEPENDENT + ("tasks/srl", "tasks/ner"):
        files = {f"{name}/__init__.py": "", **files}
    files = {
        "__init__.py": "from elmo_plugin.bilm import x\n",
        "environment.py": "",
        "tasks/tokenizer.py": "",
        **files,
    }
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
        ("bilm/deep/a.py", "from ...elmo import b", "points back"),
        ("bilm/a.py", "def f():\n    import elmo_plugin.elmo", "points back"),
        ("bilm/a.py", "if TYPE_CHECKING:\n    from elmo_plugin.elmo import x", "points back"),
        ("bilm/__init__.py", "from elmo_plugin.elmo import x", "points back"),
        ("modules/a.py", "from elmo_plugin.corpora import b", "only util"),
        ("corpora/a.py", "import elmo_plugin.modules", "only util"),
        ("training/a.py", "from elmo_plugin.bilm import b", "only util"),
        ("util/a.py", "from elmo_plugin.bilm import b", "only util"),
        ("util/a.py", "from elmo_plugin.training import b", "only util"),
        ("environment.py", "from elmo_plugin.bilm import b", "only util"),
        ("elmo/a.py", "from elmo_plugin import load_bilm", "imports elmo_plugin itself"),
        ("elmo/a.py", "import elmo_plugin", "imports elmo_plugin itself"),
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
        ("analysis/a.py", "from elmo_plugin import elmo, bilm"),
        ("tasks/__init__.py", "import elmo_plugin.tasks.srl, elmo_plugin.tasks.ner"),
        ("tasks/srl/a.py", "from elmo_plugin.tasks.srl.b import c"),
        ("tasks/srl/a.py", "from . import b\nfrom .. import srl"),
        ("tasks/srl/a.py", "from elmo_plugin.corpora.b import c\nimport elmo_plugin.environment"),
        ("tasks/srl/a.py", "from elmo_plugin.tasks.tokenizer import words"),
        ("bilm/a.py", "import torch, elmo_plugin_of_another\nfrom elmo_plugin.bilm.b import c"),
        ("corpora/a.py", "from elmo_plugin.corpora import b"),
        ("training/a.py", "from elmo_plugin.util import b"),
    ],
)
def test_an_arrow_that_runs_the_right_way_is_left_alone(tmp_path, name, line):
    assert wrong_arrows(make(tmp_path, {name: line})) == []
