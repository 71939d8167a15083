"""The commands and examples of the guide run, and its links lead somewhere."""

import json
import os
import re
import shutil
import subprocess
import sys
from functools import lru_cache
from itertools import chain

import _jsonnet
import pytest

from elmo_plugin.environment import _WORD_VECTORS
from tests.docs_server import write_client
from tests.guide import PROJECT, blocks, make_workplace, with_places, write_file
from tests.waiting import wait_until

GUIDE = sorted((PROJECT / "docs").glob("*.md"))
RESULTS = sorted((PROJECT / "docs/results").glob("*.md"))
# They change the package, so they run in a copy of it: the two about a task one after the other.
ON_TASKS, ON_CELLS = ("adding-a-task", "testing-a-task"), ("adding-a-cell",)
FOR_DEVELOPERS = [PROJECT / f"docs/{name}.md" for name in ON_TASKS + ON_CELLS]
PAGES = [PROJECT / "README.md", *(page for page in GUIDE if page not in FOR_DEVELOPERS)]
CARDS = sorted((PROJECT / "pretrained").rglob("*.md"))
READMES = [*FOR_DEVELOPERS, *RESULTS, *CARDS] + [
    PROJECT / name for name in ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
]
READMES += [PROJECT / f"{folder}/README.md" for folder in ("benchmarks", "experiments", "fixtures")]
PROGRAMS = ("allennlp", "elmo", "python")
ARCHIVE = re.compile(r"out/(\w+)/model\.tar\.gz")
COMMAND = re.compile(r"(?:^|[\s&;|])(allennlp|elmo) ([a-z][\w-]*)((?:\\\n|[^\n|;&])*)")


def named(page):
    return str(page.relative_to(PROJECT))


class Shell:
    """Runs bash with programs that a server of Python processes runs."""

    def __init__(self, folder):
        self.programs = folder / "bin"
        self.home = folder
        self.programs.mkdir()
        path = str(folder / "socket")
        for name in PROGRAMS:
            write_client(self.programs / name, path)
        environment = {k: v for k, v in os.environ.items() if not k.startswith("ELMO_")}
        environment["PYTHONPATH"] = str(PROJECT)
        command = [sys.executable, "-m", "tests.docs_server", path]
        self.server = subprocess.Popen(command, cwd=PROJECT, env=environment)
        wait_until(lambda: os.path.exists(path) or self.server.poll() is not None, seconds=120)
        assert os.path.exists(path)

    def run(self, script, folder):
        """What a script printed; an `AssertionError` with it if the script failed."""
        caches = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        environment = {
            "ELMO_CACHE": str(self.home / "layers"),
            "HOME": str(self.home),
            "OMP_NUM_THREADS": "1",
            "PATH": f"{self.programs}:{os.environ['PATH']}",
            "PYTHONPATH": str(PROJECT),
            # Of compiled kernels.
            "XDG_CACHE_HOME": caches,
        }
        ended = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
        )
        assert ended.returncode == 0, f"{script}\n{ended.stdout[-5000:]}"
        return ended.stdout


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    shell = Shell(tmp_path_factory.mktemp("shell"))
    yield shell
    shell.server.kill()
    shell.server.wait()


@pytest.fixture(scope="module")
def archive_of(shell, tmp_path_factory):
    """The folder of a training of `experiments/<name>.jsonnet`, trained when first asked for."""
    folder = tmp_path_factory.mktemp("trained")
    make_workplace(folder)

    def train(name):
        if not (folder / f"out/{name}").exists():
            shell.run(f"allennlp train experiments/{name}.jsonnet -s out/{name}", folder)
        return folder / f"out/{name}"

    return train


@pytest.fixture(scope="module")
def help_of(shell, tmp_path_factory):
    """What `allennlp train --help` prints, and the like; many pages show the same command."""
    folder = tmp_path_factory.mktemp("help")
    return lru_cache(maxsize=None)(lambda command: shell.run(f"{command} --help", folder))


def run(block, shell, folder):
    text = with_places(block.text)
    if block.file is not None:
        write_file(block, folder)
    elif block.language == "bash":
        shell.run(text, folder)
    elif block.language == "python":
        (folder / "example.py").write_text(text, encoding="utf-8")
        shell.run("python example.py", folder)
    if block.language == "jsonnet":
        place = str(folder / (block.file or "experiments/ablations/example.jsonnet"))
        _jsonnet.evaluate_snippet(place, text, ext_vars=dict(os.environ))


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_what_a_page_shows_runs(page, shell, archive_of, tmp_path):
    make_workplace(tmp_path)
    to_run = [block for block in blocks(page) if block.reason is None]
    text = "".join(block.text for block in to_run)
    for name in set(ARCHIVE.findall(text)):
        if f"-s out/{name}" not in text:
            shutil.copytree(archive_of(name), tmp_path / "out" / name)
    for block in to_run:
        try:
            run(block, shell, tmp_path)
        except (AssertionError, RuntimeError) as error:
            pytest.fail(f"{block}: {error}")


@pytest.mark.parametrize("names", [ON_TASKS, ON_CELLS])
def test_the_package_is_extended_as_pages_say(names, tmp_path):
    for name in ("elmo_plugin", "experiments", "fixtures", "tests"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(PROJECT / name, tmp_path / name, ignore=ignored)
    for name in ("pyproject.toml", ".allennlp_plugins"):
        shutil.copy(PROJECT / name, tmp_path)
    (tmp_path / "pretrained").symlink_to(PROJECT / "pretrained")
    path = f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(tmp_path)}
    pages = (blocks(PROJECT / f"docs/{name}.md") for name in names)
    for block in chain.from_iterable(pages):
        if block.file is not None:
            write_file(block, tmp_path)
        elif block.language == "bash" and block.reason is None:
            command = ["bash", "-euo", "pipefail", "-c", block.text]
            ended = subprocess.run(
                command, cwd=tmp_path, env=environment, capture_output=True, text=True
            )
            assert ended.returncode == 0, f"{block}: {ended.stdout[-5000:]}{ended.stderr[-2000:]}"


@pytest.mark.parametrize("page", PAGES + READMES, ids=named)
def test_what_is_not_run_has_the_form_of_what_runs(page, shell, help_of, tmp_path):
    for block in blocks(page):
        if block.language == "python":
            compile(block.text, str(block), "exec")
        elif block.language == "bash":
            (tmp_path / "block.sh").write_text(block.text, encoding="utf-8")
            shell.run("bash -n block.sh", tmp_path)
            for program, command, arguments in COMMAND.findall(block.text):
                known = help_of(f"{program} {command}")
                step = re.match(r"\s+([a-z]+)\b", arguments)
                if step and re.search(rf"^    {step[1]} ", known, re.MULTILINE):
                    known = help_of(f"{program} {command} {step[1]}")
                for option in re.findall(r"\s(--[a-z][\w-]*)", arguments):
                    assert re.search(rf"(?<![\w-]){option}(?![\w-])", known), (
                        f"{block}: {program} {command} {option}"
                    )


@pytest.mark.parametrize("page", PAGES + READMES, ids=named)
def test_links_lead_to_files_and_headings(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if "://" in target:
            continue
        file, _, heading = target.partition("#")
        path = (page.parent / file).resolve() if file else page
        assert path.exists(), f"{page}: {target}"
        if heading:
            titles = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
            anchors = {re.sub(r"[^\w\- ]", "", title).lower().replace(" ", "-") for title in titles}
            assert heading in anchors, f"{page}: {target}"


def test_the_index_names_every_page():
    index = (PROJECT / "docs/all-pages.md").read_text(encoding="utf-8")
    for page in GUIDE:
        assert page.name in ("README.md", "all-pages.md") or f"({page.name})" in index, page
    results = (PROJECT / "experiments/README.md").read_text(encoding="utf-8")
    for page in RESULTS:
        assert f"(../docs/results/{page.name})" in results, page


@pytest.mark.parametrize("page", [*GUIDE, *RESULTS, *CARDS, PROJECT / "README.md"], ids=named)
def test_a_page_is_read_at_one_sitting(page):
    assert len(page.read_text(encoding="utf-8").split()) <= 1500, "Cut it in two."


def test_every_environment_variable_is_explained():
    source = (PROJECT / "elmo_plugin/environment.py").read_text(encoding="utf-8")
    page = (PROJECT / "docs/data.md").read_text(encoding="utf-8")
    names = set(re.findall(r"ELMO_[A-Z_]*[A-Z]", source))
    names |= {f"{name}_{what}" for name in _WORD_VECTORS for what in ("DIM", "CASED")}
    for name in names:
        assert f"`{name}`" in page, name


def test_the_guide_is_a_website_without_a_warning_that_loads_nothing_from_elsewhere(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(tmp_path / "site")]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=PROJECT, env=environment, capture_output=True, text=True)
    assert built.returncode == 0 and "WARNING" not in built.stderr, built.stderr
    pages = sorted((tmp_path / "site").rglob("*.html"))
    # A page of each file, those outside docs/ that are named here, the report, the one for missing
    # pages. MkDocs warns of a link to a file that is not among them.
    others = ["CHANGELOG", "CONTRIBUTING", "benchmarks", "experiments"]
    others += [f"examples/{path.stem}" for path in PROJECT.glob("examples/*.ipynb")]
    assert len(pages) == len(GUIDE) + len(RESULTS) + len(CARDS) + len(others) + 2
    assert all((tmp_path / f"site/{name}/index.html").is_file() for name in others)
    assert 'id="elmo_plugin.load_task"' in (tmp_path / "site/api/index.html").read_text()
    index = json.loads((tmp_path / "site/search/search_index.json").read_text(encoding="utf-8"))
    assert "Quickstart" in {found["title"] for found in index["docs"]}
    for page in pages:
        text = page.read_text()
        assert not re.search(r"<(?:script|img|iframe)[^>]* src=.?https?:", text), page
        loaded = re.findall(r"<link[^>]* rel=.?(?:stylesheet|preconnect|icon)[^>]*>", text)
        assert not any("http" in link for link in loaded), page
