"""
Reports missing packages and wrong versions before they cause an error deep inside AllenNLP.

AllenNLP 2.10.1 is installed without its own requirements, which are too old. A later `pip install`
may therefore replace one of its dependencies with a version that it cannot use.
"""

import shlex
from importlib import metadata
from typing import List, Optional

try:
    from packaging.requirements import Requirement
    from packaging.version import Version
except ImportError as error:
    raise ImportError(
        "This part of elmo_plugin needs AllenNLP. In the project's folder: pip install "
        "'.[allennlp]' && pip install --no-deps allennlp==2.10.1 (with a wheel, PATH.whl[allennlp])"
    ) from error

ALLENNLP = Requirement("allennlp==2.10.1")


def check_dependencies() -> None:
    """
    Compares the installed versions with the declared ones, including the extras `predict` and
    `allennlp`, and imports none of the packages. What only `allennlp` names may be missing. Raises
    `ImportError` with what was expected, what was found, and the commands that correct it.
    """
    needed = _requirements_of("elmo-plugin", "predict")
    needed += filter(_is_installed, _requirements_of("elmo-plugin", "allennlp"))
    wrong = {each: _version_problem(each) for each in needed}
    wrong = {requirement: problem for requirement, problem in wrong.items() if problem}
    commands = [f"pip install {shlex.join(map(str, wrong))}"] if wrong else []
    problems = [*wrong.values(), _version_problem(ALLENNLP)]
    if problems[-1]:
        commands.append(f"pip install --no-deps {ALLENNLP}")
    # AllenNLP imports torchvision, which works only with the torch it was released for.
    of_torchvision = [each for each in _requirements_of("torchvision") if each.name == "torch"]
    problems += [_version_problem(each, "torchvision") for each in of_torchvision]
    sentences = [problem for problem in problems if problem]
    if commands:
        sentences.append(f"To correct it: {' && '.join(commands)}")
    if sentences:
        raise ImportError("\n".join(sentences))


def _requirements_of(package: str, extra: str = "") -> List[Requirement]:
    """What pip has recorded that a package needs, with an extra; nothing if it is not installed."""
    try:
        declared = [Requirement(line) for line in metadata.requires(package) or []]
    except metadata.PackageNotFoundError:
        return []
    # The marker of a requirement names its extra.
    of_extra = {"extra": extra}
    needed = [each for each in declared if each.marker is None or each.marker.evaluate(of_extra)]
    for requirement in needed:
        requirement.marker = None
    return needed


def _is_installed(requirement: Requirement) -> bool:
    return any(metadata.distributions(name=requirement.name))


def _version_problem(requirement: Requirement, owner: str = "elmo_plugin") -> Optional[str]:
    try:
        found = metadata.version(requirement.name)
    except metadata.PackageNotFoundError:
        return f"{owner} needs {requirement}, but {requirement.name} is not installed."
    # A build like 2.6.0a0+git1234 counts as 2.6.0.
    if requirement.specifier.contains(Version(found).base_version):
        return None
    return f"{owner} needs {requirement}, but {requirement.name} {found} is installed."
