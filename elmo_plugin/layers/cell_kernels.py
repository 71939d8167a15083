"""Builds `cell_kernels.cpp` on the machine that runs it, once."""

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Optional

_SOURCE = Path(__file__).with_suffix(".cpp")
_FLAGS = ("-O3", "-march=native", "-fno-math-errno", "-fPIC", "-fopenmp")
_MOST_SECONDS = 60


@lru_cache(maxsize=None)
def cell_kernels() -> Optional[ctypes.CDLL]:
    """
    The functions of `cell_kernels.cpp`; `None` where they cannot be built.

    Built at first use with the C++ compiler of the machine (`$CXX`, or `c++`) and kept in the
    user's cache folder, under a name that tells the source, the compiler and the processor.
    """
    compiler = shutil.which(os.environ.get("CXX", "c++"))
    if compiler is None or not _SOURCE.exists():
        return None
    try:
        key = (_SOURCE.read_text(encoding="utf-8"), *_FLAGS, compiler, _processor())
        name = hashlib.sha256("\0".join(key).encode()).hexdigest()[:24]
        library = _cache_folder() / f"cells-{name}.so"
        if not library.exists():
            _build(compiler, library)
        return ctypes.CDLL(str(library))
    # No room, no rights, a compiler that knows no such flag: PyTorch does the same, slower.
    except (OSError, subprocess.SubprocessError):
        return None


def _build(compiler: str, library: Path) -> None:
    library.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=library.parent) as folder:
        parts, built = Path(folder) / "cells.o", Path(folder) / library.name
        # Linked without OpenMP: its functions are then those of the runtime that PyTorch has
        # loaded. A second one would bring threads of its own.
        for arguments in (
            [*_FLAGS, "-c", str(_SOURCE), "-o", parts],
            ["-shared", parts, "-o", built],
        ):
            subprocess.run(
                [compiler, *arguments], check=True, capture_output=True, timeout=_MOST_SECONDS
            )
        # Several processes may build at once; each sees a whole file or none.
        os.replace(built, library)


def _cache_folder() -> Path:
    folder = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(folder) / "elmo_plugin"


def _processor() -> str:
    """What decides which instructions there are: home folders are shared between machines."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine() + platform.processor()
    wanted = ("flags", "Features", "model name")
    return "\n".join(sorted({line for line in lines if line.startswith(wanted)}))
