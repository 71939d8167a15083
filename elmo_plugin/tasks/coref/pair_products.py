from typing import Any, Optional, Tuple

import torch
from torch.autograd.function import once_differentiable


def pair_products(
    vectors: torch.Tensor,
    others: torch.Tensor,
    other_weight: torch.Tensor,
    product_weight: torch.Tensor,
    biases: Optional[torch.Tensor] = None,
) -> torch.Tensor:
    """
    A linear layer over `[other; vector * other]` for each pair of a vector with another one:
    `other_weight @ other + product_weight @ (vector * other) + bias`.

    Computed as one product of `others` with a weight matrix per vector, `other_weight +
    product_weight * vector`, which is faster and needs much less memory than the elementwise
    products of all pairs. The backward pass computes these matrices again instead of storing them.

    # Parameters

    vectors : `torch.Tensor`
        Shape `(num_vectors, dim)`.
    others : `torch.Tensor`
        Shape `(num_others, dim)`.
    other_weight, product_weight : `torch.Tensor`
        Shape `(hidden_dim, dim)`.
    biases : `Optional[torch.Tensor]`
        Shape `(num_vectors, hidden_dim)`. One bias per vector; none by default.

    # Returns

    `torch.Tensor`
        Shape `(num_others, num_vectors, hidden_dim)`.
    """
    return _PairProducts.apply(vectors, others, other_weight, product_weight, biases)


class _PairProducts(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        vectors: torch.Tensor,
        others: torch.Tensor,
        other_weight: torch.Tensor,
        product_weight: torch.Tensor,
        biases: Optional[torch.Tensor],
    ) -> torch.Tensor:
        ctx.save_for_backward(vectors, others, other_weight, product_weight)
        weights = _weights(vectors, other_weight, product_weight).flatten(0, 1)
        if biases is None:
            sums = others @ weights.t()
        else:
            sums = torch.addmm(biases.flatten(), others, weights.t())
        return sums.view(len(others), len(vectors), len(other_weight))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> Tuple[Optional[torch.Tensor], ...]:
        vectors, others, other_weight, product_weight = ctx.saved_tensors
        gradient_of_biases = gradient.sum(dim=0) if ctx.needs_input_grad[4] else None
        # Shape: (num_others, num_vectors * hidden_dim)
        gradient = gradient.flatten(1)
        # Shape: (num_vectors, hidden_dim, dim)
        weights = _weights(vectors, other_weight, product_weight)
        gradient_of_others = gradient @ weights.flatten(0, 1)
        gradient_of_weights = (gradient.t() @ others).view_as(weights)
        # Reuses the buffer of the weights: allocating a new one takes as long as the arithmetic.
        torch.mul(gradient_of_weights, vectors.unsqueeze(1), out=weights)
        gradient_of_product = weights.sum(dim=0)
        gradient_of_other = gradient_of_weights.sum(dim=0)
        gradient_of_vectors = gradient_of_weights.mul_(product_weight).sum(dim=1)
        return (
            gradient_of_vectors,
            gradient_of_others,
            gradient_of_other,
            gradient_of_product,
            gradient_of_biases,
        )


def _weights(
    vectors: torch.Tensor, other_weight: torch.Tensor, product_weight: torch.Tensor
) -> torch.Tensor:
    """Shape `(num_vectors, hidden_dim, dim)`."""
    return torch.addcmul(other_weight, vectors.unsqueeze(1), product_weight)
