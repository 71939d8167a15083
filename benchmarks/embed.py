"""
Tokens per second of a biLM, ours against AllenNLP's, with the same weights and sentences.

    python benchmarks/embed.py                       # $ELMO_DATA/lm/small/heldout.txt
    python benchmarks/embed.py sentences.txt --size full --batch-size 1 64 --output results.json
    python benchmarks/embed.py --size full --batch-size 1 16 64 512 --turns 2 --device cuda

Needs a tokenised text of 1,536 sentences, one per line (more with larger batches or more turns).
Both compute the scalar mix of all layers from the same character ids, without gradients. Sentences
are shuffled, so that batches have padding, which ours skips; in the rows `similar length`, batches
have sentences of similar length and almost no padding. The two are measured alternately, each turn
on other sentences, and the median of the turns is reported. The limit is the time for the
arithmetic at the best rate of this machine, or, if that takes longer (batch 1), for reading the
recurrent weights once per step.
"""

import statistics
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Sequence

import torch
from bilms import ELEMENT_SIZES, SIZES, Pair, error_rows, load_pair
from common import (
    Row,
    add_text,
    by_turns,
    measuring_parser,
    median_rate,
    product_rate,
    read_bandwidth,
    read_sentences,
    report,
)

from elmo_plugin import Bilm
from elmo_plugin.bilm import CharacterMap

BATCH_SIZES = (1, 16, 64)
# Floor and aim by size, batch, dtype and order.
REQUIREMENTS = {
    ("full", 1, "float32", ""): (">= 2x", ">= 85 % of limit"),
    ("full", 64, "float32", ""): (">= 2x", ">= 85 % of limit"),
    ("small", 16, "float32", ""): (">= 4x", ">= 85 % of limit"),
    ("full", 1, "bfloat16", ""): (">= 6x", ">= 10x"),
    ("full", 64, "bfloat16", ""): (">= 6x", ">= 10x"),
    ("full", 512, "bfloat16", ", similar length, cuda"): (">= 10x", ">= 1,000,000 tokens/s"),
}


class Turn(NamedTuple):
    """The batches of one turn."""

    batches: List[torch.Tensor]
    num_tokens: int


def sentences_per_turn(size: str, batch_size: int) -> int:
    """The number of sentences for a turn of a few seconds."""
    return max(2 * batch_size, 8) if size == "full" else max(4 * batch_size, 32)


def make_turns(
    sentences: List[List[str]],
    characters: CharacterMap,
    batch_size: int,
    per_turn: int,
    device: str = "cpu",
) -> List[Turn]:
    """As many turns as there are sentences for."""
    turns = []
    for first in range(0, len(sentences) - per_turn + 1, per_turn):
        chosen = sentences[first : first + per_turn]
        batches = [
            characters.batch_ids(chosen[start : start + batch_size]).to(device)
            for start in range(0, per_turn, batch_size)
        ]
        turns.append(Turn(batches, sum(len(words) for words in chosen)))
    return turns


def of_like_length(sentences: List[List[str]], batch_size: int, per_turn: int) -> List[List[str]]:
    """Sorts sentences into batches of similar length, with short and long batches in each turn."""
    ordered = sorted(sentences, key=len)
    batches = [ordered[start : start + batch_size] for start in range(0, len(ordered), batch_size)]
    turns = len(sentences) // per_turn
    return [words for turn in range(turns) for batch in batches[turn::turns] for words in batch]


def needed_seconds(bilm: Bilm, batches: List[torch.Tensor], dtype: str) -> float:
    """The longer one of the times for arithmetic and for reading recurrent weights; see above."""
    cnn, lstm = bilm.options.char_cnn, bilm.options.lstm
    recurrent = (4 * lstm.dim + lstm.dim) * lstm.projection_dim
    per_token = 2 * (recurrent + 4 * lstm.dim * lstm.projection_dim) * 2 * lstm.n_layers
    per_word = 2 * cnn.num_filters * (2 * cnn.num_filters * cnn.n_highway + lstm.projection_dim)
    per_window = 2 * sum(width * number for width, number in cnn.filters) * cnn.embedding_dim
    seconds = 0.0
    for ids in batches:
        mask = (ids > 0).any(dim=2)
        words = torch.unique(ids[mask], dim=0)
        windows = int((words != bilm.characters.padding_id).sum())
        num_tokens = int(mask.sum()) + 2 * len(ids)
        operations = num_tokens * per_token + len(words) * per_word + windows * per_window
        steps = int(mask.sum(dim=1).max()) + 2
        read = steps * recurrent * ELEMENT_SIZES[dtype] * 2 * lstm.n_layers
        rate = product_rate(getattr(torch, dtype), ids.device.type)
        seconds += max(operations / rate, read / read_bandwidth(ids.device.type))
    return seconds


def reader_of(
    model: Callable[..., Any], batches: Sequence[Sequence[torch.Tensor]]
) -> Callable[[int], None]:
    """A run that reads the batches of a turn."""

    def read(turn: int) -> None:
        with torch.inference_mode():
            for ids in batches[turn]:
                model(ids)

    return read


def compare(
    pair: Pair, size: str, batch_size: int, turns: List[Turn], order: str = ""
) -> List[Row]:
    """One row per dtype."""
    models = {"AllenNLP": pair.peer, **pair.ours}
    batches = [turn.batches for turn in turns]
    readers = {name: reader_of(model, batches) for name, model in models.items()}
    seconds = by_turns(readers, len(turns) - 1)
    num_tokens = [turn.num_tokens for turn in turns[1:]]
    rows = []
    for dtype, elmo in pair.ours.items():
        rate = median_rate(seconds[dtype], num_tokens)
        limit = statistics.median(
            turn.num_tokens / needed_seconds(elmo.bilm, turn.batches, dtype) for turn in turns[1:]
        )
        floor, aim = REQUIREMENTS.get((size, batch_size, dtype, order), (None, None))
        rows.append(
            Row(
                f"biLM inference, {size}, batch {batch_size}{order}, {dtype}",
                "tokens/s",
                rate,
                median_rate(seconds["AllenNLP"], num_tokens),
                share_of_limit=rate / limit,
                floor=floor,
                aim=aim,
            )
        )
    return rows


def measure(
    text: Path, sizes: Sequence[str], batch_sizes: Sequence[int], turns: int, device: str
) -> Iterator[Row]:
    most = max(sentences_per_turn(size, number) for size in sizes for number in batch_sizes)
    sentences = read_sentences(text, (turns + 1) * most)
    place = "" if device == "cpu" else f", {device}"
    for size in sizes:
        pair = load_pair(size, device=device)
        characters = next(iter(pair.ours.values())).bilm.characters
        errors: Dict[str, float] = {}
        for batch_size in batch_sizes:
            per_turn = sentences_per_turn(size, batch_size)
            needed = sentences[: (turns + 1) * per_turn]
            measured = make_turns(needed, characters, batch_size, per_turn, device)
            found = pair.largest_errors(measured[0].batches[:1])
            errors = {dtype: max(error, errors.get(dtype, 0)) for dtype, error in found.items()}
            yield from compare(pair, size, batch_size, measured, place)
            if batch_size > 1:
                alike = of_like_length(needed, batch_size, per_turn)
                measured = make_turns(alike, characters, batch_size, per_turn, device)
                yield from compare(pair, size, batch_size, measured, f", similar length{place}")
        yield from error_rows(f"biLM inference, {size}{place}", errors)


def main() -> None:
    parser = measuring_parser(__doc__, turns=5)
    add_text(parser)
    parser.add_argument("--size", nargs="+", choices=SIZES, default=["small", "full"])
    parser.add_argument("--batch-size", nargs="+", type=int, default=list(BATCH_SIZES))
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    given = parser.parse_args()
    rows = measure(given.text, given.size, given.batch_size, given.turns, given.device)
    report(rows, given.output)


if __name__ == "__main__":
    main()
