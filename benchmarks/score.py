"""
Seconds of `elmo score` for a text, against those of the operations that it needs at least: the
layers of the biLM and the matrix products of the softmax.

    python benchmarks/score.py                     # $ELMO_DATA/lm/small/heldout.txt
    python benchmarks/score.py sentences.txt --sentences 200 --turns 3 --output results.json

Needs a tokenised text, one sentence per line, and the biLM of ELMO_OPTIONS and ELMO_WEIGHTS with
its softmax; default: the one that ships. The first turn is a warm-up and not counted.
"""

import statistics
from pathlib import Path
from typing import Iterator, List

import torch
from common import Row, add_text, by_turns, measuring_parser, read_sentences, report

from elmo_plugin.analysis.surprisal import Scorer
from elmo_plugin.bilm import Bilm, load_bilm
from elmo_plugin.bilm.files.softmax import SoftmaxWeights, find_softmax
from elmo_plugin.elmo import embed_sentences
from elmo_plugin.environment import setting

FLOOR = "<= 1.3x"
BATCH_SIZE = 64
# Predictions per product; with 50,000 words, their logits take 32 MB.
NUM_ROWS = 160


def read_and_multiply(
    bilm: Bilm, softmax: SoftmaxWeights, logits: torch.Tensor, sentences: List[List[str]]
) -> None:
    for _ in embed_sentences(bilm, sentences, BATCH_SIZE):
        pass
    # Each direction predicts the words and a boundary.
    remaining = 2 * sum(len(words) + 1 for words in sentences)
    hidden = torch.ones(NUM_ROWS, softmax.weight.size(1))
    while remaining > 0:
        size = min(NUM_ROWS, remaining)
        torch.mm(hidden[:size], softmax.weight.t(), out=logits[:size])
        remaining -= size


def measure(text: Path, num_sentences: int, turns: int) -> Iterator[Row]:
    sentences = read_sentences(text, num_sentences)
    bilm = load_bilm()
    softmax = find_softmax(setting("ELMO_WEIGHTS"), bilm.options)
    if softmax is None:
        raise SystemExit(f"{setting('ELMO_WEIGHTS')}: expected a softmax.hdf5 in its folder.")
    scorer = Scorer(bilm, softmax)
    logits = torch.empty(NUM_ROWS, len(softmax.words))
    seconds = by_turns(
        {
            "ours": lambda turn: list(scorer.score(sentences, BATCH_SIZE)),
            "limit": lambda turn: read_and_multiply(bilm, softmax, logits, sentences),
        },
        turns,
    )
    ours, limit = (statistics.median(seconds[name]) for name in ("ours", "limit"))
    yield Row(
        f"Surprisal, {len(softmax.words):,} words, against layers and products",
        "s",
        ours,
        limit,
        floor=FLOOR,
    )


def main() -> None:
    parser = measuring_parser(__doc__, turns=5)
    add_text(parser)
    parser.add_argument("--sentences", type=int, default=400, help="number of sentences")
    arguments = parser.parse_args()
    report(measure(arguments.text, arguments.sentences, arguments.turns), arguments.output)


if __name__ == "__main__":
    main()
