"""A linear classifier on frozen vectors, fitted to convergence."""

import math
from dataclasses import dataclass
from typing import Callable, Iterator, List, Sequence, Tuple

import numpy
import torch

from elmo_plugin.util.errors import optional_package

# Rows that are converted and in memory at once.
_ROWS = 4096
# The solver stops when every entry of the gradient (nats per row) is at most the first in absolute
# value, or when a step lowers the loss by less than the second, as a share of a loss above 1.
_GRADIENT, _IMPROVEMENT = 1e-5, 1e-6
# Past steps from which L-BFGS estimates the curvature. With 30, it needs a quarter fewer iterations
# on real tags than with SciPy's default of 10.
_HISTORY = 30


@dataclass(frozen=True)
class Classifier:
    """A fitted softmax regression."""

    #: Shape `(num_layers, dim, num_labels)`, multiplied by the weights of the layers.
    weights: torch.Tensor
    #: Shape `(num_labels,)`.
    bias: torch.Tensor
    #: The softmax-normalised weights of the layers; `[1.0]` for one layer.
    layer_weights: List[float]
    #: The objective in nats per row.
    loss: float
    #: Steps of the solver.
    num_iterations: int
    #: False if the solver stopped early, for example at the maximum of iterations.
    converged: bool


class Objective:
    """
    Mean cross-entropy plus L2 penalty of a softmax regression. Maps one flat vector of parameters
    to loss and gradient, as solvers expect.

    With several layers, it reads their scalar mix (equation 1 of
    [Peters et al. (2018)](https://arxiv.org/abs/1802.05365)) and learns the softmax-normalised
    weights. There is no `gamma`, because the classifier's own weights scale the vector.

    Each dimension of each layer is standardised over the rows: one penalty then suits all
    representations, and solvers converge fast. RAM does not grow with the number of rows. Products
    with rows are in float32, sums in float64.

    `layers` has an array per layer, shape `(num_rows, dim)`, possibly a memory-mapped file.
    `labels` has shape `(num_rows,)`, from 0 to `num_labels - 1`. `l2` multiplies half the squared
    norm of the classifier's weights; bias and layer scores are not penalised.
    """

    def __init__(
        self,
        layers: Sequence[numpy.ndarray],
        labels: numpy.ndarray,
        num_labels: int,
        l2: float,
    ) -> None:
        self._layers, self._labels, self._l2 = layers, labels, l2
        self._shape = (layers[0].shape[1], num_labels)
        # Shape of both: (num_layers, dim, 1)
        self._mean, self._deviation = _moments(layers)

    @property
    def num_parameters(self) -> int:
        return math.prod(self._shape) + self._shape[1] + len(self._layers)

    def __call__(self, parameters: numpy.ndarray) -> Tuple[float, numpy.ndarray]:
        """Returns the objective and its gradient in float64."""
        flat = torch.tensor(parameters, dtype=torch.float64, requires_grad=True)
        weights, bias, _ = self.unpacked(flat)
        # Each chunk adds to the gradients with respect to these; autograd continues from the sums.
        inputs = [each.detach().float().requires_grad_() for each in (weights, bias)]
        sums = [torch.zeros_like(weights), torch.zeros_like(bias)]
        penalty = 0.5 * self._l2 * flat[: math.prod(self._shape)].square().sum()
        value = float(penalty.detach())
        for rows in _chunks(len(self._labels)):
            logits = _logits(_read(self._layers, rows, torch.float32), *inputs)
            labels = torch.from_numpy(self._labels[rows]).long()
            losses = torch.nn.functional.cross_entropy(logits, labels, reduction="none")
            loss = losses.sum(dtype=torch.float64) / len(self._labels)
            value += float(loss.detach())
            for total, gradient in zip(sums, torch.autograd.grad(loss, inputs)):
                total += gradient
        torch.autograd.backward([weights, bias, penalty], [*sums, None])
        assert flat.grad is not None
        return value, flat.grad.numpy()

    def unpacked(self, flat: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Weights and bias for rows before standardisation, and the normalised layer weights."""
        size, num_labels = math.prod(self._shape), self._shape[1]
        layer_weights = flat[size + num_labels :].softmax(dim=0)
        # Shape: (num_layers, dim, num_labels)
        weights = layer_weights[:, None, None] * flat[:size].view(self._shape) / self._deviation
        bias = flat[size : size + num_labels] - (self._mean * weights).sum(dim=(0, 1))
        return weights, bias, layer_weights


def fit(
    layers: Sequence[numpy.ndarray],
    labels: numpy.ndarray,
    num_labels: int,
    l2: float,
    max_iterations: int,
    on_progress: Callable[[int], object] = lambda num_iterations: None,
) -> Classifier:
    """Minimises an `Objective` with SciPy's L-BFGS. Calls `on_progress(1)` after each iteration."""
    objective = Objective(layers, labels, num_labels, l2)
    found = optional_package("scipy.optimize", "Fitting a probe").minimize(
        objective,
        numpy.zeros(objective.num_parameters),
        method="L-BFGS-B",
        jac=True,
        # SciPy would take a result for a request to stop.
        callback=lambda _: (on_progress(1), None)[1],
        options={
            "maxiter": max_iterations,
            "maxfun": 2 * max_iterations,
            "maxcor": _HISTORY,
            "gtol": _GRADIENT,
            "ftol": _IMPROVEMENT,
        },
    )
    weights, bias, layer_weights = objective.unpacked(torch.from_numpy(found.x))
    return Classifier(
        weights=weights.float(),
        bias=bias.float(),
        layer_weights=layer_weights.tolist(),
        loss=float(found.fun),
        num_iterations=int(found.nit),
        converged=bool(found.success),
    )


def predict(classifier: Classifier, layers: Sequence[numpy.ndarray]) -> numpy.ndarray:
    """Returns the label of each row, shape `(num_rows,)`. `layers` are as in `Objective`."""
    found = [
        _logits(_read(layers, rows, torch.float32), classifier.weights, classifier.bias).argmax(1)
        for rows in _chunks(len(layers[0]))
    ]
    return torch.cat(found).numpy()


def _logits(vectors: List[torch.Tensor], weights: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    logits = bias
    for of_layer, weights_of_layer in zip(vectors, weights):
        # Shape: (num_rows, num_labels)
        logits = torch.addmm(logits, of_layer, weights_of_layer)
    return logits


def _moments(layers: Sequence[numpy.ndarray]) -> Tuple[torch.Tensor, torch.Tensor]:
    """Mean and standard deviation of each dimension: shape `(num_layers, dim, 1)`, float64."""
    num_rows, dim = layers[0].shape
    sums, squares = torch.zeros(2, len(layers), dim, dtype=torch.float64)
    for rows in _chunks(num_rows):
        for number, vectors in enumerate(_read(layers, rows, torch.float64)):
            sums[number] += vectors.sum(dim=0)
            squares[number] += vectors.square().sum(dim=0)
    mean = sums / num_rows
    variance = squares / num_rows - mean.square()
    # A constant dimension is only centred: its deviation is zero.
    deviation = torch.where(variance > 1e-12, variance, 1.0).sqrt()
    return mean.unsqueeze(-1), deviation.unsqueeze(-1)


def _read(layers: Sequence[numpy.ndarray], rows: slice, dtype: torch.dtype) -> List[torch.Tensor]:
    return [torch.from_numpy(of_layer[rows]).to(dtype) for of_layer in layers]


def _chunks(num_rows: int) -> Iterator[slice]:
    return (slice(start, start + _ROWS) for start in range(0, num_rows, _ROWS))
