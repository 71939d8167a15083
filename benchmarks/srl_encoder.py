"""
Tokens per second of the SRL encoder, forward and backward: ours against AllenNLP's, in one run.

    python benchmarks/srl_encoder.py                 # 8 x 300, batches of 80, 5 to 40 tokens
    python benchmarks/srl_encoder.py --batch-size 16 --repetitions 20 --output srl_encoder.json

Both train on the same random sentences with recurrent dropout and gradients for inputs and all
weights. They take turns; the median of the turns counts. `matrix products` is how fast the
products alone would be that one step needs, each over all tokens at once, in float32.
"""

import argparse
import json
import statistics
import time
import warnings
from typing import Callable, Dict, List

import torch
from torch.nn.utils.rnn import pack_padded_sequence

warnings.filterwarnings("ignore")

from allennlp.modules.stacked_alternating_lstm import StackedAlternatingLstm  # noqa: E402

from elmo_plugin.tasks.srl.highway_lstm import HighwayLstm  # noqa: E402

INPUT_SIZE, HIDDEN_SIZE, NUM_LAYERS, DROPOUT = 200, 300, 8, 0.1
FLOOR = 1.8


def sentence_lengths(batch_size: int) -> torch.Tensor:
    """From 5 to 40 tokens, about 20 in the mean, longest first; the same whatever the seed."""
    quantiles = torch.linspace(1, 0, batch_size)
    return (5 + 35 * quantiles**1.3).long()


def our_step(inputs: torch.Tensor, lengths: torch.Tensor) -> Callable[[], None]:
    encoder = HighwayLstm(INPUT_SIZE, HIDDEN_SIZE, NUM_LAYERS, DROPOUT)
    mask = torch.arange(inputs.size(1)) < lengths.unsqueeze(1)

    def step() -> None:
        encoder.zero_grad()
        encoder(inputs, mask).sum().backward()

    return step


def allennlp_step(inputs: torch.Tensor, lengths: torch.Tensor) -> Callable[[], None]:
    encoder = StackedAlternatingLstm(INPUT_SIZE, HIDDEN_SIZE, NUM_LAYERS, DROPOUT)

    def step() -> None:
        encoder.zero_grad()
        packed, _ = encoder(pack_padded_sequence(inputs, lengths, batch_first=True))
        packed.data.sum().backward()

    return step


def matrix_products(num_tokens: int) -> Callable[[], None]:
    """
    Six products per layer: inputs and states through their weights, the gradients back through
    both, and the gradients of both weights.
    """
    pairs = []
    for layer in range(NUM_LAYERS):
        width = HIDDEN_SIZE if layer else INPUT_SIZE
        for inputs, outputs in ((width, 6 * HIDDEN_SIZE), (HIDDEN_SIZE, 5 * HIDDEN_SIZE)):
            tokens, gradient = torch.randn(num_tokens, inputs), torch.randn(num_tokens, outputs)
            weight = torch.randn(outputs, inputs)
            pairs += [(tokens, weight.t()), (gradient, weight), (gradient.t(), tokens)]

    def step() -> None:
        for left, right in pairs:
            left @ right

    return step


def timed(step: Callable[[], None]) -> float:
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


def measure(steps: Dict[str, Callable[[], None]], repetitions: int) -> Dict[str, List[float]]:
    """Seconds of each step, by turns; a first round that is not counted warms up."""
    seconds: Dict[str, List[float]] = {name: [] for name in steps}
    for repetition in range(repetitions + 1):
        for name, step in steps.items():
            elapsed = timed(step)
            if repetition > 0:
                seconds[name].append(elapsed)
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--batch-size", type=int, default=80)
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--output", help="also write the figures to this JSON file")
    arguments = parser.parse_args()

    torch.manual_seed(0)
    lengths = sentence_lengths(arguments.batch_size)
    num_tokens = int(lengths.sum())
    inputs = torch.randn(len(lengths), int(lengths.max()), INPUT_SIZE, requires_grad=True)
    steps = {
        "ours": our_step(inputs, lengths),
        "AllenNLP": allennlp_step(inputs, lengths),
        "matrix products": matrix_products(num_tokens),
    }
    seconds = measure(steps, arguments.repetitions)
    rates = {name: num_tokens / statistics.median(values) for name, values in seconds.items()}
    ratio, share = rates["ours"] / rates["AllenNLP"], rates["ours"] / rates["matrix products"]

    print(f"batch {len(lengths)}, {num_tokens} tokens, {torch.get_num_threads()} threads, float32")
    print(f"{'':16}{'tokens/s':>10}{'best turn':>12}")
    for name, rate in rates.items():
        print(f"{name:16}{rate:10.0f}{num_tokens / min(seconds[name]):12.0f}")
    print(f"ratio to AllenNLP {ratio:.2f} (floor {FLOOR}), share of matrix products {share:.0%}")
    if arguments.output:
        with open(arguments.output, "w") as file:
            figures = {"tokens_per_second": rates, "ratio": ratio, "share_of_limit": share}
            json.dump({"batch_size": len(lengths), "num_tokens": num_tokens, **figures}, file)


if __name__ == "__main__":
    main()
