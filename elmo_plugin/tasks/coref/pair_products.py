from typing import Any, Optional, Tuple

import torch
from torch.autograd.function import once_differentiable


def pair_products(
    vectors: torch.Tensor,
    others: torch.Tensor,
    of_other: torch.Tensor,
    of_product: torch.Tensor,
    biases: Optional[torch.Tensor] = None,
) -> torch.Tensor:
    """
    A linear layer over `[other; vector * other]` for each pair of a vector with another one:
    `of_other @ other + of_product @ (vector * other) + bias`.

    Computed as one product of the others with weights that are made for the vectors, `of_other +
    of_product * vector`: the elementwise products of pairs would take much more memory than their
    sums, and longer. The weights are made again on the way back instead of kept.

    # Parameters

    vectors : `torch.Tensor`
        Shape `(num_vectors, dim)`.
    others : `torch.Tensor`
        Shape `(num_others, dim)`.
    of_other, of_product : `torch.Tensor`
        Shape `(hidden_dim, dim)`.
    biases : `Optional[torch.Tensor]`
        Shape `(num_vectors, hidden_dim)`. Each vector's own; none by default.

    # Returns

    `torch.Tensor`
        Shape `(num_others, num_vectors, hidden_dim)`.
    """
    return _PairProducts.apply(vectors, others, of_other, of_product, biases)


class _PairProducts(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        vectors: torch.Tensor,
        others: torch.Tensor,
        of_other: torch.Tensor,
        of_product: torch.Tensor,
        biases: Optional[torch.Tensor],
    ) -> torch.Tensor:
        ctx.save_for_backward(vectors, others, of_other, of_product)
        weights = _weights(vectors, of_other, of_product).flatten(0, 1)
        if biases is None:
            sums = others @ weights.t()
        else:
            sums = torch.addmm(biases.flatten(), others, weights.t())
        return sums.view(len(others), len(vectors), len(of_other))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> Tuple[Optional[torch.Tensor], ...]:
        vectors, others, of_other, of_product = ctx.saved_tensors
        gradient_of_biases = gradient.sum(dim=0) if ctx.needs_input_grad[4] else None
        # Shape: (num_others, num_vectors * hidden_dim)
        gradient = gradient.flatten(1)
        # Shape: (num_vectors, hidden_dim, dim)
        weights = _weights(vectors, of_other, of_product)
        gradient_of_others = gradient @ weights.flatten(0, 1)
        gradient_of_weights = (gradient.t() @ others).view_as(weights)
        # Where the weights stood: fresh memory costs as much as the arithmetic.
        torch.mul(gradient_of_weights, vectors.unsqueeze(1), out=weights)
        gradient_of_product = weights.sum(dim=0)
        gradient_of_other = gradient_of_weights.sum(dim=0)
        gradient_of_vectors = gradient_of_weights.mul_(of_product).sum(dim=1)
        return (
            gradient_of_vectors,
            gradient_of_others,
            gradient_of_other,
            gradient_of_product,
            gradient_of_biases,
        )


def _weights(
    vectors: torch.Tensor, of_other: torch.Tensor, of_product: torch.Tensor
) -> torch.Tensor:
    """Shape `(num_vectors, hidden_dim, dim)`."""
    return torch.addcmul(of_other, vectors.unsqueeze(1), of_product)
