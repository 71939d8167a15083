"""
Tokens per second of a biLM: ours against AllenNLP's, same weights, same sentences, one run.

    python benchmarks/embed.py $ELMO_DATA/lm/small/heldout.txt  # all sizes, batches of 1, 16, 64
    python benchmarks/embed.py sentences.txt --size full --output embed.json

Both give all layers of the biLM blended to one vector per token, without gradients, from the
same character ids. Sentences are shuffled; the two take turns, each turn on sentences of its own;
the median of the turns counts. `share of limit` is the
time that the needed arithmetic (or, at batch 1, reading the weights once per token) takes at
the best rate this machine reaches, over the time that ours took.
"""

import argparse
import json
import random
import statistics
import tempfile
import time
import warnings
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

import torch

warnings.filterwarnings("ignore")

from allennlp.modules.elmo import Elmo as AllenNlpElmo  # noqa: E402

from elmo_plugin import Bilm, BilmOptions, Elmo, save_weights  # noqa: E402
from elmo_plugin.bilm import CharacterMap  # noqa: E402
from elmo_plugin.corpora import sentence_per_line  # noqa: E402

PUBLISHED_FILTERS = [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512], [7, 1024]]
# Cells, projection and highway layers of the published biLMs; 1024/128 and 4096/512.
SIZES = {"small": (1024, 128, 1), "full": (4096, 512, 2)}
DTYPES = ("float32", "bfloat16")
# What is asked for at least, as multiples of AllenNLP in float32.
FLOORS = {
    ("full", 1, "float32"): 2.0,
    ("full", 64, "float32"): 2.0,
    ("small", 16, "float32"): 4.0,
    ("full", 1, "bfloat16"): 6.0,
    ("full", 64, "bfloat16"): 6.0,
}


def options_of(size: str) -> Dict[str, Any]:
    dim, projection_dim, n_highway = SIZES[size]
    return {
        "char_cnn": {
            "activation": "relu",
            "embedding": {"dim": 16},
            "filters": PUBLISHED_FILTERS,
            "max_characters_per_token": 50,
            "n_characters": 262,
            "n_highway": n_highway,
        },
        "lstm": {
            "cell_clip": 3,
            "dim": dim,
            "n_layers": 2,
            "proj_clip": 3,
            "projection_dim": projection_dim,
            "use_skip_connections": True,
        },
    }


class Turn(NamedTuple):
    """The batches of one measurement."""

    batches: List[torch.Tensor]
    num_tokens: int


def best_rate(run: Callable[[], Any], amount: float, seconds: float = 1.0) -> float:
    """`amount` over the fastest run within `seconds`."""
    run()
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return amount / best


def machine_limits(dtype: torch.dtype) -> Dict[str, float]:
    """Best matrix-product rate (FLOP/s) over shapes of the biLM, and read bandwidth (byte/s)."""
    rates = []
    for rows, inner, columns in ((800, 2048, 2048), (256, 4096, 512), (1024, 1024, 1024)):
        a, b = torch.randn(rows, inner, dtype=dtype), torch.randn(inner, columns, dtype=dtype)
        out = torch.empty(rows, columns, dtype=dtype)
        product = partial(torch.mm, a, b, out=out)
        rates.append(best_rate(product, 2.0 * rows * inner * columns))
    # Larger than any cache: 512 MB.
    memory = torch.ones(128 * 1024 * 1024)
    return {"flops": max(rates), "bandwidth": best_rate(memory.sum, 4.0 * memory.numel())}


def needed_seconds(
    bilm: Bilm, batches: List[torch.Tensor], limits: Dict[str, float], element_size: int
) -> float:
    """Time the arithmetic and the reading of recurrent weights need at the machine's best."""
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
        flops = num_tokens * per_token + len(words) * per_word + windows * per_window
        steps = int(mask.sum(dim=1).max()) + 2
        read = steps * recurrent * element_size * 2 * lstm.n_layers
        seconds += max(flops / limits["flops"], read / limits["bandwidth"])
    return seconds


def median_rates(readers: Dict[str, Callable], turns: List[Turn]) -> Dict[str, float]:
    """Median tokens per second of each reader; they take turns, the first of which warms up."""
    rates: Dict[str, List[float]] = {name: [] for name in readers}
    for turn in turns:
        for name, read in readers.items():
            start = time.perf_counter()
            with torch.inference_mode():
                for ids in turn.batches:
                    read(ids)
            rates[name].append(turn.num_tokens / (time.perf_counter() - start))
    return {name: statistics.median(values[1:]) for name, values in rates.items()}


def relative_errors(ours: Elmo, exact: List[torch.Tensor], ids: torch.Tensor) -> float:
    """Largest relative error of a layer over a batch."""
    with torch.no_grad():
        layers = ours.bilm(ids).layers.float()
    return max(float((a - b).norm() / b.norm()) for a, b in zip(layers, exact))


def load(size: str) -> Tuple[AllenNlpElmo, Dict[str, Elmo]]:
    """The peer and ours in both types, with the same random weights."""
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as directory:
        files = (f"{directory}/options.json", f"{directory}/weights.hdf5")
        Path(files[0]).write_text(json.dumps(options_of(size)))
        save_weights(Bilm(BilmOptions.from_dict(options_of(size))), files[1])
        peer = AllenNlpElmo(*files, num_output_representations=1, dropout=0.0).eval()
        ours = {dtype: Elmo(*files, dropout=0.0, dtype=dtype).eval() for dtype in DTYPES}
    return peer, ours


def make_turns(
    sentences: List[List[str]], characters: CharacterMap, size: str, batch_size: int, number: int
) -> List[Turn]:
    """Turns of a few seconds each, on different sentences."""
    per_turn = max(2 * batch_size, 8) if size == "full" else max(4 * batch_size, 32)
    if len(sentences) < (number + 1) * per_turn:
        raise SystemExit(f"The text must hold at least {(number + 1) * per_turn} sentences.")
    turns = []
    for first in range(0, (number + 1) * per_turn, per_turn):
        chosen = sentences[first : first + per_turn]
        batches = [
            characters.batch_ids(chosen[start : start + batch_size])
            for start in range(0, per_turn, batch_size)
        ]
        turns.append(Turn(batches, sum(len(words) for words in chosen)))
    return turns


def compare(
    size: str, batch_sizes: List[int], sentences: List[List[str]], turns: int
) -> List[Dict[str, Any]]:
    peer, ours = load(size)
    limits = {dtype: machine_limits(getattr(torch, dtype)) for dtype in DTYPES}
    rows = []
    for batch_size in batch_sizes:
        measured = make_turns(sentences, ours["float32"].bilm.characters, size, batch_size, turns)
        # AllenNLP carries state from batch to batch: none for the comparison of the layers.
        peer._elmo_lstm._elmo_lstm.reset_states()
        with torch.no_grad():
            exact = peer._elmo_lstm(measured[0].batches[0])["activations"]
        rates = median_rates({"allennlp": peer, **ours}, measured)
        for dtype, elmo in ours.items():
            element_size = 4 if dtype == "float32" else 2
            limit = statistics.median(
                turn.num_tokens
                / needed_seconds(elmo.bilm, turn.batches, limits[dtype], element_size)
                for turn in measured[1:]
            )
            rows.append(
                {
                    "name": f"biLM inference, {size}, batch {batch_size}, {dtype}",
                    "unit": "tokens/s",
                    "ours": rates[dtype],
                    "peer": rates["allennlp"],
                    "ratio": rates[dtype] / rates["allennlp"],
                    "share_of_limit": rates[dtype] / limit,
                    "floor": FLOORS.get((size, batch_size, dtype)),
                    "largest_layer_error": relative_errors(elmo, exact, measured[0].batches[0]),
                    "limit_gflops": limits[dtype]["flops"] / 1e9,
                    "limit_gbytes": limits[dtype]["bandwidth"] / 1e9,
                }
            )
            print_row(rows[-1])
    return rows


def print_row(row: Dict[str, Any]) -> None:
    floor = f"{row['floor']:.0f}x" if row["floor"] else ""
    print(
        f"{row['name']:<46}{row['ours']:>9,.0f}{row['peer']:>10,.0f}{row['ratio']:>8.2f}x"
        f"{floor:>7}{row['share_of_limit']:>9.0%}{row['largest_layer_error']:>12.1e}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("text", type=Path, help="tokenised text, a sentence per line")
    parser.add_argument("--size", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--batch-size", nargs="+", type=int, default=[1, 16, 64])
    parser.add_argument("--turns", type=int, default=5, help="measurements per row")
    parser.add_argument("--output", type=Path, help="write the rows as JSON here too")
    arguments = parser.parse_args()
    lines = sentence_per_line.read_sentences(arguments.text)
    sentences = [list(words) for _, words in lines if words]
    random.Random(0).shuffle(sentences)
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads; tokens/s")
    print(
        f"{'':<46}{'ours':>9}{'AllenNLP':>10}{'ratio':>9}{'floor':>7}{'of limit':>9}{'error':>12}"
    )
    rows = [
        {**row, "torch": torch.__version__, "date": date.today().isoformat()}
        for size in arguments.size
        for row in compare(size, arguments.batch_size, sentences, arguments.turns)
    ]
    if arguments.output:
        arguments.output.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
