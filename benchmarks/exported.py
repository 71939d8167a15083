"""
Tokens per second that `Bilm` reads on one thread, against ONNX Runtime with the same biLM as a
graph, `elmo export BILM OUT.onnx`.

    python benchmarks/exported.py                     # $ELMO_DATA/lm/small/heldout.txt
    python benchmarks/exported.py sentences.txt --size small --turns 5 --output results.json

Weights are random. Needs the extra `onnx`, and a tokenised text of 32 sentences for each turn and
one more, one per line. Both read the same batches alternately, of 1 and of 32 sentences; rows give
the median of the turns. The first turn is a warm-up and not counted.
"""

import tempfile
from pathlib import Path
from typing import Iterator, List, Sequence

import torch
from bilms import SIZES, options_of
from common import Row, add_text, by_turns, measuring_parser, median_rate, read_sentences, report
from onnxruntime import InferenceSession, SessionOptions

from elmo_plugin import Bilm, BilmOptions
from elmo_plugin.elmo.exported import export_model

BATCH_SIZES = (1, 32)


def compare(name: str, bilm: Bilm, path: Path, batches: Sequence[List[List[str]]]) -> Row:
    """The row of some batches, of which the first one is the warm-up."""
    options = SessionOptions()
    options.intra_op_num_threads = 1
    session = InferenceSession(path, options)
    ids = list(map(bilm.characters.batch_ids, batches))

    def ours(turn: int) -> None:
        with torch.inference_mode():
            bilm(ids[turn])

    def peer(turn: int) -> None:
        session.run(None, {"ids": ids[turn].numpy()})

    seconds = by_turns({"ours": ours, "peer": peer}, len(batches) - 1)
    tokens = [sum(map(len, batch)) for batch in batches[1:]]
    return Row(name, "tokens/s", *(median_rate(each, tokens) for each in seconds.values()))


def measure(text: Path, sizes: Sequence[str], turns: int) -> Iterator[Row]:
    torch.set_num_threads(1)
    sentences = read_sentences(text, max(BATCH_SIZES) * (turns + 1))
    for size in sizes:
        torch.manual_seed(0)
        bilm = Bilm(BilmOptions.from_dict(options_of(size))).eval()
        inputs = {"ids": bilm.characters.batch_ids(sentences[:2])}
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "bilm.onnx")
            export_model(bilm, path, inputs, ["layers", "mask"])
            for number in BATCH_SIZES:
                starts = range(0, number * (turns + 1), number)
                batches = [sentences[start : start + number] for start in starts]
                name = f"ONNX Runtime, {size}, batch of {number}, one thread"
                yield compare(name, bilm, path, batches)


def main() -> None:
    parser = measuring_parser(__doc__, turns=10)
    add_text(parser)
    parser.add_argument("--size", nargs="+", choices=SIZES, default=["small", "full"])
    arguments = parser.parse_args()
    report(measure(arguments.text, arguments.size, arguments.turns), arguments.output)


if __name__ == "__main__":
    main()
