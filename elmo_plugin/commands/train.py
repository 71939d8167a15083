"""
Train a model of a task on a corpus of your own, with ELMo.

TRAIN, --dev and --test are files in the format of the task's corpus (docs/data.md). The command
shows what is in them, warns of what may harm the model, writes OUT/experiment.jsonnet, a variant of
an experiment that comes with the project, and trains it like `allennlp train`. That file can be
edited and trained again: allennlp train FILE -s OTHER --include-package elmo_plugin

example:
    %(prog)s ner train.conll --dev dev.conll -s out/ner
    %(prog)s sst train.txt --dev dev.txt -s out/sst --epochs 5 --set elmo.lambda=0.01
    %(prog)s classifier reviews.csv -s out/stars --set text=review label=stars
    elmo predict out/ner "Ada Lovelace lived in London."
"""

import json
import shlex
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Optional

from allennlp.commands import train as allennlp_train
from allennlp.common import Params
from allennlp.data import DatasetReader
from allennlp.models import Model
from allennlp.predictors import Predictor

from elmo_plugin.commands.arguments import (
    AT_MOST_ONE,
    Device,
    PositiveInt,
    flag,
    option,
    positional,
)
from elmo_plugin.commands.command import say
from elmo_plugin.commands.evaluate import evaluate
from elmo_plugin.commands.experiment_file import TASKS, make_experiment
from elmo_plugin.commands.metrics import aligned, format_metrics
from elmo_plugin.console import quieten
from elmo_plugin.corpora.records import SUFFIXES, read_records
from elmo_plugin.tasks.corpus_summary import (
    CorpusSummary,
    shares_without_vectors,
    summarise,
    warnings_about,
)
from elmo_plugin.util.atomic_write import atomic_write
from elmo_plugin.util.errors import ConfigurationError, expect
from elmo_plugin.util.progress import progress
from elmo_plugin.util.text_files import find_file, has_suffix

STOPPED = "stopped. The same command with --recover continues from the last checkpoint."
# Settings of a reader of dev that do not hold for test.
_OF_DEV = ("dev_fraction", "is_dev", "max_instances")
_MOST_LABELS = 20
# Warns if so many words of the training text have no vector.
_MANY_UNKNOWN = 0.2


@dataclass(kw_only=True)
class Options:
    task: str = positional("TASK", f"one of {', '.join(TASKS)}", choices=TASKS)
    train: str = positional("TRAIN", "corpus to train on")
    dev: Optional[str] = option("corpus that chooses the best epoch", metavar="FILE")
    test: Optional[str] = option("corpus to evaluate the best epoch on", metavar="FILE")
    serialization_dir: Optional[Path] = option(
        "folder for the experiment, logs, checkpoints and the model; needed unless --check-only",
        short="-s",
        metavar="OUT",
    )
    bilm: Optional[str] = option(
        "the biLM: whatever `elmo embed --bilm` opens (default: ELMO_BILM, or the small one)",
        None,
        AT_MOST_ONE,
    )
    no_elmo: bool = flag("train the baseline, without ELMo", AT_MOST_ONE)
    vectors: Optional[str] = option(
        "word vectors in GloVe's format (default: ELMO_GLOVE, or a few that come with the project)",
        metavar="FILE",
    )
    epochs: Optional[PositiveInt] = option("most epochs (default: as in the experiment)")
    seed: Optional[int] = option("random seed (default: ELMO_SEED)")
    set: Optional[List[str]] = option(
        "settings of experiments/lib, such as batch_size=8 or elmo.dropout=0.2; the value is JSON, "
        "or else text",
        metavar="NAME=VALUE",
    )
    device: Optional[Device] = Device.option(None)
    recover: bool = flag("continue the training in OUT", "of the folder")
    force: bool = flag("delete OUT first", "of the folder")
    check_only: bool = flag("show what is in the corpora, and stop")


class _Experiment(Params):
    """Writes its jsonnet beside the config.json, as soon as AllenNLP has accepted the folder."""

    def __init__(self, params: Dict[str, Any], history: str = "", jsonnet: str = "") -> None:
        super().__init__(params, history)
        self._jsonnet = jsonnet

    def to_file(self, params_file: str, *args: Any) -> None:
        super().to_file(params_file, *args)
        with atomic_write(Path(params_file).with_name("experiment.jsonnet")) as unfinished:
            unfinished.write_text(self._jsonnet, encoding="utf-8")


def run(args: Options) -> str:
    quieten()
    out = args.serialization_dir
    if out is None and not args.check_only:
        raise ConfigurationError("Expected -s OUT, the folder for the model, or --check-only.")
    is_started = out is not None and out.is_dir() and any(out.iterdir())
    if is_started and not (args.recover or args.force):
        raise ConfigurationError(
            f"{out} is not empty. Give --recover to continue the training in it, --force to delete "
            "it and to train anew, or name another folder."
        )
    epochs = [f"num_epochs={args.epochs}"] if args.epochs else []
    jsonnet, params = make_experiment(
        args.task,
        args.train,
        dev=args.dev,
        test=args.test,
        with_elmo=not args.no_elmo,
        bilm=args.bilm,
        vectors=args.vectors,
        seed=args.seed,
        settings=[*epochs, *(args.set or [])],
        cuda_device=None if args.device is None else args.device.number,
    )
    example = _show_corpora(Params(params).duplicate(), args.test)
    if out is None or args.check_only:
        return ""
    if Predictor.by_name(params["model"]["type"]).text_field is None:
        shown = json.dumps(example, ensure_ascii=False)
    else:
        (shown,) = example.values()
    experiment = _Experiment(params, jsonnet=jsonnet)
    allennlp_train.train_model(
        experiment, out, recover=args.recover and is_started, force=args.force
    )
    return _report(args, out, shown)


def _show_corpora(params: Params, test: Optional[str]) -> Dict[str, str]:
    """
    Prints what is in the corpora, and warnings to standard error. Returns an example of the
    training texts. Raises `ValueError` if no instance of a corpus has a label.
    """
    needed = Model.by_name(params["model"]["type"]).needed_labels
    words = params["model"]["text_field_embedder"]["token_embedders"]["words"]
    vectors = words.get("pretrained_file")
    is_lowercase = params["dataset_reader"]["token_indexers"]["words"]["lowercase_tokens"]
    parts: Dict[str, CorpusSummary] = {}
    for part, reader, path in (
        ("train", params["dataset_reader"], params["train_data_path"]),
        ("dev", params["validation_dataset_reader"].duplicate(), params["validation_data_path"]),
        # Is no part of the training data, and is read to its end.
        ("test", _without(params["validation_dataset_reader"], *_OF_DEV), test),
    ):
        if path:
            parts[part] = _summary(part, DatasetReader.from_params(reader), path)
            found = f"none in any of its {parts[part].num_instances:,} instances"
            is_labelled = parts[part].num_unlabelled < parts[part].num_instances
            expect(is_labelled, path, needed, found, f"{part.capitalize()} needs labels.")
    shares = shares_without_vectors(vectors, parts.values(), is_lowercase) if vectors else []
    print("\n".join(aligned(_rows(parts, shares))), flush=True)
    for warning in warnings_about(parts):
        say(f"warning: {warning}")
    if shares and shares[0] > _MANY_UNKNOWN:
        lacking = f"{vectors} lacks {shares[0]:.0%} of the words of train"
        say(f"warning: {lacking}. Name other word vectors with --vectors.")
    return parts["train"].example


def _rows(parts: Dict[str, CorpusSummary], shares: List[float]) -> List[List[str]]:
    summaries = parts.values()
    rows = [
        ["", *parts],
        ["instances", *(f"{each.num_instances:,}" for each in summaries)],
        ["words", *(f"{each.words.total():,}" for each in summaries)],
        ["words of the longest", *(f"{each.longest:,}" for each in summaries)],
    ]
    if shares:
        rows.append(["words without a vector", *(f"{share:.1%}" for share in shares)])
    if tags := parts["train"].tags:
        rows.append([f"tags: {tags}", *("" for _ in parts)])
    labels = sum((each.labels for each in summaries), Counter()).most_common()
    for name, _ in labels[:_MOST_LABELS]:
        rows.append([f"  {name}", *(f"{each.labels[name]:,}" for each in summaries)])
    if others := labels[_MOST_LABELS:]:
        sums = (f"{sum(each.labels[name] for name, _ in others):,}" for each in summaries)
        rows.append([f"  {len(others)} other labels", *sums])
    return rows


def _summary(part: str, reader: DatasetReader, path: str) -> CorpusSummary:
    if reader.columns and has_suffix(path, *SUFFIXES):
        columns = next(read_records(path))[1].keys()
        others = [name for name in columns if name not in reader.columns]
        # If a column of texts is missing, the reader names it.
        is_right = reader.label_column in columns or set(reader.columns) - columns
        advice = "Add a column of labels."
        if part == "train" and others:
            advice = f"Add --set label={others[0] if len(others) == 1 else 'NAME'}."
        expect(is_right, path, f"the column {reader.label_column!r}", ", ".join(columns), advice)
    with progress(f"instances of {part}") as advance:
        return summarise(reader.read(path), reader, advance)


def _without(params: Params, *names: str) -> Params:
    return Params({name: value for name, value in params.params.items() if name not in names})


def _report(args: Options, out: Path, example: str) -> str:
    """The scores, where the model is, and the command that predicts an example."""
    metrics = json.loads((out / "metrics.json").read_text(encoding="utf-8"))
    start = "best_validation_"
    scores = {n.removeprefix(start): v for n, v in metrics.items() if n.startswith(start)}
    lines = ["", "dev, best epoch", format_metrics(scores)]
    if args.test:
        device = -1 if args.device is None else args.device.number
        (scores,) = evaluate(str(out), [find_file(args.test)], device)
        lines += ["", "test", format_metrics(scores)]
    lines += ["", f"{out / 'model.tar.gz'} is the model. To use it:"]
    lines.append(f"elmo predict {shlex.quote(str(out))} {shlex.quote(example)}")
    return "\n".join(lines)
