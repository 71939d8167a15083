"""What the package is without its checkout: built, installed, and used from another folder."""

import email
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from argparse import Namespace
from pathlib import Path
from shutil import copy, copytree, ignore_patterns

import h5py
import pytest

from scripts.docs_links import link_to_repository

PROJECT = Path(__file__).resolve().parent.parent
# What git tracks, but for .gitignore and settings of editors and commits.
SOURCES = [".allennlp_plugins", ".ci", ".github", "CHANGELOG.md", "CITATION.cff"]
SOURCES += ["CONTRIBUTING.md", "Dockerfile", "LICENSE", "MANIFEST.in", "Makefile", "NOTICE"]
SOURCES += ["README.md", "SECURITY.md", "benchmarks", "constraints.txt", "docs", "elmo_plugin"]
SOURCES += ["examples", "experiments", "fixtures", "licenses", "mkdocs.yml", "pretrained"]
SOURCES += ["pyproject.toml", "scripts", "setup.py", "tests"]
BUILD_SDIST = "from setuptools import build_meta; print(build_meta.build_sdist('..'))"
SMALL_EXPERIMENT = """
(import 'mine/sst_elmo.jsonnet') {
  settings+: { hidden_size: 8, feedforward_dim: 8, classifier_dims: [8, 8], num_epochs: 1 },
}
"""


def run(*command, cwd, **options):
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The source distribution, and the wheel that pip makes of it."""
    folder = tmp_path_factory.mktemp("built")
    # Where setuptools may leave its files, and finds none of an earlier version.
    (folder / "sources").mkdir()
    for name in SOURCES:
        source, target = PROJECT / name, folder / "sources" / name
        if source.is_dir():
            copytree(source, target, ignore=ignore_patterns("__pycache__"))
        else:
            copy(source, target)
    lines = run(sys.executable, "-c", BUILD_SDIST, cwd=folder / "sources").splitlines()
    sdist = folder / lines[-1]
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--no-index"]
    run(*pip, "--no-deps", "--no-build-isolation", sdist, cwd=folder)
    (wheel,) = folder.glob("*.whl")
    return Namespace(sdist=sdist, wheel=wheel)


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory):
    """An environment with the wheel, and a folder and variables in which to use it."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder / "env", with_pip=False)
    python = folder / "env" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python]
    run(*pip, "install", "--no-index", "--no-deps", built.wheel, cwd=folder)
    # Dependencies are those of these tests. Further .pth files there, such as that of an editable
    # elmo_plugin, are not read.
    (site_packages,) = folder.glob("env/lib/*/site-packages")
    libraries = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (site_packages / "dependencies.pth").write_text("\n".join(libraries))
    (folder / "work").mkdir()
    variables = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("ELMO_", "PYTHON")) or name == "ELMO_CACHE"
    }
    return Namespace(bin=python.parent, options={"cwd": folder / "work", "env": variables})


def test_the_wheel_holds_the_package_and_what_ships_with_it(built):
    with zipfile.ZipFile(built.wheel) as wheel:
        found = {name for name in wheel.namelist() if ".dist-info/" not in name}
    expected = [path.relative_to(PROJECT) for path in (PROJECT / "elmo_plugin").rglob("*.*")]
    expected = {str(path) for path in expected if "__pycache__" not in path.parts}
    shipped = ("experiments/**/*.*sonnet", "fixtures/corpora/**/*.*", "fixtures/cove/*.pth")
    for pattern in (*shipped, "pretrained/small/*", "pretrained/tasks/**/*.*"):
        expected.update(
            f"elmo_plugin/{path.relative_to(PROJECT)}" for path in PROJECT.glob(pattern)
        )
    assert {path for path in found if not path.endswith("experiments/README.md")} == expected


def test_both_are_small_enough_for_an_index(built):
    assert built.wheel.stat().st_size < 80e6
    assert built.sdist.stat().st_size < 100e6


def test_the_source_distribution_holds_all_but_the_weights_of_the_medium_biLM(built):
    with tarfile.open(built.sdist) as sdist:
        found = {name.partition("/")[2] for name in sdist.getnames()}
    paths = [path for name in SOURCES for path in (PROJECT / name, *(PROJECT / name).rglob("*"))]
    expected = {str(path.relative_to(PROJECT)) for path in paths if "__pycache__" not in path.parts}
    medium = {f"pretrained/medium/{name}.hdf5" for name in ("softmax", "weights")}
    assert expected - found == medium & expected


def test_modules_that_are_gone_from_the_checkout_are_not_packed(tmp_path):
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE", "NOTICE"):
        copy(PROJECT / name, tmp_path)
    for name in ("licenses", "scripts"):
        copytree(PROJECT / name, tmp_path / name)
    folders = ("elmo_plugin/integrations/for_spacy", "experiments", "fixtures", "pretrained")
    for folder in (*folders, "build/lib/elmo_plugin"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "elmo_plugin/__init__.py").write_text('__version__ = "0"')
    (tmp_path / "build/lib/elmo_plugin/gone.py").touch()
    script = "from setuptools import build_meta; print(build_meta.build_wheel('.'))"
    name = run(sys.executable, "-c", script, cwd=tmp_path).splitlines()[-1]
    with zipfile.ZipFile(tmp_path / name) as wheel:
        packed = [path for path in wheel.namelist() if path.endswith(".py")]
    assert packed == ["elmo_plugin/__init__.py"]


@pytest.fixture(scope="module")
def metadata(built):
    with zipfile.ZipFile(built.wheel) as wheel:
        (name,) = [name for name in wheel.namelist() if name.endswith("/METADATA")]
        return email.message_from_bytes(wheel.read(name))


def test_its_metadata_needs_no_more_than_the_core(metadata):
    needed = [line for line in metadata.get_all("Requires-Dist") if "extra" not in line]
    names = [line.split(">")[0] for line in needed]
    assert sorted(names) == ["filelock", "h5py", "numpy", "safetensors", "torch"]
    assert [line for line in needed if ";" in line] == [line for line in needed if "h5py" in line]


def test_it_has_the_licences_and_the_version_of_the_citation(metadata, built):
    licences = metadata.get_all("License-File")
    names = [f"licenses/{name}.txt" for name in metadata["License-Expression"].split(" AND ")[1:]]
    assert licences == ["LICENSE", "NOTICE", *names]
    with zipfile.ZipFile(built.wheel) as wheel:
        found = [name.partition("/licenses/")[2] for name in wheel.namelist()]
    assert set(licences) <= set(found)
    assert f"\nversion: {metadata['Version']}\n" in (PROJECT / "CITATION.cff").read_text()


def test_the_page_on_an_index_has_no_link_to_a_file_that_the_index_does_not_have(metadata):
    readme, page = (PROJECT / "README.md").read_text(), metadata.get_payload()
    assert re.findall(r"\]\((?!https://)", readme) and "![" not in readme
    assert not re.findall(r"\]\((?!https://)", page)
    assert page.count("\n") == readme.count("\n")
    address = "https://example.org/repository"
    linked = link_to_repository(readme, "README.md", "v1", repository=address)
    assert re.sub(rf"\({address}/blob/v1/", "(", linked) == readme
    named = "[`docs/a.md`](../docs/a.md#b), [b](x/b.md), [c](#d)"
    named = link_to_repository(named, "examples/c.md", "v1", repository=None)
    assert named == "`docs/a.md`, b (`examples/x/b.md`), [c](#d)"


def test_a_biLM_reads_sentences_from_python(installed):
    script = (
        "import elmo_plugin, sys; bilm = elmo_plugin.load_bilm()\n"
        "(layers,) = elmo_plugin.embed_sentences(bilm, [['They', 'play', 'chess']])\n"
        "print(elmo_plugin.__file__, tuple(layers.shape), 'allennlp' in sys.modules)"
    )
    shown = run(installed.bin / "python", "-c", script, **installed.options).split(maxsplit=1)
    assert Path(shown[0]).is_relative_to(installed.bin.parent)
    assert shown[1] == "(3, 3, 256) False\n"


def test_elmo_embeds_a_text_with_the_biLM_that_ships(installed):
    folder = installed.options["cwd"]
    (folder / "text.txt").write_text("They play chess\n")
    run(installed.bin / "elmo", "embed", "text.txt", "out.hdf5", "--top", **installed.options)
    with h5py.File(folder / "out.hdf5") as file:
        assert file["0"].shape == (3, 256)


def test_spacy_finds_the_components_and_the_architecture(installed):
    script = (
        "import spacy; nlp = spacy.blank('en'); nlp.add_pipe('elmo')\n"
        "print(nlp('They play chess')._.elmo.shape)\n"
        "print([nlp.has_factory(f'elmo_{task}') for task in ('ner', 'srl', 'coref')])\n"
        "print(spacy.registry.architectures.get('elmo.Tok2Vec.v1').__module__)"
    )
    shown = run(installed.bin / "python", "-c", script, **installed.options).splitlines()
    module = "elmo_plugin.integrations.for_spacy.tok2vec"
    assert shown == ["(3, 3, 256)", "[True, True, True]", module]


def test_experiments_are_copied_and_trained_elsewhere(installed):
    folder = installed.options["cwd"]
    run(installed.bin / "elmo", "experiments", "mine", **installed.options)
    (folder / "small.jsonnet").write_text(SMALL_EXPERIMENT)
    train = [installed.bin / "python", "-m", "allennlp", "train", "small.jsonnet", "-s", "out"]
    run(*train, "--include-package", "elmo_plugin", **installed.options)
    assert (folder / "out" / "model.tar.gz").is_file()
