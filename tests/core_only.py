"""
Hides AllenNLP and what only AllenNLP needs. As a plugin of pytest (`-p tests.core_only`), it also
leaves out the test files that import these or AllenNLP's side, be it through other files.
"""

import sys
from functools import lru_cache
from importlib.machinery import PathFinder
from pathlib import Path

TESTS = Path(__file__).parent
# AllenNLP, and what no other feature needs.
HIDDEN = (
    "allennlp cached_path dill fairscale _jsonnet jsonnet more_itertools overrides "
    "sklearn tensorboardX termcolor torchvision transformers"
).split()


class Finder(PathFinder):
    """Finds what is installed, but nothing that is hidden."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        hidden = name.partition(".")[0] in HIDDEN
        return None if hidden else super().find_spec(name, path, target)


sys.meta_path[sys.meta_path.index(PathFinder)] = Finder


@lru_cache(maxsize=None)
def imports_hidden(path: Path) -> bool:
    # These scripts hide pytest, too.
    from tests.test_import_direction import ALLENNLP_SIDE, imports_of

    names = {found.name for found in imports_of(path, TESTS)}
    if any(".".join(name).startswith((*HIDDEN, *ALLENNLP_SIDE)) for name in names):
        return True
    files = [TESTS.parent.joinpath(*name).with_suffix(".py") for name in names]
    return any(imports_hidden(file) for file in files if TESTS in file.parents and file.is_file())


def pytest_ignore_collect(collection_path: Path):
    is_test = collection_path.match("test_*.py")
    # `None` leaves the decision to pytest.
    return True if is_test and imports_hidden(collection_path) else None
