"""Machines on which the kernels for GPUs cannot be compiled."""

import logging

import pytest
import torch

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
