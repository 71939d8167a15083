"""`Softmax` against torch's cross-entropy, and its samples against their own statistics."""

import math

import pytest
import torch
from torch.nn.functional import cross_entropy

from elmo_plugin.bilm.pretraining import next_word_loss as module
from elmo_plugin.bilm.pretraining import softmax as softmax_module
from elmo_plugin.bilm.pretraining.softmax import Softmax, sample_log_uniform
from elmo_plugin.util.errors import ConfigurationError
from tests.bilm.oracle import relative_error

NUM_WORDS, DIM, NUM_SAMPLES = 50, 4, 10
NUM_DRAWS = 3000
# Of the error of a mean over draws: 6e-5 of all values lie further out.
MOST_STANDARD_ERRORS = 4.0


def make(num_samples=None, dtype=torch.float64, num_words=NUM_WORDS) -> Softmax:
    torch.manual_seed(2)
    softmax = Softmax(num_words, DIM, num_samples).to(dtype)
    torch.nn.init.normal_(softmax.weight)
    torch.nn.init.normal_(softmax.bias)
    return softmax


def make_batch(num_predictions=30, dtype=torch.float64, num_words=NUM_WORDS):
    generator = torch.Generator().manual_seed(3)
    hidden = torch.randn(num_predictions, DIM, generator=generator, dtype=torch.float64)
    targets = torch.randint(num_words, (num_predictions,), generator=generator)
    return hidden.to(dtype).requires_grad_(), targets


def gradients(loss, hidden, softmax):
    return torch.autograd.grad(loss, [hidden, softmax.weight, softmax.bias], retain_graph=True)


def loss_of(softmax, hidden, targets, generator=None):
    (loss,) = softmax([hidden], [targets], generator)
    return loss


def full_loss(softmax, hidden, targets):
    logits = hidden @ softmax.weight.t() + softmax.bias
    return cross_entropy(logits, targets, reduction="sum")


@pytest.mark.parametrize("dtype, most", [(torch.float64, 1e-12), (torch.float32, 1e-5)])
def test_the_full_loss_is_cross_entropy(dtype, most):
    softmax, (hidden, targets) = make(dtype=dtype), make_batch(dtype=dtype)
    expected = full_loss(softmax, hidden, targets)
    found = loss_of(softmax, hidden, targets)
    assert found.item() == pytest.approx(expected.item(), rel=most)
    # What the loss is used for scales its gradients.
    pairs = zip(gradients(found * 3.0, hidden, softmax), gradients(expected * 3.0, hidden, softmax))
    assert all(relative_error(*pair) < most for pair in pairs)
    with torch.no_grad():
        assert loss_of(softmax, hidden, targets).item() == pytest.approx(expected.item(), rel=most)


@pytest.mark.parametrize("num_samples", [None, NUM_SAMPLES])
def test_taking_rows_in_pieces_changes_nothing(monkeypatch, num_samples):
    softmax, (hidden, targets) = make(num_samples), make_batch(num_predictions=200)

    def values():
        loss = loss_of(softmax, hidden, targets, torch.Generator().manual_seed(4))
        with torch.no_grad():
            read = loss_of(softmax, hidden, targets, torch.Generator().manual_seed(4))
        return [loss, read, *gradients(loss, hidden, softmax)]

    expected = values()
    monkeypatch.setattr(module, "_MAX_LOGITS", 1)
    monkeypatch.setattr(module, "_MIN_ROWS", 7)
    assert all(relative_error(*pair) < 1e-12 for pair in zip(values(), expected))


def test_no_more_logits_exist_at_once_than_allowed(monkeypatch):
    sizes = []
    linear = module.linear
    monkeypatch.setattr(
        module, "linear", lambda *args: sizes.append(linear(*args).numel()) or linear(*args)
    )
    monkeypatch.setattr(module, "_MAX_LOGITS", 100 * NUM_WORDS)
    softmax, (hidden, targets) = make(), make_batch(num_predictions=250)
    loss_of(softmax, hidden, targets)
    assert sizes == [100 * NUM_WORDS, 100 * NUM_WORDS, 50 * NUM_WORDS]


def test_a_hopeless_prediction_has_a_finite_loss_and_its_gradient():
    softmax, (hidden, targets) = make(dtype=torch.float32), make_batch(1, torch.float32)
    with torch.no_grad():
        hidden.mul_(1e4)
        targets = (hidden @ softmax.weight.t() + softmax.bias).argmin(dim=1)
    loss = loss_of(softmax, hidden, targets)
    assert math.isfinite(loss.item()) and loss.item() > 80
    expected = gradients(full_loss(softmax, hidden, targets), hidden, softmax)
    found = gradients(loss, hidden, softmax)
    assert all(relative_error(*pair) < 1e-5 for pair in zip(found, expected))


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("learns", [True, False])
def test_what_is_not_a_number_stays_visible(bad, learns):
    softmax, (hidden, targets) = make(dtype=torch.float32), make_batch(dtype=torch.float32)
    with torch.no_grad():
        hidden[3] = bad
    with torch.set_grad_enabled(learns):
        assert not math.isfinite(loss_of(softmax, hidden, targets).item())


def test_autocast_rounds_products_and_nothing_else():
    softmax, (hidden, targets) = make(dtype=torch.float32), make_batch(500, torch.float32)
    with torch.no_grad():
        # Rounded to eight bits it would be 100.5.
        softmax.bias.fill_(100.3)
        softmax.bias[: NUM_WORDS // 2] += 0.1
    expected = full_loss(softmax, hidden, targets)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = loss_of(softmax, hidden, targets)
    assert found.dtype == torch.float32
    assert found.item() == pytest.approx(expected.item(), rel=1e-3)
    found_gradients = gradients(found, hidden, softmax)
    assert all(gradient.dtype == torch.float32 for gradient in found_gradients)
    pairs = zip(found_gradients, gradients(expected, hidden, softmax))
    assert all(relative_error(*pair) < 0.01 for pair in pairs)


def draws(num_draws=NUM_DRAWS, num_samples=NUM_SAMPLES):
    generator = torch.Generator().manual_seed(5)
    device = torch.device("cpu")
    for _ in range(num_draws):
        yield sample_log_uniform(NUM_WORDS, num_samples, device, generator)


def assert_mean_is(expected, values):
    """`values` has a row per draw."""
    error = values.std(dim=0) / len(values) ** 0.5
    deviation = (values.mean(dim=0) - expected).abs()
    assert (deviation <= MOST_STANDARD_ERRORS * error + 1e-12).all()


def test_one_sample_is_log_uniform():
    ranks = torch.arange(NUM_WORDS, dtype=torch.float64)
    expected = torch.log((ranks + 2) / (ranks + 1)) / math.log(NUM_WORDS + 1)
    assert float(expected.sum()) == pytest.approx(1.0)
    drawn = torch.zeros(NUM_DRAWS, NUM_WORDS, dtype=torch.float64)
    for number, (samples, _) in enumerate(draws(num_samples=1)):
        drawn[number, samples] = 1.0
    error = (expected * (1.0 - expected) / NUM_DRAWS).sqrt()
    assert ((drawn.mean(dim=0) - expected).abs() < MOST_STANDARD_ERRORS * error).all()


def test_probabilities_say_how_often_a_word_is_drawn():
    # Weighted by one over its probability, every word counts once on average.
    counts = torch.zeros(NUM_DRAWS, NUM_WORDS, dtype=torch.float64)
    for number, (samples, log_probability) in enumerate(draws()):
        counts[number, samples] = torch.exp(-log_probability.double())
    assert_mean_is(1.0, counts)


@pytest.mark.parametrize("num_samples", [NUM_SAMPLES, NUM_WORDS - 1])
def test_samples_are_distinct_words(num_samples):
    for samples, log_probability in draws(50, num_samples):
        assert samples.shape == log_probability.shape == (num_samples,)
        assert len(set(samples.tolist())) == num_samples
        assert 0 <= samples.min() and samples.max() < NUM_WORDS
        assert (log_probability <= 0).all() and log_probability.isfinite().all()


def test_the_normaliser_and_its_gradient_are_right_on_average():
    softmax, (hidden, targets) = make(NUM_SAMPLES), make_batch(1)
    parameters = [hidden, softmax.weight, softmax.bias]
    generator = torch.Generator().manual_seed(6)

    def normaliser(loss):
        target_logit = hidden[0] @ softmax.weight[targets[0]] + softmax.bias[targets[0]]
        value = torch.exp(loss + target_logit)
        return torch.cat(
            [value.reshape(1), *(part.flatten() for part in torch.autograd.grad(value, parameters))]
        ).detach()

    expected = normaliser(full_loss(softmax, hidden, targets))
    drawn = [normaliser(loss_of(softmax, hidden, targets, generator)) for _ in range(NUM_DRAWS)]
    assert_mean_is(expected, torch.stack(drawn))


def test_other_words_of_the_batch_count_as_themselves():
    # All words are predicted somewhere in the batch: nothing is left to be estimated.
    softmax = make(NUM_SAMPLES)
    hidden, _ = make_batch(NUM_WORDS)
    targets = torch.randperm(NUM_WORDS, generator=torch.Generator().manual_seed(7))
    found = loss_of(softmax, hidden, targets, torch.Generator().manual_seed(8))
    expected = full_loss(softmax, hidden, targets)
    assert found.item() == pytest.approx(expected.item(), rel=1e-12)
    pairs = zip(gradients(found, hidden, softmax), gradients(expected, hidden, softmax))
    assert all(relative_error(*pair) < 1e-12 for pair in pairs)


def test_a_sampled_word_that_is_predicted_counts_once(monkeypatch):
    softmax, (hidden, _) = make(3), make_batch(2)
    targets = torch.tensor([4, 4])
    log_probability = torch.tensor([0.25, 0.5, 0.1]).log()
    monkeypatch.setattr(
        softmax_module,
        "sample_log_uniform",
        lambda *_: (torch.tensor([7, 4, 0]), log_probability),
    )
    logits = hidden @ softmax.weight.t() + softmax.bias
    weights = {4: 1.0, 7: 1.0 / 0.25, 0: 1.0 / 0.1}
    normaliser = sum(weight * logits[:, word].exp() for word, weight in weights.items())
    expected = (normaliser.log() - logits[:, 4]).sum()
    assert loss_of(softmax, hidden, targets).item() == pytest.approx(expected.item(), rel=1e-6)


@pytest.mark.parametrize("num_samples", [None, NUM_WORDS, 8192, NUM_SAMPLES])
def test_evaluation_and_as_many_samples_as_words_are_full(num_samples):
    softmax, (hidden, targets) = make(num_samples), make_batch()
    if num_samples == NUM_SAMPLES:
        assert softmax.is_sampled
        softmax.eval()
    assert not softmax.is_sampled
    expected = full_loss(softmax, hidden, targets).item()
    assert loss_of(softmax, hidden, targets).item() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("num_samples", [0, -5])
def test_a_sample_of_no_words_is_refused(num_samples):
    with pytest.raises(ConfigurationError, match=f"null for the full softmax, found {num_samples}"):
        make(num_samples)
