"""
Show what this installation has, lacks and can write, for a report of a bug or to make it faster.

Compiles the kernels for CPUs if that has not been done: in an image of a container, call this
command where XDG_CACHE_HOME names a folder that its users can read. An error at the end, with exit
code 1, names a package without which no command works.

example:
    %(prog)s > report.txt
"""

import logging
import os
import platform
import re
import shutil
import sys
from dataclasses import dataclass
from importlib import import_module, metadata
from pathlib import Path
from typing import Callable, Dict, List, Optional

import elmo_plugin
from elmo_plugin.util.atomic_write import check_output
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.files import cache_folder

_CORE = ("torch", "numpy", "safetensors", "filelock")
_OF_EXTRA = re.compile(r"([\w.-]+).*extra == [\"']([\w-]+)[\"']$")
_OF_DEVELOPERS = ("dev", "docs")


@dataclass(kw_only=True)
class Options:
    pass


def run(args: Options) -> str:
    _show("elmo_plugin", f"{elmo_plugin.__version__} in {Path(elmo_plugin.__file__).parent}")
    _show("Python", f"{platform.python_version()}, {sys.executable}")
    _show("platform", platform.platform())
    packages: Dict[str, List[str]] = {}
    for line in metadata.requires("elmo-plugin") or [] if _version("elmo-plugin") else []:
        if (match := _OF_EXTRA.match(line)) and match[2] not in _OF_DEVELOPERS:
            packages.setdefault(match[2], []).append(match[1])
    versions = {name: _version(name) or "is missing" for name in (*_CORE, "h5py")}
    _show("packages", ", ".join(f"{name} {version}" for name, version in versions.items()))
    wrong = _problem(lambda: import_module("elmo_plugin.dependencies").check_dependencies())
    _show("AllenNLP", wrong or _version("allennlp") or "")
    for extra, names in packages.items():
        if missing := [name for name in names if _version(name) is None]:
            _show("missing", f"{', '.join(missing)} (for the extra `{extra}`)")
    set_names = sorted(name for name in os.environ if name.startswith("ELMO_"))
    _show("variables", ", ".join(f"{name}={os.environ[name]}" for name in set_names) or "none")
    # What is broken is an error.
    for name in _CORE:
        import_module(name)
    layers = import_module("elmo_plugin.environment").setting("ELMO_CACHE")
    for title, folder in (("downloads", cache_folder()), ("layers", layers)):
        wrong = _problem(check_output, Path(folder, "*"), True) if folder else "no folder"
        _show(title, wrong or str(folder))
    _show_processors()
    return ""


def _show(name: str, text: str) -> None:
    print(f"{name:<13}{text}".replace("\n", f"\n{'':<13}"), flush=True)


def _version(package: str) -> Optional[str]:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _problem(check: Callable[..., object], *arguments: object) -> str:
    """What a check finds wrong; nothing if it does not."""
    try:
        check(*arguments)
    except (ConfigurationError, ImportError) as error:
        return str(error)
    return ""


def _show_processors() -> None:
    """The computer as torch sees it, and the kernels for it."""
    torch = import_module("torch")
    kinds = ("avx2", "avx512", "avx512_bf16", "amx_tile")
    found = [kind for kind in kinds if getattr(torch.cpu, f"_is_{kind}_supported", bool)()]
    bfloat16 = import_module("elmo_plugin.modules.packed_linear").ONEDNN_TAKES_BFLOAT16
    threads = f"{torch.get_num_threads()} used by torch {torch.__version__}"
    _show("CPU", f"{os.cpu_count()} cores, {threads}")
    _show("", f"{', '.join(found)}; bfloat16 is {'fast' if bfloat16 else 'slower than float32'}")
    for number in range(torch.cuda.device_count()):
        device = torch.device("cuda", number)
        has_triton = import_module("elmo_plugin.modules.kernels.gpu").has_triton(device)
        kernels = "with" if has_triton else "without"
        _show("GPU", f"{torch.cuda.get_device_name(device)}, {kernels} kernels")
    if not torch.cuda.is_available():
        _show("GPU", "mps" if torch.backends.mps.is_available() else "none")
    compiler = os.environ.get("CXX", "").strip() or "c++"
    _show("compiler", f"{compiler} ({shutil.which(compiler.split()[0]) or 'not found'})")
    # Where kernels are missing, a warning says why and what that means.
    logging.basicConfig(stream=sys.stdout, level=logging.INFO, format=f"{'':<13}%(message)s")
    library = import_module("elmo_plugin.modules.kernels.compiled").compiled_kernels()
    _show("kernels", "none" if library is None else library._name)
