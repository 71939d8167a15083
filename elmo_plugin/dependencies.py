"""
Reports missing packages and wrong versions before they cause an error deep inside AllenNLP.

AllenNLP 2.10.1 is installed without its own requirements, which are too old. A later `pip install`
may therefore replace one of its dependencies with a version that it cannot use.
"""

import platform
import shlex
import tomllib
from importlib import metadata
from pathlib import Path
from typing import List, Optional

try:
    from packaging.requirements import Requirement
    from packaging.version import Version
except ImportError as error:
    raise ImportError(
        "This part of elmo_plugin needs AllenNLP. Install it: pip install 'elmo-plugin[allennlp]' "
        "&& pip install --no-deps allennlp==2.10.1"
    ) from error

ALLENNLP = Requirement("allennlp==2.10.1")


def check_dependencies() -> None:
    """
    Compares the installed versions with the declared ones, including the extra `allennlp`, and
    imports none of the packages. Raises `ImportError` with what was expected, what was found, and
    the commands that correct it.
    """
    declared = _declared_requirements()
    problems = {requirement: _version_problem(requirement) for requirement in declared}
    wrong = [requirement for requirement in declared if problems[requirement]]
    commands = [f"pip install {shlex.join(map(str, wrong))}"] if wrong else []
    problems[ALLENNLP] = _version_problem(ALLENNLP)
    if problems[ALLENNLP]:
        commands.append(f"pip install --no-deps {ALLENNLP}")
    sentences = [problem for problem in [*problems.values(), _torchvision_problem()] if problem]
    if commands:
        sentences.append(f"To correct it: {' && '.join(commands)}")
    if sentences:
        raise ImportError("\n".join(sentences))


def _declared_requirements() -> List[Requirement]:
    """Reads the checkout's pyproject.toml if there is one: pip's record may be older."""
    checkout = Path(__file__).resolve().parent.parent
    # Not recognised by its setup.py, which badly made wheels also write into site-packages.
    if (checkout / "constraints.txt").is_file():
        settings = tomllib.loads((checkout / "pyproject.toml").read_text(encoding="utf-8"))
        project = settings["project"]
        lines = project["dependencies"] + project["optional-dependencies"]["allennlp"]
    else:
        try:
            lines = metadata.requires("elmo-plugin") or []
        except metadata.PackageNotFoundError:
            lines = []
    # The marker of a requirement names its extra.
    parsed = [Requirement(line) for line in lines]
    extra = {"extra": "allennlp"}
    needed = [each for each in parsed if each.marker is None or each.marker.evaluate(extra)]
    for requirement in needed:
        requirement.marker = None
    return needed


def _version_problem(requirement: Requirement) -> Optional[str]:
    found = _installed_version(requirement.name)
    if found is None:
        return f"elmo_plugin needs {requirement}, but {requirement.name} is not installed."
    # A build like 2.6.0a0+git1234 counts as 2.6.0.
    if requirement.specifier.contains(Version(found).base_version):
        return None
    return f"elmo_plugin needs {requirement}, but {requirement.name} {found} is installed."


def _torchvision_problem() -> Optional[str]:
    """AllenNLP imports torchvision, which works only with the torch it was released for."""
    torch, torchvision = _installed_version("torch"), _installed_version("torchvision")
    if torchvision is None or torch is None:
        return None
    for wanted in map(Requirement, metadata.requires("torchvision") or []):
        if wanted.name == "torch" and not wanted.specifier.contains(torch, prereleases=True):
            return (
                f"torchvision {torchvision} needs {wanted}, but torch {torch} is installed: "
                "install the torchvision that was released with this torch."
            )
    if _is_cpu_build(torch) and not _is_cpu_build(torchvision) and _has_cuda_default():
        return (
            f"torch {torch} is built without CUDA, but torchvision {torchvision} with CUDA: "
            "install both from the same package index."
        )
    return None


def _is_cpu_build(version: str) -> bool:
    return Version(version).local == "cpu"


def _has_cuda_default() -> bool:
    """True if a version without a suffix such as `+cpu` is built for CUDA on this machine."""
    return platform.system() == "Linux" and platform.machine() == "x86_64"


def _installed_version(name: str) -> Optional[str]:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
