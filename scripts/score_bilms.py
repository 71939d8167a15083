"""
The accuracy of biLMs on minimal pairs and their perplexity on a text, for `elmo report`.

    python scripts/score_bilms.py experiments/results/language_models.json \\
        --bilms shipped-small shipped-medium --pairs fixtures/corpora/minimal_pairs \\
        --text $ELMO_DATA/lm/small/heldout.txt

The numbers are those that `elmo score` prints. Intervals are by a bootstrap over pairs, that of a
difference from the biLM before is paired. Perplexities come last, because they take longest:
without --text, there are none; a perplexity that the output has is not computed again.
"""

import argparse
import json
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, List

from elmo_plugin.analysis.studies.findings import Finding, verdict
from elmo_plugin.analysis.surprisal import (
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

PERPLEXITIES = ("perplexity", "forward_perplexity", "backward_perplexity")


def print_nothing(lines: str, progress: Dict[str, Any]) -> None:
    """In place of the rows of sentences."""


def perplexity(scorer: Scorer, path: str) -> Dict[str, float]:
    """The perplexities of a text, and how many predictions they are of."""
    done = ScoredText()
    with progress("sentences") as advance:
        text = DigestedText([path])
        score_text(scorer, text, rows_of_sentence, done, print_nothing, "", on_progress=advance)
    return {"num_predictions": done.num_predictions, **done.perplexity()}


def tables(scores: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
    """Perplexities, and the accuracies of both directions together, as text."""
    perplexities = [
        [score["bilm"], text, f"{found['num_predictions']:,}"]
        + [f"{found[name]:.1f}" for name in PERPLEXITIES]
        for score in scores
        for text, found in score["texts"].items()
    ]
    pairs = [
        [same[0]["name"], str(same[0]["num_pairs"])]
        + [f"{100 * each['shares'][-1]:.1f}" for each in same]
        for same in zip(*(score["accuracies"] for score in scores))
    ]
    bounds = [[f"{100 * bound:.1f}" for bound in score["interval"]] for score in scores]
    pairs.append(["all, 95 %", "", *map(" to ".join, bounds)])
    bilms = [score["bilm"] for score in scores]
    head = ["biLM", "text", "predictions", "perplexity", "forward", "backward"]
    found = [{"head": ["minimal pairs", "pairs", *bilms], "lines": pairs}]
    if perplexities:
        found.append({"head": head, "lines": perplexities, "num_left": 2})
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("output", type=Path, metavar="OUT.json")
    parser.add_argument("--bilms", nargs="+", required=True, help="names or folders")
    parser.add_argument("--pairs", required=True, help="file or folder, in the format of BLiMP")
    parser.add_argument("--text", nargs="*", default=[], help="tokenised, a sentence per line")
    arguments = parser.parse_args()
    known: List[Dict[str, Any]] = []
    if arguments.output.exists():
        known = json.loads(arguments.output.read_text(encoding="utf-8"))["scores"]
    texts_of = {score["bilm_fingerprint"]: score["texts"] for score in known}
    pairs = [pair for file in find_shards([arguments.pairs]) for pair in read_minimal_pairs(file)]
    # Sets of one pair have the result of each pair.
    singles = [replace(pair, uid=str(number)) for number, pair in enumerate(pairs)]
    scores: List[Dict[str, Any]] = []
    findings: List[Dict[str, Any]] = []
    scorers, previous = [], None
    for name in arguments.bilms:
        bilm, softmax = load_bilm(name), softmax_of_bilm(name, None)
        if softmax is None:
            raise SystemExit(f"{name} comes without a softmax.")
        scorers.append(Scorer(bilm, softmax))
        found = pair_accuracies(scorers[-1], singles)
        right = [each.shares[-1] for each in found if each.kind == "set"]
        share = bootstrap(right, [1] * len(right))
        if previous:
            difference = share.minus(previous)
            names = ("Minimal pairs", name, scores[-1]["bilm"])
            findings.append(Finding(*names, difference, verdict(difference.interval))._asdict())
        previous = share
        identity = fingerprint(bilm)
        scores.append(
            {
                "bilm": name,
                "bilm_fingerprint": identity,
                "accuracies": [each._asdict() for each in found if each.kind != "set"],
                "interval": share.interval(),
                "texts": texts_of.get(identity, {}),
            }
        )

    def save() -> None:
        content = {
            "title": "Language models and minimal pairs",
            "command": shlex.join(["python", *sys.argv]),
            "findings": findings,
            "tables": tables(scores),
            "scores": scores,
        }
        write_json_rows(arguments.output, content, "bilm")

    save()
    for scorer, score in zip(scorers, scores):
        for text in arguments.text:
            # Without the folder of the corpora on this machine.
            name = "/".join(Path(text).parts[-3:])
            if name not in score["texts"]:
                score["texts"][name] = perplexity(scorer, text)
                save()


if __name__ == "__main__":
    main()
