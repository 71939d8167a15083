from argparse import ArgumentParser, Namespace
from typing import Any, Dict, List, Optional, Set

from elmo_plugin.analysis.representations import BILM
from elmo_plugin.analysis.tag_probe import SPLITS, Accuracy, TagProbe, TagScore
from elmo_plugin.bilm import Bilm
from elmo_plugin.commands import probe_arguments
from elmo_plugin.commands.bilm_arguments import chosen_bilm, positive_number
from elmo_plugin.commands.markdown import markdown_table
from elmo_plugin.commands.probe_arguments import (
    add_probe_arguments,
    corpus_files,
    representations,
    vector_folder,
    write_results,
)
from elmo_plugin.corpora.tagged_words import (
    CONLLU_TAGS,
    TaggedSentence,
    read_conllu,
    read_tag_columns,
)
from elmo_plugin.util.atomic_write import check_output
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.progress import progress

DESCRIPTION = """\
Fit a linear classifier of part-of-speech tags on each frozen layer of a biLM, as in Table 6 of the
ELMo paper, and print its accuracy on dev and test.

The corpus is CoNLL-U (--tag chooses the column), or plain columns (--columns): three files, by
default those in ELMO_DATA/pos whose names end in train.conllu, dev.conllu and test.conllu.

Rows of the table: the most frequent tag of each word; static word vectors; each layer of a random
biLM of the same shape; each layer of the biLM; the scalar mix of its layers, whose weights are
learned with the classifier. The classifier is a softmax regression on vectors that are standardised
to mean 0 and variance 1, with a small L2 penalty, fitted by L-BFGS until a step lowers the loss by
less than 1e-6. Intervals are at 95 %, by a bootstrap over sentences; *from the row above* is the
difference on test from the previous layer, by a paired bootstrap. Unseen words are those that are
not in the training set. --cove adds the layers of CoVe.

Vectors are on the disk in half precision (with --cache they are kept there), 2 x layers x width
bytes per word and representation. RAM grows with the words of the corpus, about 170 bytes for each.
"""

EPILOG = """\
example:
    %(prog)s --tag xpos --cache vectors --json tags.json
    %(prog)s --train train.txt --dev dev.txt --test test.txt --columns 1 2
"""

STOPPED = probe_arguments.STOPPED

_HEAD = (
    "representation",
    "layer",
    "dev",
    "test",
    "test, 95 %",
    "from the row above, 95 %",
    "test, unseen words",
    "iterations",
)


def add_arguments(parser: ArgumentParser) -> None:
    for split in SPLITS:
        parser.add_argument(f"--{split}", metavar="FILE", help=f"sentences of the {split} part")
    parser.add_argument(
        "--tag", choices=CONLLU_TAGS, default="upos", help="column of CoNLL-U (default: upos)"
    )
    parser.add_argument(
        "--columns",
        nargs=2,
        type=int,
        metavar=("WORD", "TAG"),
        help="read plain columns, an empty line between sentences: the numbers of these two, from "
        "1, or from the right from -1",
    )
    parser.add_argument(
        "--l2",
        type=float,
        default=1e-4,
        help="L2 penalty: half the squared norm of the classifier's weights, times this, is added "
        "to the mean loss of a word (default: 1e-4)",
    )
    parser.add_argument(
        "--max-iterations",
        type=positive_number,
        default=1000,
        help="iterations of L-BFGS; a row that has not converged by then is marked (default: 1000)",
    )
    add_probe_arguments(parser)


def run(args: Namespace) -> str:
    if args.json is not None:
        check_output(args.json, force=True)
    bilm = chosen_bilm(args)
    files = corpus_files(args, "pos", {split: f"*{split}.conllu" for split in SPLITS})
    splits = _read(args, files)
    with vector_folder(args) as folder:
        probe = TagProbe(splits, folder, args.l2, args.max_iterations)
        scores = _scores(args, bilm, probe, splits)
    results = {
        "files": files,
        "tag": args.tag if args.columns is None else f"columns {args.columns}",
        "l2": args.l2,
        "num_sentences": {split: len(splits[split]) for split in SPLITS},
        "num_words": {s: sum(len(x.words) for x in splits[s]) for s in SPLITS},
        "tags": probe.tags,
        "scores": [_as_dict(score) for score in scores],
    }
    write_results(args, bilm, results)
    return markdown_table(_HEAD, [_cells(score) for score in scores], num_left=2)


def _read(args: Namespace, files: Dict[str, str]) -> Dict[str, List[TaggedSentence]]:
    if args.columns is not None and not args.train:
        raise ConfigurationError(
            "--columns: the corpus in ELMO_DATA is CoNLL-U. Name files in columns with "
            "--train, --dev and --test."
        )
    splits = {}
    for split, path in files.items():
        sentences = (
            read_conllu(path, args.tag)
            if args.columns is None
            else read_tag_columns(path, *args.columns)
        )
        splits[split] = list(sentences)
    return splits


def _scores(
    args: Namespace, bilm: Bilm, probe: TagProbe, splits: Dict[str, List[TaggedSentence]]
) -> List[TagScore]:
    def words() -> Set[str]:
        return {word for sentences in splits.values() for s in sentences for word in s.words}

    total = sum(map(len, splits.values()))
    scores = [probe.most_frequent_tag()]
    for representation in representations(args, bilm, words):
        with progress(f"sentences, {representation.name}", total) as advance:
            features = probe.features(representation, advance)
        with_mix = representation.name == BILM
        with progress(f"iterations, {representation.name}") as advance:
            scores += probe.scores(representation, features, with_mix, advance)
    return scores


def _cells(score: TagScore) -> List[str]:
    low, high = score.test.overall.interval()
    iterations = "" if score.classifier is None else str(score.classifier.num_iterations)
    if score.classifier is not None and not score.classifier.converged:
        iterations += ", not converged"
    return [
        score.representation,
        score.layer,
        _percent(score.dev.overall.value),
        _percent(score.test.overall.value),
        f"{_percent(low)} to {_percent(high)}",
        score.from_previous.in_percent(2) if score.from_previous else "",
        _percent(score.test.unseen),
        iterations,
    ]


def _percent(share: Optional[float]) -> str:
    return "" if share is None else f"{100 * share:.2f}"


def _as_dict(score: TagScore) -> Dict[str, Any]:
    of_classifier = ("layer_weights", "loss", "num_iterations", "num_evaluations", "converged")
    return {
        "representation": score.representation,
        "layer": score.layer,
        "dev": _accuracy_as_dict(score.dev),
        "test": _accuracy_as_dict(score.test),
        "samples": score.test.overall.rounded_samples(),
        "from_previous": score.from_previous and score.from_previous._asdict(),
        **{name: getattr(score.classifier, name, None) for name in of_classifier},
    }


def _accuracy_as_dict(accuracy: Accuracy) -> Dict[str, Any]:
    overall = accuracy.overall
    return {
        "overall": overall.value,
        "interval": overall.interval(),
        "unseen": accuracy.unseen,
    }
