"""
Tokens per second of the SRL encoder, forward and backward pass, ours against AllenNLP's in float32.

    python benchmarks/srl_encoder.py                 # 8 x 300, batches of 80, 5 to 40 tokens
    python benchmarks/srl_encoder.py --batch-size 16 --turns 20 --output results.json

Needs no corpus. Both compute gradients of the inputs and all weights on the same random sentences,
with recurrent dropout. They are measured alternately, and the median of the turns is reported. The
limit is the rate of the matrix products of one step alone, each over all tokens at once, in the
same dtype. bfloat16 means matrix products under `torch.autocast`; weights and cell states are
float32.
"""

from functools import partial
from typing import Callable, Dict, Iterator, NamedTuple, Tuple

import torch
from allennlp.modules.stacked_alternating_lstm import StackedAlternatingLstm
from common import Row, by_turns, measuring_parser, median_rate, report
from torch.nn.utils.rnn import pack_padded_sequence

from elmo_plugin.modules.seq2seq_encoders import HighwayLstm

DROPOUT = 0.1
REQUIREMENTS = {
    "float32": (">= 1.8x", ">= 2.2x"),
    "bfloat16": (None, ">= 4x"),
}


class Shape(NamedTuple):
    input_size: int = 200
    hidden_size: int = 300
    num_layers: int = 8


def sentence_lengths(batch_size: int) -> torch.Tensor:
    """From 5 to 40 tokens, 20 on average, longest first; independent of the seed."""
    quantiles = torch.linspace(1, 0, batch_size)
    return (5 + 35 * quantiles**1.3).long()


def our_step(
    shape: Shape, lengths: torch.Tensor, inputs: torch.Tensor, dtype: str
) -> Callable[[int], None]:
    encoder = HighwayLstm(*shape, DROPOUT)
    mask = torch.arange(inputs.size(1)) < lengths.unsqueeze(1)

    def step(_: int) -> None:
        encoder.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=dtype == "bfloat16"):
            outputs = encoder(inputs, mask)
        outputs.sum().backward()

    return step


def allennlp_step(
    shape: Shape, lengths: torch.Tensor, inputs: torch.Tensor
) -> Callable[[int], None]:
    encoder = StackedAlternatingLstm(*shape, DROPOUT)

    def step(_: int) -> None:
        encoder.zero_grad()
        packed, _ = encoder(pack_padded_sequence(inputs, lengths, batch_first=True))
        packed.data.sum().backward()

    return step


def matrix_products(shape: Shape, num_tokens: int, dtype: str) -> Callable[[int], None]:
    """
    Six products per layer: three for the input weights and three for the recurrent weights, of the
    forward pass, of the gradient of their input, and of the gradient of the weights.
    """
    hidden_size = shape.hidden_size
    random = partial(torch.randn, dtype=getattr(torch, dtype))
    pairs = []
    for layer in range(shape.num_layers):
        width = hidden_size if layer else shape.input_size
        for inputs, outputs in ((width, 6 * hidden_size), (hidden_size, 5 * hidden_size)):
            tokens = random(num_tokens, inputs)
            gradient = random(num_tokens, outputs)
            weight = random(outputs, inputs)
            pairs += [(tokens, weight.t()), (gradient, weight), (gradient.t(), tokens)]

    def step(_: int) -> None:
        for left, right in pairs:
            left @ right

    return step


def measure(shape: Shape, batch_size: int, turns: int) -> Iterator[Row]:
    torch.manual_seed(0)
    lengths = sentence_lengths(batch_size)
    num_tokens = int(lengths.sum())
    inputs = torch.randn(batch_size, int(lengths.max()), shape.input_size, requires_grad=True)
    steps: Dict[Tuple[str, str], Callable[[int], None]] = {
        ("AllenNLP", "float32"): allennlp_step(shape, lengths, inputs)
    }
    for dtype in REQUIREMENTS:
        steps["ours", dtype] = our_step(shape, lengths, inputs, dtype)
        steps["products", dtype] = matrix_products(shape, num_tokens, dtype)
    seconds = by_turns(steps, turns)
    rates = {name: median_rate(values, turns * [num_tokens]) for name, values in seconds.items()}
    for dtype, (floor, aim) in REQUIREMENTS.items():
        yield Row(
            f"SRL encoder, {shape.num_layers} x {shape.hidden_size}, batch {batch_size}, "
            f"forward and backward, {dtype}",
            "tokens/s",
            rates["ours", dtype],
            rates["AllenNLP", "float32"],
            share_of_limit=rates["ours", dtype] / rates["products", dtype],
            floor=floor,
            aim=aim,
        )


def main() -> None:
    parser = measuring_parser(__doc__, turns=10)
    parser.add_argument("--batch-size", type=int, default=80)
    arguments = parser.parse_args()
    report(measure(Shape(), arguments.batch_size, arguments.turns), arguments.output)


if __name__ == "__main__":
    main()
