from typing import Any, List, Optional, Sequence, Tuple

import torch
from torch.autograd.function import once_differentiable
from torch.nn.functional import linear, pad

from elmo_plugin.modules.kernels.compiled import call_kernel, compiled_kernels
from elmo_plugin.modules.kernels.gpu import has_triton, kernels

# Most filters that one GPU program computes.
_BLOCK = 256
# Bound on a sum of gradients as integers.
_LARGEST = 2.0**62


def can_look_up(character_ids: torch.Tensor, embedding: torch.Tensor) -> bool:
    """True if `character_maxima` can be computed here."""
    if _is_on_gpu(character_ids):
        return embedding.dtype != torch.float64 and has_triton(character_ids.device)
    return (
        character_ids.device.type == "cpu"
        and embedding.dtype == torch.float32
        and compiled_kernels() is not None
    )


def character_maxima(
    character_ids: torch.Tensor,
    lengths: torch.Tensor,
    embedding: torch.Tensor,
    convolutions: Sequence[torch.nn.Linear],
) -> torch.Tensor:
    """
    Convolves the characters of words and takes each filter's maximum over positions: shape
    `(num_words, num_filters)`, the filters in the order of `convolutions`.

    `character_ids`, shape `(num_words, max_characters_per_token)`, are rows of `embedding`, shape
    `(num_characters, embedding_dim)`, which is float32 on a CPU. Row 0 gets no gradient. `lengths`,
    shape `(num_words,)`, counts the ids before padding, which is the same id everywhere. Of the
    windows that contain only padding, one is computed. Each convolution maps
    `width * embedding_dim` inputs to its filters.

    First multiplies each character's embedding with each position of each filter. A filter on a
    window is then a sum of one such number per position: a sixteenth of the operations for
    embeddings of width 16. The gradient of a maximum goes to one window only.
    """
    # On a GPU this check would wait for the device; a wrong id gives NaN there.
    is_checked = character_ids.device.type == "cpu" and character_ids.numel() > 0
    if is_checked and not 0 <= character_ids.min() <= character_ids.max() < len(embedding):
        found = f"{int(character_ids.min())} to {int(character_ids.max())}"
        raise IndexError(f"Expected character ids from 0 to {len(embedding) - 1}, found {found}.")
    trained = torch.cat([embedding[:1].detach(), embedding[1:]])
    products = []
    with torch.autocast(character_ids.device.type, enabled=False):
        for convolution in convolutions:
            # Shape: (width, num_filters of this width, embedding_dim)
            weight = convolution.weight.unflatten(1, (-1, embedding.size(1))).transpose(0, 1)
            bias = pad(convolution.bias, (0, (len(weight) - 1) * len(convolution.bias)))
            products.append(linear(trained, weight.flatten(0, 1), bias))
    widths = [convolution.in_features // embedding.size(1) for convolution in convolutions]
    return _Maxima.apply(character_ids.contiguous(), lengths.contiguous(), widths, *products)


class _Maxima(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        character_ids: torch.Tensor,
        lengths: torch.Tensor,
        widths: List[int],
        *products: torch.Tensor,
    ) -> torch.Tensor:
        """`products`, one for each width, are `(num_characters, width * num_filters)`."""
        counts = [part.size(1) // width for width, part in zip(widths, products)]
        maxima = products[0].new_empty(len(character_ids), sum(counts))
        argmax = torch.empty_like(maxima, dtype=torch.int32)
        ctx.save_for_backward(character_ids, argmax)
        ctx.widths, ctx.counts = widths, counts
        ctx.shapes = [part.shape for part in products]
        if _is_on_gpu(character_ids):
            _launch_maxima(character_ids, lengths, widths, counts, products, maxima, argmax)
            return maxima
        words = *character_ids.shape, character_ids, lengths
        results = zip(maxima.split(counts, dim=1), argmax.split(counts, dim=1))
        for width, count, part, of_width in zip(widths, counts, products, results):
            call_kernel("character_maxima", *words, width, count, part, sum(counts), *of_width)
        return maxima

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_maxima: torch.Tensor) -> Tuple[Optional[torch.Tensor], ...]:
        character_ids, argmax = ctx.saved_tensors
        d_maxima = d_maxima.contiguous()
        if _is_on_gpu(character_ids):
            return (None, None, None, *_launch_gradients(ctx, character_ids, argmax, d_maxima))
        d_products = [d_maxima.new_zeros(shape) for shape in ctx.shapes]
        words = *character_ids.shape, character_ids
        columns = zip(argmax.split(ctx.counts, dim=1), d_maxima.split(ctx.counts, dim=1))
        for width, count, of_width, d_part in zip(ctx.widths, ctx.counts, columns, d_products):
            sizes = width, count, sum(ctx.counts)
            call_kernel("character_maxima_gradient", *words, *sizes, *of_width, d_part)
        return (None, None, None, *d_products)


def _is_on_gpu(values: torch.Tensor) -> bool:
    return values.device.type == "cuda"


def _launch_maxima(
    character_ids: torch.Tensor,
    lengths: torch.Tensor,
    widths: List[int],
    counts: List[int],
    products: Sequence[torch.Tensor],
    maxima: torch.Tensor,
    argmax: torch.Tensor,
) -> None:
    num_words, longest = character_ids.shape
    if not num_words:
        return
    columns = zip(maxima.split(counts, dim=1), argmax.split(counts, dim=1))
    with torch.cuda.device_of(maxima):
        for width, count, part, (maximum, position) in zip(widths, counts, products, columns):
            block = _block(count)
            kernels("character_lookup").character_maxima[num_words, -(-count // block)](
                character_ids, lengths, part.contiguous(), maximum, position,
                longest, len(part), count, maxima.size(1), WIDTH=width, BLOCK=block,
            )  # fmt: skip


def _launch_gradients(
    ctx: Any, character_ids: torch.Tensor, argmax: torch.Tensor, d_maxima: torch.Tensor
) -> List[torch.Tensor]:
    num_words, longest = character_ids.shape
    gradients = []
    largest = d_maxima.abs().amax() if d_maxima.numel() else d_maxima.new_zeros(())
    # A word adds at most one number to each sum. The smallest number in float32 is 1.4e-45.
    scale = _LARGEST / (max(1, num_words) * largest.double().clamp_min(1e-45))
    columns = zip(d_maxima.split(ctx.counts, dim=1), argmax.split(ctx.counts, dim=1))
    with torch.cuda.device_of(d_maxima):
        for width, count, shape, of_width in zip(ctx.widths, ctx.counts, ctx.shapes, columns):
            sums = torch.zeros(shape, dtype=torch.int64, device=d_maxima.device)
            block = _block(count)
            if num_words:
                d_maximum, position = of_width
                grid = num_words, -(-count // block)
                kernels("character_lookup").character_maxima_gradient[grid](
                    character_ids, position, d_maximum, sums, scale,
                    longest, shape[0], count, d_maxima.size(1), WIDTH=width, BLOCK=block,
                )  # fmt: skip
            gradients.append((sums / scale).to(d_maxima.dtype))
    return gradients


def _block(num_filters: int) -> int:
    return min(_BLOCK, 1 << (num_filters - 1).bit_length())
