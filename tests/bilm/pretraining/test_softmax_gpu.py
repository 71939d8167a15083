"""The GPU's kernel of the softmax; without a GPU, Triton's interpreter runs it."""

import pytest
import torch
from torch.nn.functional import cross_entropy

from elmo_plugin.bilm.pretraining import next_word_loss
from elmo_plugin.bilm.pretraining.softmax import Softmax

pytest.importorskip("triton", reason="comes with PyTorch for CUDA")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def make(rows: int, words: int, dtype: torch.dtype):
    logits = torch.randn(rows, words, device=DEVICE).mul_(5.0).to(dtype)
    bias = torch.randn(words, device=DEVICE)
    bias[3] = -torch.inf
    return logits, bias, torch.randint(4, words, (rows,), device=DEVICE)


@pytest.mark.parametrize("dtype, most", [(torch.float32, 1e-5), (torch.bfloat16, 4e-3)])
@pytest.mark.parametrize("words", [5, 2048, 5001])
def test_losses_and_gradients_are_those_of_cross_entropy(words, dtype, most):
    logits, bias, targets = make(7, words, dtype)
    exact = logits.double().requires_grad_()
    expected = cross_entropy(exact + bias, targets, reduction="none")
    expected.sum().backward()
    losses = next_word_loss._run_rows(False, bias, targets, logits)
    torch.testing.assert_close(losses.double(), expected, rtol=1e-5, atol=1e-5)
    assert torch.equal(logits, exact.to(dtype))
    assert torch.equal(next_word_loss._run_rows(True, bias, targets, logits), losses)
    assert (logits.double() - exact.grad).abs().max() <= most


def test_nan_is_passed_on_to_its_row_only():
    logits, bias, targets = make(3, 3000, torch.float32)
    logits[1, 2500] = torch.nan
    losses = next_word_loss._run_rows(True, bias, targets, logits)
    assert losses.isnan().tolist() == logits.isnan().any(dim=1).tolist() == [False, True, False]


def test_no_row_has_no_loss():
    logits, bias, targets = make(1, 10, torch.float32)
    assert next_word_loss._run_rows(True, bias, targets[:0], logits[:0]).shape == (0,)


@pytest.mark.skipif(DEVICE == "cpu", reason="needs a GPU")
@pytest.mark.parametrize("num_samples", [None, 100])
def test_a_gpu_gives_what_the_processor_gives(num_samples):
    layer = Softmax(3000, 16, num_samples)
    hidden = [torch.randn(50, 16, requires_grad=True) for _ in range(2)]
    targets = [torch.randint(0, 3000, (50,)) for _ in range(2)]
    # The samples of the two devices differ; in evaluation there are none.
    layer.train(num_samples is None)
    expected = torch.stack(layer(hidden, targets)).sum()
    gradients = torch.autograd.grad(expected, [*hidden, layer.weight, layer.bias])
    layer.cuda()
    moved = [part.detach().cuda().requires_grad_() for part in hidden]
    found = torch.stack(layer(moved, [part.cuda() for part in targets])).sum()
    torch.testing.assert_close(found.cpu(), expected, rtol=1e-5, atol=1e-5)
    there = torch.autograd.grad(found, [*moved, layer.weight, layer.bias])
    for one, other in zip(there, gradients):
        torch.testing.assert_close(one.cpu(), other, rtol=1e-4, atol=1e-5)
