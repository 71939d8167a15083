import subprocess
import sys
from pathlib import Path
from typing import Callable, List

import pytest

from elmo_plugin import dependencies
from elmo_plugin.dependencies import check_dependencies

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Makes Python believe that a version of a package is installed."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def make(name: str, version: str, needs: List[str] = ()) -> None:
        folder = tmp_path / f"{name}-{version}.dist-info"
        folder.mkdir()
        lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
        lines += [f"Requires-Dist: {need}" for need in needs]
        (folder / "METADATA").write_text("\n".join(lines) + "\n")

    return make


def message() -> str:
    with pytest.raises(ImportError) as error:
        check_dependencies()
    return str(error.value)


@pytest.mark.parametrize(
    "name, version, expected",
    [
        ("allennlp", "2.9.3", "elmo_plugin needs allennlp==2.10.1, but allennlp 2.9.3 is"),
        ("transformers", "4.49.0.dev0", "transformers 4.49.0.dev0 is installed"),
        ("torch", "2.5.1+cu121", "elmo_plugin needs torch>=2.6, but torch 2.5.1+cu121 is"),
    ],
)
def test_a_version_that_does_not_fit_is_named(install, name, version, expected):
    install(name, version)
    assert expected in message()


def test_a_package_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setattr(dependencies, "ALLENNLP", dependencies.Requirement("allennlp-none==1"))
    assert "elmo_plugin needs allennlp-none==1, but allennlp-none is not installed." in message()


def test_packages_of_other_extras_are_not_needed(install):
    install("elmo_plugin", "0.2.0", ['spacy<3.0; extra == "allennlp"', 'seqeval>9; extra == "dev"'])
    assert "elmo_plugin needs spacy<3.0, but spacy" in message()
    assert "seqeval" not in message()


def test_the_check_imports_none_of_the_packages():
    script = (
        "import importlib.util, sys\n"
        f"spec = importlib.util.spec_from_file_location('check', {dependencies.__file__!r})\n"
        "module = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(module)\n"
        "module.check_dependencies()\n"
        "print([name for name in ('torch', 'numpy', 'spacy', 'h5py') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr


@pytest.mark.parametrize(
    "torch, torchvision, needs, problem",
    [
        ("2.14.0a0+git1234", "0.29.1", ["torch"], None),
        ("2.6.0+cpu", "0.21.0+cpu", ["torch==2.6.0"], None),
        (
            "2.7.1",
            "0.21.0",
            ["numpy", "torch==2.6.0", 'scipy; extra == "scipy"'],
            "torchvision needs torch==2.6.0, but torch 2.7.1 is installed.",
        ),
    ],
)
def test_a_torchvision_made_for_another_torch_is_named(install, torch, torchvision, needs, problem):
    install("torch", torch)
    install("torchvision", torchvision, needs)
    if problem is None:
        check_dependencies()
    else:
        assert problem in message()


def test_every_problem_has_a_sentence_and_the_cure_installs_nothing_else(install):
    check_dependencies()
    install("transformers", "5.0.0")
    assert message().splitlines()[-1] == "To correct it: pip install 'transformers<4.49,>=4.40'"
    install("spacy", "4.0.0")
    install("allennlp", "2.9.3")
    lines = message().splitlines()
    assert len(lines) == 4 and "allennlp 2.9.3" in lines[2]
    assert "spacy 4.0.0" in lines[0] and "transformers 5.0.0" in lines[1]
    assert lines[-1].endswith(">=4.40' && pip install --no-deps allennlp==2.10.1")
