import ctypes
import hashlib
import logging
import os
import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import lru_cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Iterator, List, Optional, Union

import torch

from elmo_plugin.util.atomic_write import atomic_write
from elmo_plugin.util.files import cache_folder

logger = logging.getLogger(__name__)

_FOLDER = Path(__file__).parent
_SOURCES = sorted(_FOLDER.glob("*.cpp"))
_HEADERS = sorted(_FOLDER.glob("*.h"))
#: The environment variable that turns kernels off if it is 0.
SWITCH = "ELMO_COMPILED_KERNELS"
# `-fno-trapping-math` lets GCC vectorise loops with comparisons. NaN and infinity stay correct.
_FLAGS = "-std=gnu++17 -O3 -fno-math-errno -fno-trapping-math -fPIC".split()
# Apple's clang lacks OpenMP, and by default fuses fewer products with sums.
_FLAGS += ["-ffp-contract=fast"] if sys.platform == "darwin" else ["-fopenmp"]
_NATIVE = "-mcpu=apple-m1" if sys.platform == "darwin" else "-march=native"
_MAX_SECONDS = 300


@lru_cache(maxsize=None)
def compiled_kernels() -> Optional[ctypes.CDLL]:
    """
    The library of the kernels. `None` on Windows, if `ELMO_COMPILED_KERNELS` is `0`, and, after a
    warning, if it cannot be built.

    The machine's C++ compiler (`$CXX`, or `c++`) builds it at first use. The user's cache folder
    keeps it, or, if that cannot be written, a folder among the temporary files. Its file name
    contains a hash of the source, the compiler's command and, unless that has `-march` or `-mcpu`,
    the processor.
    """
    if sys.platform == "win32" or os.environ.get(SWITCH) == "0":
        logger.info(f"No compiled kernels: {SWITCH} is 0, or this is Windows.")
        return None
    try:
        return _load_or_build()
    # A full disk, no permission, no compiler, or one without one of the flags.
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        said = (getattr(error, "stderr", None) or b"").decode(errors="replace").strip()
        logger.warning(
            "Running without compiled kernels, so that LSTM layers may take twice as long on a "
            f"CPU: {' '.join([str(error), said[-2000:]]).strip(' .')}. Install a C++ compiler "
            f"(such as g++), or name one in CXX. {SWITCH}=0 hides this warning."
        )
        return None


def call_kernel(name: str, *arguments: Union[int, float, torch.Tensor, None]) -> None:
    """Calls a function of `compiled_kernels` with the addresses of tensors."""
    getattr(compiled_kernels(), name)(*map(_as_c, arguments))


def _as_c(value: Union[int, float, torch.Tensor, None]) -> object:
    if isinstance(value, int):
        return ctypes.c_int64(value)
    if isinstance(value, float):
        return ctypes.c_float(value)
    return ctypes.c_void_p(None if value is None else value.data_ptr())


def _load_or_build() -> ctypes.CDLL:
    compiler, flags = shlex.split(os.environ.get("CXX", "")) or ["c++"], _FLAGS
    key = [path.read_text(encoding="utf-8") for path in [*_SOURCES, *_HEADERS]]
    if not any(part.startswith(("-march=", "-mcpu=")) for part in compiler):
        flags = [*flags, _NATIVE]
        # A home folder may be shared between machines.
        key.append(_processor())
    digest = hashlib.sha256("\0".join([*key, *compiler, *flags]).encode()).hexdigest()
    name = f"kernels-{digest[:24]}.so"
    for folder in _folders():
        # Needs neither a compiler nor permission to write.
        with suppress(OSError):
            return ctypes.CDLL(str(folder / name))
    with TemporaryDirectory() as work:
        built = _build(compiler, flags, Path(work))
        for folder in _folders():
            with suppress(OSError):
                with atomic_write(folder / name) as unfinished:
                    shutil.copyfile(built, unfinished)
                    # A library that cannot be loaded is not kept.
                    ctypes.CDLL(str(unfinished))
                return ctypes.CDLL(str(folder / name))
        return ctypes.CDLL(str(built))


def _folders() -> Iterator[Path]:
    """Where the library is looked for, and kept: the user's cache, or a folder of this user's."""
    if sys.platform == "win32":
        return
    if (cache := cache_folder()) is not None:
        yield cache
    with suppress(OSError):
        private = Path(gettempdir(), f"elmo_plugin-{os.getuid()}")
        with suppress(FileExistsError):
            private.mkdir(mode=0o700)
        # A library is code: nobody else may put one there. A link has all permissions.
        status = private.lstat()
        if status.st_uid == os.getuid() and not status.st_mode & 0o077:
            yield private


def _build(compiler: List[str], flags: List[str], folder: Path) -> Path:
    parts = [folder / f"{source.stem}.o" for source in _SOURCES]
    steps = [
        [*compiler, *flags, "-c", str(source), "-o", str(part)]
        for source, part in zip(_SOURCES, parts)
    ]
    run = partial(subprocess.run, check=True, capture_output=True, timeout=_MAX_SECONDS)
    with ThreadPoolExecutor() as executor:
        list(executor.map(run, steps))
    # Not linked to OpenMP, so that its functions resolve to the runtime that PyTorch has loaded: a
    # second runtime would start its own threads.
    built = folder / "kernels.so"
    run([*compiler, "-shared", *map(str, parts), "-o", str(built)])
    return built


def _processor() -> str:
    """The processor's instruction sets; none on a Mac, where `_NATIVE` is the same for all."""
    if not (path := Path("/proc/cpuinfo")).exists():
        return ""
    wanted = ("flags", "Features", "model name")
    lines = path.read_text(encoding="utf-8").splitlines()
    return "\n".join(sorted({line for line in lines if line.startswith(wanted)}))
