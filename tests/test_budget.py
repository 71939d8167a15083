"""
How large the package may be. A change that needs more room makes it first, by removing what is no
longer needed; where a feature honestly needs more, its commit raises the number and says why.
"""

from collections import Counter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "elmo_plugin"
FILES = {path: path.read_text(encoding="utf-8").splitlines() for path in PACKAGE.rglob("*.py")}
# Lines of Python by room. Modules beside the rooms and the small ones count as the top level.
MOST_LINES = {
    "analysis": 3_010,
    "bilm": 4_360,
    "commands": 3_075,
    "corpora": 1_802,
    "elmo": 2_270,
    "integrations": 873,
    "modules": 3_260,
    "serve": 772,
    "tasks": 5_035,
    "training": 1_035,
    "top level": 2_700,
}
MOST_RAISES = 311
# Modules of at most 30 lines: each is one more file to open.
MOST_SMALL_FILES = 30


def room_of(path: Path) -> str:
    room = path.relative_to(PACKAGE).parts[0]
    return room if room in MOST_LINES else "top level"


@pytest.mark.parametrize("room", MOST_LINES)
def test_a_room_keeps_to_its_budget(room):
    lines = sum(len(text) for path, text in FILES.items() if room_of(path) == room)
    most = MOST_LINES[room]
    assert lines <= most, f"{room}: {lines} lines, budget {most}. Make room before you add."


def test_errors_are_raised_where_input_enters():
    raises = Counter(
        {
            path: sum(line.lstrip().startswith("raise ") for line in text)
            for path, text in FILES.items()
        }
    )
    most = [f"{path.relative_to(PACKAGE)}: {number}" for path, number in raises.most_common(5)]
    assert raises.total() <= MOST_RAISES, f"{raises.total()} raises; most in {', '.join(most)}"


def test_files_are_worth_opening():
    small = sorted(str(path.relative_to(PACKAGE)) for path in FILES if len(FILES[path]) <= 30)
    assert len(small) <= MOST_SMALL_FILES, f"{len(small)} of at most 30 lines: {', '.join(small)}"
