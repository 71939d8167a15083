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
from typing import Dict, List, Optional

import elmo_plugin
from elmo_plugin.environment import setting
from elmo_plugin.util.files import cache_folder

_REQUIREMENT = re.compile(r"([\w.-]+).*?(?:extra == [\"']([\w-]+)[\"'])?$")
# Extras that no feature needs.
_OF_DEVELOPERS = ("dev", "docs")


@dataclass(kw_only=True)
class Options:
    pass


def run(args: Options) -> str:
    _show("elmo_plugin", f"{elmo_plugin.__version__} in {Path(elmo_plugin.__file__).parent}")
    _show("Python", f"{platform.python_version()}, {sys.executable}")
    _show("platform", platform.platform())
    packages = _packages()
    core = packages.pop("", ["torch", "numpy", "safetensors", "filelock"])
    _show("packages", ", ".join(f"{name} {_version(name) or 'is missing'}" for name in core))
    _show("AllenNLP", _allennlp())
    for extra, names in packages.items():
        if missing := [name for name in names if _version(name) is None]:
            _show("missing", f"{', '.join(missing)} (for the extra `{extra}`)")
    set_names = sorted(name for name in os.environ if name.startswith("ELMO_"))
    _show("variables", ", ".join(f"{name}={os.environ[name]}" for name in set_names) or "none")
    _show("downloads", _folder(cache_folder()))
    _show("layers", _folder(Path(layers) if (layers := setting("ELMO_CACHE")) else None))
    # An error is what is broken.
    for name in core:
        import_module(name)
    _show_processors()
    return ""


def _show(name: str, text: str) -> None:
    print(f"{name:<13}{text}", flush=True)


def _packages() -> Dict[str, List[str]]:
    """The names of the required packages by extra; the core's by the empty string."""
    packages: Dict[str, List[str]] = {}
    for line in metadata.requires("elmo-plugin") or [] if _version("elmo-plugin") else []:
        if (match := _REQUIREMENT.match(line)) and match[2] not in _OF_DEVELOPERS:
            packages.setdefault(match[2] or "", []).append(match[1])
    return packages


def _version(package: str) -> Optional[str]:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _allennlp() -> str:
    """Its version, or what is missing or wrong about it and the packages that it needs."""
    try:
        import_module("elmo_plugin.dependencies").check_dependencies()
    except ImportError as error:
        return str(error).replace("\n", f"\n{'':<13}")
    return _version("allennlp") or ""


def _folder(path: Optional[Path]) -> str:
    if path is None:
        return "no folder"
    exists = next(each for each in (path, *path.absolute().parents) if each.exists())
    is_writable = exists.is_dir() and os.access(exists, os.W_OK)
    return f"{path}{'' if is_writable else ', which cannot be written'}"


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
    compiler = os.environ.get("CXX") or "c++"
    _show("compiler", f"{compiler} ({shutil.which(compiler.split()[0]) or 'not found'})")
    # Where kernels are missing, a warning says why and what that means.
    logging.basicConfig(stream=sys.stdout, level=logging.INFO, format=f"{'':<13}%(message)s")
    library = import_module("elmo_plugin.modules.kernels.compiled").compiled_kernels()
    _show("kernels", "none" if library is None else library._name)
