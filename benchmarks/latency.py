"""
Milliseconds that ELMo takes for a batch of one sentence, ours in each dtype against AllenNLP's in
float32, with the same weights and sentences.

    python benchmarks/latency.py                     # $ELMO_DATA/lm/small/heldout.txt
    python benchmarks/latency.py sentences.txt --size small --turns 20 --output results.json

Needs a tokenised text of 101 sentences, one per line (one more than turns). In the rows `text`,
each turn is a sentence of the text, in random order; in `20 tokens`, each turn is the same 20
words. All variants are measured alternately; rows give the median and the 95th percentile of the
turns. The first turn is a warm-up and not counted.
"""

import statistics
from pathlib import Path
from typing import Dict, Iterator, List, Sequence

import torch
from bilms import SIZES, Pair, error_rows, load_pair
from common import Row, add_text, by_turns, measuring_parser, read_sentences, report
from embed import reader_of

NUM_TOKENS = 20
# Number of sentences whose layers are compared.
NUM_COMPARED = 8


def percentile_95(values: List[float]) -> float:
    """By linear interpolation."""
    return float(torch.tensor(values, dtype=torch.float64).quantile(0.95))


def compare(name: str, pair: Pair, batches: Sequence[torch.Tensor]) -> List[Row]:
    """The rows of all dtypes; each turn is one batch."""
    models = {"AllenNLP": pair.peer, **pair.ours}
    turns = [[ids] for ids in batches]
    readers = {which: reader_of(model, turns) for which, model in models.items()}
    seconds = by_turns(readers, len(batches) - 1)
    statistic_of = {"median": statistics.median, "95th percentile": percentile_95}
    return [
        Row(
            f"{name}, {dtype}, {label}",
            "ms/sentence",
            1000 * statistic(seconds[dtype]),
            1000 * statistic(seconds["AllenNLP"]),
        )
        for dtype in pair.ours
        for label, statistic in statistic_of.items()
    ]


def measure(text: Path, sizes: Sequence[str], turns: int) -> Iterator[Row]:
    sentences = read_sentences(text, turns + 1)
    words = [word for sentence in sentences for word in sentence]
    if len(words) < NUM_TOKENS:
        raise SystemExit(f"{text}: expected {NUM_TOKENS} words, found {len(words)}.")
    inputs: Dict[str, List[List[str]]] = {
        "text": sentences,
        f"{NUM_TOKENS} tokens": (turns + 1) * [words[:NUM_TOKENS]],
    }
    for size in sizes:
        pair = load_pair(size)
        characters = next(iter(pair.ours.values())).bilm.characters
        for label, chosen in inputs.items():
            batches = [characters.batch_ids([sentence]) for sentence in chosen]
            yield from compare(f"Latency, {size}, {label}", pair, batches)
        compared = [characters.batch_ids([sentence]) for sentence in sentences[:NUM_COMPARED]]
        yield from error_rows(f"Latency, {size}", pair.largest_errors(compared))


def main() -> None:
    parser = measuring_parser(__doc__, turns=100)
    add_text(parser)
    parser.add_argument("--size", nargs="+", choices=SIZES, default=["small", "full"])
    arguments = parser.parse_args()
    report(measure(arguments.text, arguments.size, arguments.turns), arguments.output)


if __name__ == "__main__":
    main()
