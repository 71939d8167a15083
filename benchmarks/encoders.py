"""
Tokens per second of the encoders of tasks, forward and backward pass, ours against AllenNLP's.

    python benchmarks/encoders.py                    # 300 cells, 64 sentences of 5 to 40 tokens
    python benchmarks/encoders.py --device cuda --output results.json

Needs no corpus. Both compute gradients of the inputs and all weights on the same random sentences,
in float32 (cuDNN: in TF32, as is PyTorch's default), and ours also with `torch.autocast` in
bfloat16, as `mixed_precision` does. They are measured alternately, and the median of the turns is
reported.
"""

from typing import Callable, Dict, Iterator

import torch
from allennlp.common import Params
from allennlp.modules.seq2seq_encoders import Seq2SeqEncoder
from common import Row, by_turns, measuring_parser, median_rate, report
from srl_encoder import sentence_lengths

import elmo_plugin.plugin  # noqa: F401

WIDTH = 300
# Ours, AllenNLP's, and the number of layers.
ENCODERS = (
    ("elmo-bilstm", "lstm", 1),
    ("elmo-bigru", "gru", 1),
    ("elmo-highway-lstm", "alternating_lstm", 8),
)
FLOOR = ">= 1x"


def encoder_of(name: str, num_layers: int) -> Seq2SeqEncoder:
    settings = {"type": name, "input_size": WIDTH, "hidden_size": WIDTH, "num_layers": num_layers}
    if name in ("lstm", "gru"):
        settings["bidirectional"] = True
    return Seq2SeqEncoder.from_params(Params(settings))


def training(
    encoder: Seq2SeqEncoder, inputs: torch.Tensor, mask: torch.Tensor, dtype: str
) -> Callable[[int], None]:
    """Forward and backward pass."""

    def step(_: int) -> None:
        encoder.zero_grad()
        with torch.autocast(inputs.device.type, torch.bfloat16, enabled=dtype == "bfloat16"):
            outputs = encoder(inputs, mask)
        outputs.float().sum().backward()

    return step


def measure(batch_size: int, turns: int, device: str) -> Iterator[Row]:
    torch.manual_seed(0)
    lengths = sentence_lengths(batch_size)
    inputs = torch.randn(batch_size, int(lengths.max()), WIDTH, device=device, requires_grad=True)
    place = "" if device == "cpu" else f", {device}"
    mask = (torch.arange(inputs.size(1)) < lengths.unsqueeze(1)).to(device)
    for ours, peer, num_layers in ENCODERS:
        steps: Dict[str, Callable[[int], None]] = {
            "AllenNLP": training(encoder_of(peer, num_layers).to(device), inputs, mask, "float32")
        }
        for dtype in ("float32", "bfloat16"):
            steps[dtype] = training(encoder_of(ours, num_layers).to(device), inputs, mask, dtype)
        amounts = turns * [int(lengths.sum())]
        seconds = by_turns(steps, turns)
        rates = {name: median_rate(values, amounts) for name, values in seconds.items()}
        for dtype in ("float32", "bfloat16"):
            yield Row(
                f"{ours}, {WIDTH} cells, batch {batch_size}, training, {dtype}{place}",
                "tokens/s",
                rates[dtype],
                rates["AllenNLP"],
                floor=FLOOR,
            )


def main() -> None:
    parser = measuring_parser(__doc__, turns=20)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    given = parser.parse_args()
    report(measure(given.batch_size, given.turns, given.device), given.output)


if __name__ == "__main__":
    main()
