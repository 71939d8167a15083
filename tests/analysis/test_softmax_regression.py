import numpy
import pytest
import torch
from scipy.optimize import approx_fprime
from scipy.special import log_softmax, softmax
from sklearn.linear_model import LogisticRegression

from elmo_plugin.analysis import softmax_regression
from elmo_plugin.analysis.softmax_regression import Objective, fit, predict

NUM_ROWS, DIM, NUM_LABELS, L2 = 300, 5, 4, 1e-2


def make_rows(seed, num_layers):
    """Layers of different scales with a constant dimension, and labels that the first tells."""
    generator = numpy.random.default_rng(seed)
    layers = generator.normal(0.3, 1.0, (num_layers, NUM_ROWS, DIM))
    layers *= (
        numpy.array([0.01, 1.0, 5.0, 1.0, 0.0]) * (1 + numpy.arange(num_layers))[:, None, None]
    )
    layers[..., 4] = 2.0
    scaled = layers[0] / numpy.array([0.01, 1.0, 5.0, 1.0, 1.0])
    logits = scaled @ generator.normal(0.0, 2.0, (DIM, NUM_LABELS))
    labels = (logits + generator.gumbel(size=logits.shape)).argmax(1)
    return list(layers), labels


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(softmax_regression, "_ROWS", 77)


def standardised(of_layer):
    deviation = of_layer.std(axis=0)
    return (of_layer - of_layer.mean(axis=0)) / numpy.where(deviation > 0, deviation, 1)


@pytest.mark.parametrize("num_layers", [1, 3])
def test_the_objective_is_its_formula_and_the_gradient_its_derivative(num_layers):
    layers, labels = make_rows(0, num_layers)
    objective = Objective(layers, labels, NUM_LABELS, L2)
    point = numpy.random.default_rng(1).normal(size=objective.num_parameters)
    size = DIM * NUM_LABELS

    def formula(parameters):
        weights = parameters[:size].reshape(DIM, NUM_LABELS)
        mix = sum(
            share * standardised(of_layer)
            for share, of_layer in zip(softmax(parameters[size + NUM_LABELS :]), layers)
        )
        logits = mix @ weights + parameters[size : size + NUM_LABELS]
        rows = log_softmax(logits, axis=1)[numpy.arange(NUM_ROWS), labels]
        return -rows.mean() + L2 / 2 * (weights**2).sum()

    value, gradient = objective(point)
    assert value == pytest.approx(formula(point), rel=1e-5)
    numpy.testing.assert_allclose(gradient, approx_fprime(point, formula, 1e-6), atol=5e-5)


def test_the_classifier_is_that_of_scikit_learn(monkeypatch):
    monkeypatch.setattr(softmax_regression, "_IMPROVEMENT", 1e-10)
    (of_layer,), labels = make_rows(2, 1)
    ours = fit([of_layer], labels, NUM_LABELS, L2, 1000)
    peer = LogisticRegression(C=1 / (L2 * NUM_ROWS), tol=1e-8, max_iter=10_000)
    peer.fit(standardised(of_layer), labels)
    expected = peer.predict_log_proba(standardised(of_layer))
    found = torch.from_numpy(of_layer).float() @ ours.weights[0] + ours.bias
    assert ours.converged and ours.layer_weights == [1.0]
    numpy.testing.assert_allclose(found.log_softmax(dim=1).numpy(), expected, atol=2e-3)
    loss = -expected[numpy.arange(NUM_ROWS), labels].mean() + L2 / 2 * (peer.coef_**2).sum()
    assert ours.loss == pytest.approx(loss, rel=1e-5)
    assert (predict(ours, [of_layer]) == peer.predict(standardised(of_layer))).all()


def test_rows_in_half_precision_on_the_disk_give_the_same(tmp_path):
    (of_layer,), labels = make_rows(4, 1)
    half = of_layer.astype(numpy.float16)
    half.tofile(tmp_path / "rows")
    mapped = numpy.memmap(tmp_path / "rows", numpy.float16, "c", shape=half.shape)
    on_disk = fit([mapped], labels, NUM_LABELS, L2, 100)
    in_memory = fit([half.astype(numpy.float32)], labels, NUM_LABELS, L2, 100)
    assert on_disk.weights.equal(in_memory.weights) and on_disk.loss == in_memory.loss


def test_too_few_iterations_are_reported():
    layers, labels = make_rows(5, 1)
    steps = []
    found = fit(layers, labels, NUM_LABELS, 0.0, 3, steps.append)
    assert not found.converged and found.num_iterations == 3 == sum(steps)
