"""The training objective against a loop over sentences, words and positions."""

import copy
import math

import numpy
import pytest
import torch
from allennlp.commands.train import train_model
from allennlp.common import Params
from allennlp.models import Model, load_archive
from allennlp.training.util import evaluate

from elmo_plugin.bilm import save_weights
from elmo_plugin.modules.recurrent.scan import RecurrentState
from elmo_plugin.tasks.bilm.data_loader import BilmDataLoader
from elmo_plugin.tasks.bilm.model import BilmModel
from elmo_plugin.tasks.bilm.reader import BilmReader
from elmo_plugin.tasks.bilm.vocabulary import SoftmaxVocabulary, softmax_counts
from tests.bilm.oracle import SlowBilm, read_arrays, relative_error
from tests.bilm.pretraining.tiny import (
    make_experiment,
    make_options,
    make_sentences,
    write_text,
)

NAMESPACE = "softmax_labels"


@pytest.fixture(scope="module")
def sentences():
    # The last one holds words that no vocabulary has.
    return [*make_sentences(20), ["w1", "never", "w2", "seen"]]


@pytest.fixture(scope="module")
def text(sentences, tmp_path_factory):
    return write_text(tmp_path_factory.mktemp("text") / "text.txt", sentences)


@pytest.fixture(scope="module")
def vocab(tmp_path_factory):
    path = write_text(tmp_path_factory.mktemp("vocab") / "text.txt", make_sentences(200, seed=9))
    return SoftmaxVocabulary.from_text(text=str(path))


@pytest.fixture
def make_model(vocab):
    """A model with weights large enough that words matter."""

    def make(options=None, **settings) -> BilmModel:
        torch.manual_seed(1)
        settings = {"num_samples": None, "dropout": 0.0, **settings}
        model = BilmModel(vocab, options or make_options(), **settings)
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.dim() > 1:
                    parameter.mul_(2.0)
        return model

    return make


@pytest.fixture
def batches(text, vocab):
    def make(order="sentences", bidirectional=True, **settings):
        reader = BilmReader(options=make_options(bidirectional=bidirectional))
        loader = BilmDataLoader(reader, text, order=order, **settings)
        loader.index_with(vocab)
        return list(loader)

    return make


def read(model, batches):
    """Metrics of an evaluation."""
    model.eval()
    with torch.no_grad():
        for batch in batches:
            model(**batch)
    return model.get_metrics(reset=True)


def gradients(model, loss):
    return torch.autograd.grad(loss, list(model.parameters()))


def target_ids(vocab, words):
    ids = vocab.get_token_to_index_vocabulary(NAMESPACE)
    return [ids.get(word, ids["<UNK>"]) for word in words]


def negative_log_likelihood(model, hidden, targets):
    weight, bias = model.softmax.weight.detach().double(), model.softmax.bias.detach().double()
    total = 0.0
    for row, target in zip(torch.as_tensor(numpy.stack(hidden)).double(), targets):
        total -= torch.log_softmax(weight @ row + bias, dim=0)[target].item()
    return total


def slow_losses(model, sentences, folder):
    """Forward and backward, per prediction; of the weights only their file is read."""
    save_weights(model.bilm, folder / "weights.hdf5")
    slow = SlowBilm(model.bilm.options.source, read_arrays(folder / "weights.hdf5"))
    dim = model.bilm.options.lstm.output_dim
    totals, num_tokens = [0.0, 0.0], 0
    for words in sentences:
        # Shape: (num_tokens + 2, output_dim)
        top = slow.run_apart(words)[0][-1]
        targets = target_ids(model.vocab, ["<S>", *words, "</S>"])
        totals[0] += negative_log_likelihood(model, top[:-1, :dim], targets[1:])
        if model.bilm.options.bidirectional:
            totals[1] += negative_log_likelihood(model, top[1:, dim:], targets[:-1])
        num_tokens += len(words) + 1
    return [total / num_tokens for total in totals]


@pytest.mark.parametrize("both", [True, False])
def test_perplexity_is_that_of_a_loop_over_sentences(
    make_model, batches, sentences, tmp_path, both
):
    model = make_model(make_options(bidirectional=both))
    forward, backward = slow_losses(model, sentences, tmp_path)
    assert abs(forward - backward) > 0.01
    mean = (forward + backward) / 2 if both else forward
    expected = {"perplexity": math.exp(mean), "forward_perplexity": math.exp(forward)}
    if both:
        expected["backward_perplexity"] = math.exp(backward)
    assert read(model, batches(bidirectional=both)) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("tokens_per_batch", [1, 17, 10_000])
@pytest.mark.parametrize("shuffle", [True, False])
def test_perplexity_does_not_depend_on_batches(make_model, batches, tokens_per_batch, shuffle):
    model = make_model()
    expected = read(model, batches())
    found = read(model, batches(tokens_per_batch=tokens_per_batch, shuffle=shuffle))
    assert found == pytest.approx(expected, rel=1e-5)


def one_long_sequence(model, sentences):
    """Loss per prediction of streams of one row: everything read without an end."""
    totals = []
    lstm = model.bilm.lstm
    for stack, step in ((lstm.forward_layers, 1), (lstm.backward_layers, -1)):
        marked = [["<S>", *words, "</S>"][::step] for words in sentences]
        inputs = [word for words in marked for word in words[:-1]]
        targets = [word for words in marked for word in words[1:]]
        characters = torch.stack(
            [torch.tensor(model.bilm.characters.word_ids(word).tolist()) for word in inputs]
        )
        with torch.no_grad():
            tokens = model.bilm.character_encoder(characters)
            outputs, _ = lstm.run_stack(stack, tokens, [1] * len(inputs))
        ids = target_ids(model.vocab, targets)
        totals.append(negative_log_likelihood(model, list(outputs[-1].numpy()), ids) / len(ids))
    return totals


@pytest.mark.parametrize("num_steps", [1, 7, 10_000])
def test_a_stream_is_one_long_sequence(make_model, batches, sentences, num_steps):
    model = make_model()
    forward, backward = one_long_sequence(model, sentences)
    found = read(model, batches("streams", batch_size=1, num_steps=num_steps, shuffle=False))
    assert found["forward_perplexity"] == pytest.approx(math.exp(forward), rel=1e-5)
    assert found["backward_perplexity"] == pytest.approx(math.exp(backward), rel=1e-5)
    # Carried state matters.
    assert found["perplexity"] != pytest.approx(read(model, batches())["perplexity"], rel=1e-4)


def test_a_new_pass_forgets_what_was_carried(make_model, batches):
    model = make_model()
    text = batches("streams", batch_size=3, num_steps=5)
    assert read(model, text) == read(model, text)


def test_gradients_stop_where_a_window_begins(make_model, batches):
    model = make_model()
    first, second = batches("streams", batch_size=3, num_steps=5)[:2]
    model(**first)
    states = copy.deepcopy(model._carried)
    assert not any(
        part.requires_grad for layers in states.values() for state in layers for part in state
    )
    found = gradients(model, model(**second)["loss"])
    # With what was carried as constants.
    model._carried = states
    assert all(
        torch.equal(one, other)
        for one, other in zip(found, gradients(model, model(**second)["loss"]))
    )
    model._carried = {
        name: [RecurrentState(*(torch.zeros_like(part) for part in state)) for state in layers]
        for name, layers in states.items()
    }
    assert relative_error(gradients(model, model(**second)["loss"])[-1], found[-1]) > 1e-4


def test_every_parameter_learns(make_model, batches):
    model = make_model(num_samples=8, dropout=0.1)
    for parameter, gradient in zip(
        model.parameters(), gradients(model, model(**batches(tokens_per_batch=10_000)[0])["loss"])
    ):
        assert gradient.shape == parameter.shape
        assert gradient.isfinite().all() and gradient.abs().sum() > 0


def test_dropout_and_samples_are_for_training_only(make_model, batches):
    model, plain = make_model(num_samples=8, dropout=0.5), make_model()
    (batch, *_) = batches()
    assert model(**batch)["loss"].item() != pytest.approx(plain(**batch)["loss"].item(), rel=1e-3)
    assert read(model, [batch]) != read(plain, [batch])  # what training had read is in there
    assert read(model, [batch]) == read(plain, [batch])


@pytest.mark.parametrize("settings", [{"dropout": 0.5}, {"num_samples": 20}])
def test_draws_depend_on_seed_and_batch_number_alone(make_model, batches, settings):
    (batch, *_) = batches()

    def losses(seed=3, num_batches=4, first=0):
        model = make_model(seed=seed, **settings)
        model.load_training_state({"num_batches": first, "carried": {}})
        torch.manual_seed(torch.seed() % 1000)
        return [model(**batch)["loss"].item() for _ in range(num_batches)]

    whole = losses()
    assert len(set(whole)) == 4
    assert losses() == whole
    assert losses(num_batches=2, first=2) == whole[2:]
    assert not set(losses(seed=4)) & set(whole)


def test_a_run_goes_on_from_its_training_state(make_model, batches):
    model, other = make_model(dropout=0.2), make_model(dropout=0.2)
    windows = batches("streams", batch_size=3, num_steps=5)
    for batch in windows[:3]:
        model(**batch)
    other.load_training_state(copy.deepcopy(model.training_state()))
    for batch in windows[3:6]:
        assert other(**batch)["loss"].item() == model(**batch)["loss"].item()


def test_mixed_precision_is_close_and_for_training_only(make_model, batches, with_bfloat16):
    exact, mixed = make_model(), make_model(mixed_precision=True)
    (batch, *_) = batches(tokens_per_batch=10_000)
    loss, expected = mixed(**batch)["loss"], exact(**batch)["loss"]
    assert loss.dtype == torch.float32 and loss.item() != expected.item()
    assert loss.item() == pytest.approx(expected.item(), rel=0.01)
    for found, wanted in zip(gradients(mixed, loss), gradients(exact, expected)):
        assert found.dtype == torch.float32
        assert relative_error(found, wanted) < 0.1
    mixed.get_metrics(reset=True), exact.get_metrics(reset=True)
    assert read(mixed, [batch]) == read(exact, [batch])


def test_metrics_are_named_for_what_they_are(make_model, batches):
    (batch, *_) = batches()
    perplexities = {"perplexity", "forward_perplexity", "backward_perplexity"}
    sampled, full = make_model(num_samples=8), make_model()
    loss = sampled(**batch)["loss"].item()
    full(**batch)
    metrics = sampled.get_metrics(reset=True)
    assert metrics.keys() == {"sampled_loss"}
    assert metrics["sampled_loss"] == pytest.approx(loss)
    assert full.get_metrics(reset=True).keys() == perplexities
    for model in (sampled, full):
        assert read(model, [batch]).keys() == perplexities


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_loss_that_is_no_number_names_its_batch(make_model, batches, value):
    model = make_model()
    first, second = batches(tokens_per_batch=40)[:2]
    model(**first)
    model.bilm.lstm.forward_layers[0].bias.data[:] = value
    model.softmax.weight.data[0] = value
    ids = second["forward_targets"][:3].tolist()
    words = [model.vocab.get_token_from_index(word, NAMESPACE) for word in ids]
    with pytest.raises(ValueError, match=f"loss of batch 2 is .* of the batch: {' '.join(words)}"):
        model(**second)
    with pytest.raises(ValueError, match="loss of an evaluation batch is"):
        model.eval()(**second)


def test_the_bias_starts_as_the_unigram_model(make_model, vocab):
    counts = torch.tensor(softmax_counts(vocab), dtype=torch.float64)
    model = make_model()
    expected = (counts / counts.sum()).log()
    seen = counts > 0
    torch.testing.assert_close(model.softmax.bias[seen].double(), expected[seen], atol=0.01, rtol=0)
    assert model.softmax.bias.isfinite().all()


@pytest.mark.parametrize("order", ["sentences", "streams"])
def test_it_trains_saves_and_loads(tmp_path, order):
    experiment = make_experiment(tmp_path, order)
    folder = tmp_path / "run"
    model = train_model(Params(copy.deepcopy(experiment)), folder)
    archive = load_archive(folder / "model.tar.gz")
    assert isinstance(archive.model, BilmModel)
    for (name, parameter), loaded in zip(
        model.named_parameters(), archive.model.parameters(), strict=True
    ):
        assert torch.equal(parameter, loaded), name
    # The vocabulary of the archive is one of AllenNLP's, not of ours.
    loader = BilmDataLoader(BilmReader(options=make_options()), tmp_path / "heldout.txt")
    loader.index_with(archive.model.vocab)
    found = evaluate(archive.model, loader)
    expected = Params.from_file(str(folder / "metrics.json"))["best_validation_perplexity"]
    assert found["perplexity"] == pytest.approx(expected, rel=1e-5)
    assert isinstance(Model.from_archive(str(folder)), BilmModel)
