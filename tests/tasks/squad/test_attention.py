import pytest
import torch

from elmo_plugin.tasks.squad import attention
from elmo_plugin.tasks.squad.attention import BiAttention, SelfAttention
from tests.tasks.squad import oracle

LENGTHS = [7, 1, 4, 9]


def batch(lengths, dim=5, seed=0):
    """Vectors so large that no softmax is nearly uniform; padding is not zero."""
    generator = torch.Generator().manual_seed(seed)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)
    vectors = 2 * torch.randn(*mask.shape, dim, dtype=torch.float64, generator=generator)
    return vectors, mask


def make(kind):
    torch.manual_seed(3)
    return kind(5, 6).double()


def test_the_passage_attends_to_the_question_as_the_equations_say():
    module = make(BiAttention)
    (passage, passage_mask), (question, question_mask) = batch(LENGTHS), batch([3, 2, 1, 5], seed=1)
    merged = module(passage, question, passage_mask, question_mask)
    for row, (passage_length, question_length) in enumerate(zip(LENGTHS, [3, 2, 1, 5])):
        expected = oracle.bi_attention(
            module,
            passage[row, :passage_length].tolist(),
            question[row, :question_length].tolist(),
        )
        torch.testing.assert_close(
            merged[row, :passage_length], torch.tensor(expected, dtype=torch.float64)
        )


@pytest.mark.parametrize("most", [1, 30, 2**24], ids=["token by token", "few", "all at once"])
def test_a_text_attends_to_itself_as_the_equations_say(monkeypatch, most):
    monkeypatch.setattr(attention, "_MAX_SCORES", most)
    module = make(SelfAttention)
    text, mask = batch(LENGTHS)
    merged = module(text, mask)
    for row, length in enumerate(LENGTHS):
        expected = oracle.self_attention(module, text[row, :length].tolist())
        torch.testing.assert_close(
            merged[row, :length], torch.tensor(expected, dtype=torch.float64)
        )


def test_gradients_do_not_depend_on_how_much_is_computed_at_once(monkeypatch):
    module = make(SelfAttention)
    text, mask = batch(LENGTHS)
    found = []
    for most in (2**24, 50):
        monkeypatch.setattr(attention, "_MAX_SCORES", most)
        text = text.detach().requires_grad_()
        merged = module(text, mask)[mask]
        found.append(torch.autograd.grad(merged.square().sum(), [text, *module.parameters()]))
    torch.testing.assert_close(*found)
    assert not found[0][0][~mask].any()


def test_a_large_null_logit_turns_attention_off():
    module = make(SelfAttention)
    text, mask = batch([6])
    with torch.no_grad():
        module.null_logit.fill_(1e4)
    expected = torch.nn.functional.linear(text, module.merge.weight[:, :5], module.merge.bias)
    torch.testing.assert_close(module(text, mask), expected.relu())
