"""
Fit a linear classifier of part-of-speech tags on each frozen layer of a biLM, as in Table 6 of the
ELMo paper, and print its accuracy on dev and test.

The corpus is CoNLL-U (--tag chooses the column), or plain columns (--columns): three files, by
default those in ELMO_DATA/pos whose names end in train.conllu, dev.conllu and test.conllu.

Vectors are standardised to mean 0 and variance 1. They take 2 x layers x width bytes per word and
representation on the disk. docs/analysis.md explains the rows and columns of the table.

example:
    %(prog)s --tag xpos --cache vectors --json tags.json
    %(prog)s --train train.txt --dev dev.txt --test test.txt --columns 1 2
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Optional, Set, Tuple

from elmo_plugin.analysis.representations import BILM
from elmo_plugin.analysis.tag_probe import L2, SPLITS, Accuracy, TagProbe, TagScore
from elmo_plugin.bilm import Bilm
from elmo_plugin.commands.arguments import option
from elmo_plugin.commands.metrics import markdown_table
from elmo_plugin.commands.probe import STOPPED, ProbeArguments, run_probe  # noqa: F401
from elmo_plugin.corpora.tagged_words import CONLLU_TAGS, read_conllu, read_tag_columns
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.progress import progress


@dataclass(kw_only=True)
class Options(ProbeArguments):
    train: Optional[str] = option("sentences of the train part", metavar="FILE")
    dev: Optional[str] = option("sentences of the dev part", metavar="FILE")
    test: Optional[str] = option("sentences of the test part", metavar="FILE")
    tag: str = option("column of CoNLL-U", "upos", choices=CONLLU_TAGS)
    columns: Optional[List[int]] = option(
        "read plain columns, an empty line between sentences: the numbers of these two, from "
        "1, or from the right from -1",
        nargs=2,
        metavar=("WORD", "TAG"),
    )


def run(args: Options) -> str:
    patterns = {split: f"*{split}.conllu" for split in SPLITS}
    return run_probe(args, "pos", patterns, _probe)


def _probe(
    args: Options, files: Dict[str, str], bilm: Bilm, folder: Path
) -> Tuple[Dict[str, Any], str]:
    if args.columns is not None and not args.train:
        raise ConfigurationError(
            "--columns: the corpus in ELMO_DATA is CoNLL-U. Name files in columns with "
            "--train, --dev and --test."
        )
    splits = {
        split: list(
            read_tag_columns(path, *args.columns) if args.columns else read_conllu(path, args.tag)
        )
        for split, path in files.items()
    }

    def words() -> Set[str]:
        return {word for sentences in splits.values() for s in sentences for word in s.words}

    probe = TagProbe(splits, folder)
    total = sum(map(len, splits.values()))
    scores = [probe.most_frequent_tag()]
    for representation in args.chosen(bilm, words):
        with progress(f"sentences, {representation.name}", total) as advance:
            features = probe.features(representation, advance)
        with_mix = representation.name == BILM
        with progress(f"iterations, {representation.name}") as advance:
            scores += probe.scores(representation, features, with_mix, advance)
    results = {
        "tag": args.tag if args.columns is None else f"columns {args.columns}",
        "l2": L2,
        "num_sentences": {split: len(splits[split]) for split in SPLITS},
        "num_words": {s: sum(len(x.words) for x in splits[s]) for s in SPLITS},
        "tags": probe.tags,
        "scores": [_as_dict(score) for score in scores],
    }
    rows = [_cells(score) for score in scores]
    return results, markdown_table(list(rows[0]), [list(row.values()) for row in rows], num_left=2)


def _cells(score: TagScore) -> Dict[str, str]:
    test, fitted, change = score.test, score.classifier, score.from_previous
    unfinished = ", not converged" if fitted and not fitted.converged else ""
    low, high = map(_percent, test.overall.interval())
    return {
        "representation": score.representation,
        "layer": score.layer,
        "dev": _percent(score.dev.overall.value),
        "test": _percent(test.overall.value),
        "test, 95 %": f"{low} to {high}",
        "from the row above, 95 %": change.in_percent(2) if change else "",
        "test, unseen words": _percent(test.unseen),
        "iterations": f"{fitted.num_iterations}{unfinished}" if fitted else "",
    }


def _percent(share: Optional[float]) -> str:
    return "" if share is None else f"{100 * share:.2f}"


def _as_dict(score: TagScore) -> Dict[str, Any]:
    def shares(accuracy: Accuracy) -> Dict[str, Any]:
        overall = accuracy.overall
        interval = overall.interval()
        return {"overall": overall.value, "interval": interval, "unseen": accuracy.unseen}

    of_classifier = ("layer_weights", "loss", "num_iterations", "converged")
    return {
        "representation": score.representation,
        "layer": score.layer,
        "dev": shares(score.dev),
        "test": shares(score.test),
        "samples": score.test.overall.rounded_samples(),
        "from_previous": score.from_previous and score.from_previous._asdict(),
        **{name: getattr(score.classifier, name, None) for name in of_classifier},
    }
