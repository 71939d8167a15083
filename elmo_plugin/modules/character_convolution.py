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
        num_words, longest = character_ids.shape
        columns = zip(maxima.split(counts, dim=1), argmax.split(counts, dim=1))
        with torch.cuda.device_of(maxima):
            for width, count, part, (maximum, position) in zip(widths, counts, products, columns):
                if not _is_on_gpu(maxima):
                    call_kernel(
                        "character_maxima", num_words, longest, character_ids, lengths,
                        width, count, part, sum(counts), maximum, position,
                    )  # fmt: skip
                elif num_words:
                    grid, block = _programs(num_words, count)
                    kernels("character_lookup").character_maxima[grid](
                        character_ids, lengths, part.contiguous(), maximum, position,
                        longest, len(part), count, sum(counts),
                        WIDTH=width, BLOCK=block, enable_fp_fusion=True,
                    )  # fmt: skip
        return maxima

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_maxima: torch.Tensor) -> Tuple[Optional[torch.Tensor], ...]:
        character_ids, argmax = ctx.saved_tensors
        num_words, longest = character_ids.shape
        d_maxima, total = d_maxima.contiguous(), d_maxima.size(1)
        columns = zip(argmax.split(ctx.counts, dim=1), d_maxima.split(ctx.counts, dim=1))
        parts = zip(ctx.widths, ctx.counts, ctx.shapes, columns)
        if not _is_on_gpu(d_maxima):
            d_products = [d_maxima.new_zeros(shape) for shape in ctx.shapes]
            for (width, count, _, (position, d_maximum)), d_part in zip(parts, d_products):
                call_kernel(
                    "character_maxima_gradient", num_words, longest, character_ids,
                    width, count, total, position, d_maximum, d_part,
                )  # fmt: skip
            return (None, None, None, *d_products)
        largest = d_maxima.abs().amax() if d_maxima.numel() else d_maxima.new_zeros(())
        # A word adds at most one number to each sum. The smallest number in float32 is 1.4e-45.
        scale = _LARGEST / (max(1, num_words) * largest.double().clamp_min(1e-45))
        d_products = []
        with torch.cuda.device_of(d_maxima):
            for width, count, shape, (position, d_maximum) in parts:
                sums = torch.zeros(shape, dtype=torch.int64, device=d_maxima.device)
                if num_words:
                    grid, block = _programs(num_words, count)
                    kernels("character_lookup").character_maxima_gradient[grid](
                        character_ids, position, d_maximum, sums, scale, longest, shape[0],
                        count, total, WIDTH=width, BLOCK=block, enable_fp_fusion=True,
                    )  # fmt: skip
                d_products.append((sums / scale).to(d_maxima.dtype))
        return (None, None, None, *d_products)


def _is_on_gpu(values: torch.Tensor) -> bool:
    return values.device.type == "cuda"


def _programs(num_words: int, num_filters: int) -> Tuple[Tuple[int, int], int]:
    """The grid of a kernel's programs on a GPU, and how many filters each of them computes."""
    block = min(_BLOCK, 1 << (num_filters - 1).bit_length())
    return (num_words, -(-num_filters // block)), block
