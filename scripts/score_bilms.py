"""
The perplexity of biLMs on a text and their accuracy on minimal pairs, for the report.

    python scripts/score_bilms.py experiments/results/language_models.json \\
        --bilms shipped-small shipped-medium --text $ELMO_DATA/lm/small/heldout.txt \\
        --pairs fixtures/corpora/minimal_pairs

The numbers are those that `elmo score` prints, with intervals of the accuracy on all pairs, by a
bootstrap over pairs, and of its difference from the biLM before (paired).
"""

import argparse
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, List

from elmo_plugin.analysis.studies.findings import Finding, verdict
from elmo_plugin.analysis.surprisal import (
    DIRECTIONS,
    ScoredText,
    Scorer,
    pair_accuracies,
    rows_of_sentence,
    score_text,
)
from elmo_plugin.bilm import fingerprint, load_bilm
from elmo_plugin.bilm.files.find import softmax_of_bilm
from elmo_plugin.bilm.pretraining.text import find_shards
from elmo_plugin.corpora.minimal_pairs import read_minimal_pairs
from elmo_plugin.corpora.sentence_per_line import DigestedText
from elmo_plugin.util.atomic_write import write_json_rows
from elmo_plugin.util.bootstrap import bootstrap
from elmo_plugin.util.progress import progress


def print_nothing(lines: str, progress: Dict[str, Any]) -> None:
    """In place of the rows of sentences."""


def tables(scores: List[Dict[str, Any]], text: str) -> List[Dict[str, Any]]:
    """Perplexities, and accuracies of both directions together, as text."""
    names = ("perplexity", "forward_perplexity", "backward_perplexity")
    perplexities = [
        [each["bilm"], f"{each['num_predictions']:,}", *(f"{each[name]:.1f}" for name in names)]
        for each in scores
    ]
    kinds = [
        [
            *(same[0]["name"], str(same[0]["num_pairs"])),
            *(f"{100 * each['shares'][DIRECTIONS.index('both')]:.1f}" for each in same),
        ]
        for same in zip(*(each["accuracies"] for each in scores))
    ]
    bounds = [[f"{100 * bound:.1f}" for bound in each["interval"]] for each in scores]
    kinds.append(["all, 95 %", "", *(" to ".join(each) for each in bounds)])
    bilms = [each["bilm"] for each in scores]
    source = "/".join(Path(text).parts[-3:])
    found = (
        (
            [f"perplexity of {Path(text).name}", "predictions", "both", *DIRECTIONS[:2]],
            perplexities,
        ),
        (["minimal pairs, right in %", "pairs", *bilms], kinds),
    )
    return [{"head": head, "lines": lines} for head, lines in found]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("output", type=Path, metavar="OUT.json")
    parser.add_argument("--bilms", nargs="+", required=True, help="names or folders")
    parser.add_argument("--text", required=True, help="tokenised, one sentence per line")
    parser.add_argument("--pairs", required=True, help="file or folder, in the format of BLiMP")
    arguments = parser.parse_args()
    pairs = [pair for file in find_shards([arguments.pairs]) for pair in read_minimal_pairs(file)]
    # Sets of one pair have the result of each pair.
    singles = [replace(pair, uid=str(number)) for number, pair in enumerate(pairs)]
    scores: List[Dict[str, Any]] = []
    findings: List[Dict[str, Any]] = []
    previous = None
    for name in arguments.bilms:
        bilm = load_bilm(name)
        softmax = softmax_of_bilm(name, None)
        if softmax is None:
            raise SystemExit(f"{name} comes without a softmax.")
        scorer, text = Scorer(bilm, softmax), ScoredText()
        with progress(f"sentences, {name}") as advance:
            lines = DigestedText([arguments.text])
            score_text(scorer, lines, rows_of_sentence, text, print_nothing, "", 64, advance)
        found = pair_accuracies(scorer, singles)
        results = [each.shares[-1] for each in found if each.kind == "set"]
        right = bootstrap(results, [1] * len(results))
        accuracies = [each for each in found if each.kind != "set"]
        if previous:
            difference = right.minus(previous)
            decided = verdict(difference.interval)
            names = ("Minimal pairs", name, str(scores[-1]["bilm"]))
            findings.append(Finding(*names, difference, decided)._asdict())
        previous = right
        scores.append(
            {
                "bilm": name,
                "bilm_fingerprint": fingerprint(bilm),
                "num_predictions": text.num_predictions,
                **text.perplexity(),
                "accuracies": [each._asdict() for each in accuracies],
                "interval": right.interval(),
            }
        )
        content = {
            "title": "Language models and minimal pairs",
            "command": shlex.join(["python", *sys.argv]),
            "findings": findings,
            "tables": tables(scores, arguments.text),
            "scores": scores,
        }
        write_json_rows(arguments.output, content, "bilm")


if __name__ == "__main__":
    main()
