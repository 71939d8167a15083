"""Building the compiled cells, and what happens where they cannot be built."""

import os
import stat

import pytest
import torch

from elmo_plugin.layers import HighwayCell, ProjectedCell
from elmo_plugin.layers.cell_kernels import cell_kernels
from elmo_plugin.layers.fused_cells import fused

CPU = torch.device("cpu")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A machine that has built nothing yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cell_kernels.cache_clear()
    yield tmp_path / "elmo_plugin"
    cell_kernels.cache_clear()


needs_compiler = pytest.mark.skipif(cell_kernels() is None, reason="no C++ compiler")


@needs_compiler
def test_they_are_built_once_and_nothing_else_is_left(cache):
    assert cell_kernels() is not None
    (built,) = cache.iterdir()
    before = built.stat().st_mtime_ns
    cell_kernels.cache_clear()
    assert cell_kernels() is not None
    assert [path.stat().st_mtime_ns for path in cache.iterdir()] == [before]


@needs_compiler
def test_another_processor_or_compiler_builds_its_own(cache, monkeypatch):
    cell_kernels()
    monkeypatch.setattr("elmo_plugin.layers.cell_kernels._processor", lambda: "another")
    cell_kernels.cache_clear()
    cell_kernels()
    assert len(list(cache.iterdir())) == 2


def fake_compiler(folder, script: str) -> str:
    path = folder / "compiler"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


@pytest.mark.parametrize("script", ["exit 1", "exit 0"], ids=["fails", "writes nothing"])
def test_a_compiler_that_does_not_work_leaves_the_cells_as_they_are(
    cache, tmp_path, monkeypatch, script
):
    monkeypatch.setenv("CXX", fake_compiler(tmp_path, script))
    assert cell_kernels() is None
    assert not list(cache.iterdir())
    cell = ProjectedCell()
    assert fused(cell, CPU, torch.float32, 3, 2) is cell


def test_so_does_a_machine_without_one(cache, monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert cell_kernels() is None


def test_so_does_a_cache_that_cannot_be_written(tmp_path, cache, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", os.fspath(tmp_path / "file"))
    assert cell_kernels() is None


def test_a_file_that_is_no_library_is_not_loaded(cache, tmp_path, monkeypatch):
    monkeypatch.setenv("CXX", fake_compiler(tmp_path, 'for last; do :; done; echo no > "$last"'))
    assert cell_kernels() is None


@pytest.mark.parametrize(
    "device, dtype",
    [(torch.device("cuda"), torch.float32), (CPU, torch.float64), (CPU, torch.float16)],
    ids=["GPU", "float64", "float16"],
)
@pytest.mark.parametrize("cell", [ProjectedCell(), HighwayCell()], ids=["projected", "highway"])
def test_only_what_was_compiled_for_is_replaced(cell, device, dtype):
    assert fused(cell, device, dtype, 3, 2) is cell
