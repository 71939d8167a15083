import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from elmo_plugin.analysis.studies.study import Run, digest_and_files


class Fake:
    """What `python -m allennlp` was called with."""

    def __init__(self, folder):
        self.folder = folder
        self._calls = folder / "calls.txt"

    @property
    def calls(self):
        lines = self._calls.read_text().splitlines() if self._calls.exists() else []
        return [tuple(line.split()) for line in lines]

    @property
    def parents(self):
        """The ids of the processes that called."""
        return [int(line) for line in Path(f"{self._calls}.parents").read_text().split()]

    @property
    def commands(self):
        return [f"{n} --recover" if recover == "True" else n for n, recover, _ in self.calls]


@pytest.fixture
def fake(tmp_path, monkeypatch):
    package = tmp_path / "fake" / "allennlp"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    shutil.copy(Path(__file__).with_name("fake_allennlp.py"), package / "__main__.py")
    paths = [str(package.parent), str(Path(__file__).parents[3])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    monkeypatch.setenv("FAKE_CALLS", str(tmp_path / "calls.txt"))
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    code = "import allennlp; print(allennlp.__file__)"
    found = subprocess.check_output([sys.executable, "-c", code])
    assert found.decode().startswith(str(tmp_path))
    return Fake(tmp_path)


@pytest.fixture
def make_run():
    def make(seed=1, evaluate="test.txt", **experiment):
        # Not a path, whose content would be part of the digest.
        marks = {n: f"mark {experiment.pop(n)}" for n in ("fail", "wait") if n in experiment}
        settings = {"trainer": {"validation_metric": "+f1"}, "seed": seed, **experiment, **marks}
        digest, _ = digest_and_files(settings, evaluate)
        return Run("NER", "ELMo", 1, seed, evaluate, settings, digest)

    return make
