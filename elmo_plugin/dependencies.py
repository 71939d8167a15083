"""
Names what is missing or too new before it shows as a puzzling error deep inside AllenNLP.

AllenNLP 2.10.1 must be installed without its pins, so nothing keeps a later `pip install` of
something else from moving one of the packages it stands on to a version that it cannot import.
"""

import platform
from importlib import metadata
from pathlib import Path
from typing import Dict, List, Optional

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

__all__ = ["check_dependencies"]

ALLENNLP = "allennlp==2.10.*"
CURE = (
    "pip install -r requirements.txt -c constraints.txt && pip install --no-deps allennlp==2.10.1"
)
# Those of the requirements whose wrong version breaks an import.
FRAGILE = (
    "torch",
    "transformers",
    "huggingface-hub",
    "numpy",
    "h5py",
    "jsonnet",
    "overrides",
    "safetensors",
    "spacy",
)


def check_dependencies() -> None:
    """
    Compares the installed versions with the declared ones; imports none of the packages.

    The declared ones are those of `requirements.txt` in a checkout, else those that were
    recorded when `elmo-plugin` was installed.

    # Raises

    `ImportError`
        If a package is missing or its version does not fit: a sentence for each, saying what was
        expected and what was found, and the command that mends it.
    """
    declared = _declared_requirements()
    expected = [Requirement(ALLENNLP)]
    expected += [declared[name] for name in FRAGILE if name in declared]
    problems = [_version_problem(requirement) for requirement in expected]
    problems.append(_torchvision_problem())
    sentences = [problem for problem in problems if problem is not None]
    if sentences:
        sentences.append(f"To mend it, in the checkout of elmo_plugin: {CURE} (or: make setup).")
        raise ImportError("\n".join(sentences))


def _declared_requirements() -> Dict[str, Requirement]:
    """The requirements by name; a checkout is asked first, what pip recorded may be older."""
    checkout = Path(__file__).resolve().parent.parent
    listing = checkout / "requirements.txt"
    if listing.is_file() and (checkout / "setup.py").is_file():
        lines = listing.read_text(encoding="utf-8").splitlines()
    else:
        try:
            lines = metadata.requires("elmo-plugin") or []
        except metadata.PackageNotFoundError:
            lines = []
    bare = (line.split("#")[0].strip() for line in lines)
    requirements = (Requirement(line) for line in bare if line)
    return {canonicalize_name(requirement.name): requirement for requirement in requirements}


def _version_problem(requirement: Requirement) -> Optional[str]:
    found = _installed_version(requirement.name)
    if found is None:
        return f"elmo_plugin needs {requirement}, but {requirement.name} is not installed."
    # A build like 2.6.0a0+git1234 counts as 2.6.0.
    if requirement.specifier.contains(Version(found).base_version):
        return None
    return f"elmo_plugin needs {requirement}, but {requirement.name} {found} is installed."


def _torchvision_problem() -> Optional[str]:
    """AllenNLP imports torchvision at start, which imports with its partner torch only."""
    torch, torchvision = _installed_version("torch"), _installed_version("torchvision")
    if torchvision is None:
        return "AllenNLP imports torchvision, but torchvision is not installed."
    if torch is None:
        return None
    for wanted in _required_by_torchvision():
        if not wanted.specifier.contains(torch, prereleases=True):
            return (
                f"torchvision {torchvision} needs {wanted}, but torch {torch} is installed: "
                "install the torchvision that was released with this torch."
            )
    if _is_cpu_build(torch) and not _is_cpu_build(torchvision) and _has_cuda_default():
        return (
            f"torch {torch} is a build without CUDA and torchvision {torchvision} one with it: "
            "install both from the same place."
        )
    return None


def _required_by_torchvision() -> List[Requirement]:
    lines = metadata.requires("torchvision") or []
    requirements = (Requirement(line) for line in lines)
    return [requirement for requirement in requirements if requirement.name == "torch"]


def _is_cpu_build(version: str) -> bool:
    return Version(version).local == "cpu"


def _has_cuda_default() -> bool:
    """True where a build that does not name its device is one for CUDA."""
    return platform.system() == "Linux" and platform.machine() == "x86_64"


def _installed_version(name: str) -> Optional[str]:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
