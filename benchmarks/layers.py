"""
Tokens per second of the biLM's LSTM layers alone, ours against AllenNLP's `ElmoLstm` and
`torch.nn.LSTM` of the same widths, without gradients and with a backward pass.

    python benchmarks/layers.py
    python benchmarks/layers.py --device cuda --batch-size 1 16 64 512 --output results.json

Random inputs, sentences of 25 tokens. `torch.nn.LSTM` with `proj_size`, one per direction, is the
limit; it clips neither cell states nor projections, and is cuDNN's LSTM on a GPU. AllenNLP's layers
compute in the same dtype. All are measured alternately, and the median of the turns is reported.
"""

from functools import partial
from typing import Callable, Dict, Iterator, NamedTuple, Sequence

import torch
from allennlp.modules.elmo_lstm import ElmoLstm
from bilms import SIZES, options_of
from common import Row, by_turns, measuring_parser, median_rate, report

from elmo_plugin.bilm import BilmOptions
from elmo_plugin.bilm.bidirectional_lstm import BidirectionalLstm
from elmo_plugin.modules.recurrent.packing import Packing
from elmo_plugin.util.bfloat16 import autocast_bfloat16

NUM_TOKENS = 25
DTYPES = ("float32", "bfloat16")
REQUIREMENTS = {("full", "cuda", 512, "bfloat16", "inference"): (">= 10x", ">= 100 % of limit")}


class Layers(NamedTuple):
    """LSTM layers, and what runs them: from `(batch_size, num_tokens, dim)`."""

    module: torch.nn.Module
    run: Callable[[torch.Tensor], torch.Tensor]


class TorchLstm(torch.nn.Module):
    """The limit: both directions of `torch.nn.LSTM`, without clips and skip connections."""

    def __init__(self, dim: int, cells: int) -> None:
        super().__init__()
        self.directions = torch.nn.ModuleList(
            torch.nn.LSTM(dim, cells, 2, batch_first=True, proj_size=dim) for _ in range(2)
        )

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """From and to `(batch_size, num_tokens, dim)`, twice as wide."""
        forward, backward = self.directions
        halves = forward(tokens)[0], backward(tokens.flip(1))[0].flip(1)
        return torch.cat(halves, dim=2)


def all_layers(size: str, device: str) -> Dict[str, Layers]:
    """Ours, AllenNLP's and PyTorch's layers."""
    cells, dim = SIZES[size][:2]
    # All multiply float32 as it is.
    torch.backends.cudnn.allow_tf32 = False
    ours = BidirectionalLstm(BilmOptions.from_dict(options_of(size))).to(device)
    peer = ElmoLstm(dim, dim, cells, 2, True, 0.0, 3.0, 3.0).to(device)
    limit = TorchLstm(dim, cells).to(device)

    def run_ours(tokens: torch.Tensor) -> torch.Tensor:
        rows, num_tokens = tokens.shape[:2]
        lengths = torch.full((rows,), num_tokens, device=device)
        return ours(tokens, Packing.from_lengths(lengths, num_tokens))[0]

    def run_peer(tokens: torch.Tensor) -> torch.Tensor:
        mask = torch.ones(tokens.shape[:2], dtype=torch.bool, device=device)
        peer.reset_states()
        return peer(tokens, mask)

    return {
        "ours": Layers(ours, run_ours),
        "AllenNLP": Layers(peer, run_peer),
        "torch.nn.LSTM": Layers(limit, limit),
    }


def infer(layers: Layers, tokens: torch.Tensor, repeats: int, _: int) -> None:
    with torch.no_grad():
        for _ in range(repeats):
            layers.run(tokens)


def train(layers: Layers, tokens: torch.Tensor, repeats: int, _: int) -> None:
    """Under autocast for bfloat16, with weights in float32, as in training."""
    for _ in range(repeats):
        with autocast_bfloat16(tokens.device, tokens.dtype == torch.bfloat16):
            # A processor without instructions for bfloat16 stays in float32.
            is_cast = torch.is_autocast_enabled(tokens.device.type)
            outputs = layers.run(tokens if is_cast else tokens.float())
        outputs.float().square().mean().backward()


def measure(
    sizes: Sequence[str], batch_sizes: Sequence[int], device: str, turns: int, repeats: int
) -> Iterator[Row]:
    for size in sizes:
        for task, run in {"training": train, "inference": infer}.items():
            every = all_layers(size, device)
            for dtype in DTYPES:
                if task == "inference":
                    for layers in every.values():
                        layers.module.to(getattr(torch, dtype))
                for rows in batch_sizes:
                    torch.manual_seed(0)
                    tokens = torch.randn(rows, NUM_TOKENS, SIZES[size].projection_dim)
                    tokens = tokens.to(device, getattr(torch, dtype))
                    runs = {
                        name: partial(run, layers, tokens, repeats)
                        for name, layers in every.items()
                    }
                    amounts = turns * [repeats * rows * NUM_TOKENS]
                    rates = {
                        name: median_rate(seconds, amounts)
                        for name, seconds in by_turns(runs, turns).items()
                    }
                    key = size, device, rows, dtype, task
                    floor, aim = REQUIREMENTS.get(key, (None, None))
                    place = "" if device == "cpu" else f", {device}"
                    yield Row(
                        f"LSTM layers, {task}, {size}, batch {rows} x {NUM_TOKENS}, {dtype}{place}",
                        "tokens/s",
                        rates["ours"],
                        rates["AllenNLP"],
                        share_of_limit=rates["ours"] / rates["torch.nn.LSTM"],
                        floor=floor,
                        aim=aim,
                    )


def main() -> None:
    parser = measuring_parser(__doc__, turns=5)
    parser.add_argument("--size", nargs="+", choices=SIZES, default=["small", "full"])
    parser.add_argument("--batch-size", nargs="+", type=int, default=[1, 16, 64])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--repeats", type=int, default=1, help="calls in a turn (default 1)")
    given = parser.parse_args()
    rows = measure(given.size, given.batch_size, given.device, given.turns, given.repeats)
    report(rows, given.output)


if __name__ == "__main__":
    main()
