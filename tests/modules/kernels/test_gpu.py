"""Machines on which the kernels for GPUs cannot be compiled."""

import ast
import logging
from pathlib import Path

import pytest
import torch

import elmo_plugin
from elmo_plugin.modules.kernels import gpu

pytest.importorskip("triton", reason="comes with PyTorch for CUDA")
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


@pytest.fixture(autouse=True)
def asked_anew():
    gpu.has_triton.cache_clear()
    yield
    gpu.has_triton.cache_clear()


def test_kernels_can_run_here():
    assert gpu.has_triton(DEVICE)


def test_without_a_compiler_there_are_no_kernels(monkeypatch, caplog):
    class Broken:
        def __getitem__(self, grid):
            raise RuntimeError("Failed to find C compiler.")

    monkeypatch.setattr(gpu.kernels("softmax_rows"), "add_one", Broken())
    with caplog.at_level(logging.INFO):
        assert not gpu.has_triton(DEVICE)
    assert "more slowly: Failed to find C compiler." in caplog.text


@pytest.mark.parametrize("reason", ["switched off", "no Triton", "ROCm"])
def test_they_can_be_missing_or_switched_off(monkeypatch, reason):
    if reason == "switched off":
        monkeypatch.setenv("ELMO_COMPILED_KERNELS", "0")
    elif reason == "no Triton":
        monkeypatch.setattr(gpu, "find_spec", lambda name: None)
    else:
        monkeypatch.setattr(torch.version, "hip", "6.2")
    assert not gpu.has_triton(DEVICE)


def test_every_launch_fuses_multiplications_and_additions_whatever_the_default():
    """Launches are the only calls of something in brackets: `kernel[grid](...)`."""
    launches = [
        {keyword.arg: keyword.value for keyword in call.keywords}
        for file in Path(elmo_plugin.__path__[0]).rglob("*.py")
        if "modules.kernels.gpu" in (source := file.read_text()) or file.parent.name == "gpu"
        for call in ast.walk(ast.parse(source))
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Subscript)
        and isinstance(call.func.value, ast.Attribute)
    ]
    assert len(launches) >= 8
    assert all(ast.unparse(launch["enable_fp_fusion"]) == "True" for launch in launches)
