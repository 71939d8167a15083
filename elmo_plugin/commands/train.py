"""
Train a model of a task on a corpus of your own, with ELMo.

TRAIN, --dev and --test are files in the format of the task's corpus (docs/data.md). The command
shows what is in them, warns of what may harm the model, writes OUT/experiment.jsonnet, a variant of
an experiment that comes with the project, and trains it like `allennlp train`. That file can be
edited and trained again: allennlp train FILE -s OTHER --include-package elmo_plugin

example:
    %(prog)s ner train.conll --dev dev.conll -s out/ner
    %(prog)s sst train.txt --dev dev.txt -s out/sst --epochs 5 --set elmo.lambda=0.01
    elmo predict out/ner "Ada Lovelace lived in London."
"""

import json
import os
import shlex
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Optional

from allennlp.commands import train as allennlp_train
from allennlp.common import Params
from allennlp.common.params import evaluate_snippet
from allennlp.data import DatasetReader
from allennlp.predictors import Predictor

from elmo_plugin.commands.arguments import AT_MOST_ONE, PositiveInt, flag, option, positional
from elmo_plugin.commands.command import say
from elmo_plugin.commands.experiment_file import TASKS, experiment_jsonnet
from elmo_plugin.commands.metrics import format_metrics
from elmo_plugin.commands.tables import aligned
from elmo_plugin.console import quieten
from elmo_plugin.tasks.corpus_summary import CorpusSummary, summarise, warnings_about
from elmo_plugin.util.atomic_write import atomic_write
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.progress import progress

STOPPED = "stopped. The same command with --recover continues from the last checkpoint."
# How AllenNLP calls the parts of a corpus.
_PARTS = {"train": "train", "dev": "validation", "test": "test"}
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
    cuda_device: Optional[int] = option("GPU, or -1 for the CPU (default: a GPU if there is one)")
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
    if out and out.is_dir() and any(out.iterdir()) and not (args.recover or args.force):
        raise ConfigurationError(
            f"{out} is not empty. Give --recover to continue the training in it, --force to delete "
            "it and to train anew, or name another folder."
        )
    epochs = [f"num_epochs={args.epochs}"] if args.epochs else []
    jsonnet = experiment_jsonnet(
        args.task,
        {"train": args.train, "dev": args.dev, "test": args.test},
        with_elmo=not args.no_elmo,
        bilm=args.bilm,
        vectors=args.vectors,
        seed=args.seed,
        settings=[*epochs, *(args.set or [])],
        cuda_device=args.cuda_device,
    )
    variables = {name: value for name, value in os.environ.items() if name.startswith("ELMO_")}
    params = json.loads(evaluate_snippet("experiment.jsonnet", jsonnet, ext_vars=variables))
    _show_corpora(Params(params).duplicate())
    if out is None or args.check_only:
        return ""
    task = params["model"]["type"]
    experiment = _Experiment(params, jsonnet=jsonnet)
    allennlp_train.train_model(experiment, out, recover=args.recover, force=args.force)
    return _report(out, task)


def _show_corpora(params: Params) -> None:
    """Prints what is in the corpora, and warnings to standard error."""
    words = params["model"]["text_field_embedder"]["token_embedders"]["words"]
    vectors = words.get("pretrained_file")
    is_lowercase = params["dataset_reader"]["token_indexers"]["words"]["lowercase_tokens"]
    paths = {part: params.get(f"{name}_data_path") for part, name in _PARTS.items()}
    train = DatasetReader.from_params(params["dataset_reader"])
    other = DatasetReader.from_params(params["validation_dataset_reader"])
    parts: Dict[str, CorpusSummary] = {}
    for part, path in paths.items():
        if path:
            reader = train if part == "train" else other
            with progress(f"instances of {part}") as advance:
                parts[part] = summarise(reader.read(path), reader, advance)
    of_parts = parts.values()
    rows = [
        ["", *parts],
        ["instances", *(f"{part.num_instances:,}" for part in of_parts)],
        ["words", *(f"{part.words.total():,}" for part in of_parts)],
        ["words of the longest", *(f"{part.longest:,}" for part in of_parts)],
    ]
    if vectors:
        shares = [part.share_without_vector(vectors, is_lowercase) for part in of_parts]
        rows.append(["words without a vector", *(f"{share:.1%}" for share in shares)])
    labels = sum((part.labels for part in of_parts), Counter())
    for name, _ in labels.most_common(_MOST_LABELS):
        rows.append([f"  {name}", *(f"{part.labels[name]:,}" for part in of_parts)])
    if len(labels) > _MOST_LABELS:
        rest = [name for name, _ in labels.most_common()[_MOST_LABELS:]]
        sums = (f"{sum(part.labels[name] for name in rest):,}" for part in of_parts)
        rows.append([f"  {len(rest)} other labels", *sums])
    print("\n".join(aligned(rows)), flush=True)
    for warning in warnings_about(parts):
        say(f"warning: {warning}")
    if vectors and shares[0] > _MANY_UNKNOWN:
        share = f"{shares[0]:.0%} of the words of train"
        say(f"warning: {vectors} lacks {share}. Name other word vectors with --vectors.")


def _report(out: Path, task: str) -> str:
    """The scores, where the model is, and what to do next."""
    metrics = json.loads((out / "metrics.json").read_text(encoding="utf-8"))
    lines = []
    for title, start in (("dev, best epoch", "best_validation_"), ("test", "test_")):
        scores = {n.removeprefix(start): v for n, v in metrics.items() if n.startswith(start)}
        if scores:
            lines += ["", title, format_metrics(scores)]
    (text, *others) = Predictor.by_name(task).example.values()
    example = text if not others else json.dumps(Predictor.by_name(task).example)
    lines += ["", f"{out / 'model.tar.gz'} is the model. To use it:"]
    lines.append(f"elmo predict {shlex.quote(str(out))} {shlex.quote(example)}")
    return "\n".join(lines)
