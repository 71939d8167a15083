import ctypes
import hashlib
import logging
import os
import shlex
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from pathlib import Path
from typing import List, Optional, Union

import torch

from elmo_plugin.util.files import cache_folder

logger = logging.getLogger(__name__)

_FOLDER = Path(__file__).parent
_SOURCES = sorted(_FOLDER.glob("*.cpp"))
_HEADERS = sorted(_FOLDER.glob("*.h"))
#: The environment variable that turns kernels off if it is 0.
SWITCH = "ELMO_COMPILED_KERNELS"
# `-fno-trapping-math` lets GCC vectorise loops with comparisons. NaN and infinity stay correct.
_FLAGS = "-O3 -march=native -fno-math-errno -fno-trapping-math -fPIC -fopenmp".split()
_MAX_SECONDS = 300


@lru_cache(maxsize=None)
def compiled_kernels() -> Optional[ctypes.CDLL]:
    """
    The library of the kernels. `None` if it cannot be built or `ELMO_COMPILED_KERNELS` is `0`.

    The machine's C++ compiler (`$CXX`, or `c++`) builds it at first use; the user's cache folder
    keeps it. Its file name contains a hash of the source, the compiler's command and the processor.
    """
    if os.environ.get(SWITCH) == "0":
        logger.info(f"Running without compiled kernels: {SWITCH} is 0")
        return None
    try:
        name, *rest = shlex.split(os.environ.get("CXX") or "c++")
        command = [shutil.which(name) or name, *rest]
        sources = [path.read_text(encoding="utf-8") for path in [*_SOURCES, *_HEADERS]]
        key = "\0".join([*sources, *command, *_FLAGS, _processor()]).encode()
        folder = cache_folder()
        if folder is None:
            raise OSError("found no home folder")
        library = folder / f"kernels-{hashlib.sha256(key).hexdigest()[:24]}.so"
        if not library.exists():
            _build(command, library)
        return ctypes.CDLL(str(library))
    # A full disk, no permission, no home folder, or a compiler without one of the flags.
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        said = (getattr(error, "stderr", None) or b"").decode(errors="replace").strip()
        logger.info(f"Running without compiled kernels, more slowly: {error} {said[-2000:]}")
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


def _build(command: List[str], library: Path) -> None:
    library.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=library.parent) as folder:
        parts = [Path(folder) / f"{source.stem}.o" for source in _SOURCES]
        built = Path(folder) / "kernels.so"
        steps = [
            [*command, *_FLAGS, "-c", str(source), "-o", str(part)]
            for source, part in zip(_SOURCES, parts)
        ]
        # Not linked to OpenMP, so that its functions resolve to the runtime that PyTorch has
        # loaded: a second runtime would start its own threads.
        run = partial(subprocess.run, check=True, capture_output=True, timeout=_MAX_SECONDS)
        with ThreadPoolExecutor() as executor:
            list(executor.map(run, steps))
        run([*command, "-shared", *map(str, parts), "-o", str(built)])
        # A library that cannot be loaded fails here, before it is kept.
        ctypes.CDLL(str(built))
        # Several processes may build at once; each sees a whole file or none.
        os.replace(built, library)


def _processor() -> str:
    """The processor's instruction sets: a home folder may be shared between machines."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    wanted = ("flags", "Features", "model name")
    return "\n".join(sorted({line for line in lines if line.startswith(wanted)}))
