"""
Scores of the models of allennlp-models, trained like our baselines without ELMo.

    python benchmarks/peer_scores.py --task ner snli --seeds 1 2 3 --epochs 10 --patience 3 \\
        --output scores.json --peers /folder/of/allennlp-models

Instances, batches, optimizer, epochs, patience, seeds and word vectors are those of our experiment;
task_peers.py lists how the networks differ. They have no L2 penalty, and all products are in
float32, because AllenNLP's masked softmax does not support bfloat16. fast_peers.py computes
`bidaf`, `srl` and `coref` faster, with the same results up to rounding. A model is trained for each
baseline of the --study, or those of --columns, on the smallest share of the training data that the
study has of the task, or those of --fractions; its best epoch on dev is evaluated on test. Models
whose scores are in the output are not trained again. A run that was killed continues from its last
checkpoint, which is in a folder beside the output until the score is there. At the end, a Markdown
table of all scores in the output beside ours is printed; with `--update FILE` it also replaces what
is between the lines `<!-- peers -->` and `<!-- /peers -->` of a file. `--seeds` without a number
trains nothing.
"""

import argparse
import json
import os
import shutil
import tempfile
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any, Dict, List, Tuple

from allennlp.commands.train import train_model
from allennlp.common import Params
from allennlp.data import DataLoader, DatasetReader
from allennlp.models import Model
from allennlp.nn.util import move_to_device
from allennlp.training.util import evaluate
from common import argument_parser, replace_tables
from fast_peers import accelerate
from task_peers import CURE, PEERS, find_peers

from elmo_plugin.analysis.studies.findings import findings, note_epochs
from elmo_plugin.analysis.studies.results import Results
from elmo_plugin.analysis.studies.study import Column, Row, Run, Study
from elmo_plugin.analysis.studies.tables import score_tables
from elmo_plugin.analysis.studies.train_run import Score
from elmo_plugin.commands.metrics import markdown_table
from elmo_plugin.util.atomic_write import write_json_rows

EXPERIMENTS = Path(__file__).parent.parent / "experiments"
# How the names of a task's rows in studies begin, and the model of allennlp-models.
TASKS = {
    "ner": ("NER", "crf_tagger"),
    "sst": ("SST", "bcn"),
    "snli": ("SNLI", "esim"),
    "squad": ("SQuAD", "bidaf"),
    "srl": ("SRL", "srl"),
    "coref": ("Coreference", "coref"),
}


@Model.register("peer")
class PeerModel(Model):
    """A model of allennlp-models with the widths of `model`, which it replaces."""

    def __init__(self, vocab: Any, model: Model, peer: str) -> None:
        super().__init__(vocab)
        self.model, self._batch = PEERS[peer](model)
        accelerate(self.model)

    def forward(self, **tensors: Any) -> Dict[str, Any]:
        # What the conversion adds, such as spans, is on the CPU.
        batch = move_to_device(self._batch(tensors), next(self.parameters()).device)
        return self.model(**batch)

    def get_metrics(self, reset: bool = False) -> Dict[str, float]:
        return self.model.get_metrics(reset)


def runs_of(row: str, arguments: argparse.Namespace) -> List[Dict[str, Any]]:
    """Our baselines in the study, with the data, seeds, epochs and patience of the arguments."""
    settings = {
        name: value
        for name, value in (("num_epochs", arguments.epochs), ("patience", arguments.patience))
        if value is not None
    }
    source = f"""
    (import {json.dumps(str(EXPERIMENTS / "studies" / f"{arguments.study}.jsonnet"))}) {{
      settings+: {{
        rows: [
          row {{ settings+: {json.dumps(settings)}, seeds: {arguments.seeds} }}
          for row in super.rows
          if std.startsWith(row.name, {json.dumps(row)})
        ],
      }},
    }}
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "study.jsonnet")
        path.write_text(source, encoding="utf-8")
        runs = Params.from_file(path).as_dict(quiet=True)["runs"]
    named = arguments.columns or [run["column"] for run in runs]
    shares = arguments.fractions or sorted(run["fraction"] for run in runs)[:1]
    return [
        run
        for run in runs
        if run["column"] in named and run["fraction"] in shares
        if "elmo" not in run["experiment"]["dataset_reader"]["token_indexers"]
    ]


def test_data(run: Dict[str, Any]) -> DataLoader:
    """All instances of the run's test set, read as in validation: whole sentences of SST."""
    experiment = run["experiment"]
    reader = {**experiment["validation_dataset_reader"], "max_instances": None}
    return DataLoader.from_params(
        Params(dict(experiment["validation_data_loader"])),
        reader=DatasetReader.from_params(Params(reader)),
        data_path=run["evaluate"],
    )


def identity(run: Dict[str, Any], peer: str, study: str) -> Dict[str, Any]:
    """What distinguishes the score of a run from others; also part of the score."""
    trainer = run["experiment"]["trainer"]
    return {
        "study": study,
        "peer": peer,
        "column": run["column"],
        "fraction": run["fraction"],
        "seed": run["seed"],
        "num_epochs": trainer["num_epochs"],
        "patience": trainer["patience"],
    }


def folder_of(identity: Dict[str, Any], output: Path) -> Path:
    """Where a peer is trained: a folder whose name has the run's identity."""
    name = "-".join(map(str, identity.values())).replace(" ", "-")
    return output.with_suffix(".runs") / name


def measure(run: Dict[str, Any], peer: str, folder: Path) -> Dict[str, Any]:
    """Trains the peer in the folder, from the checkpoint there if there is one, and tests it."""
    experiment = run["experiment"]
    experiment["model"] = {"type": "peer", "peer": peer, "model": experiment["model"]}
    experiment["trainer"].pop("mixed_precision", None)
    metric = experiment["trainer"]["validation_metric"].lstrip("+")
    recover = (folder / "config.json").exists()
    model = train_model(Params(json.loads(json.dumps(experiment))), folder, recover=recover)
    metrics = json.loads((folder / "metrics.json").read_text())
    loader = test_data(run)
    loader.index_with(model.vocab)
    device = next(model.parameters()).device
    return {
        "epochs": metrics["epoch"] + 1,
        "metric": metric,
        "dev": metrics[f"best_validation_{metric}"],
        "test": evaluate(model, loader, cuda_device=device)[metric],
    }


@lru_cache
def kept(study: str) -> Results:
    """Our results of a study."""
    return Results(EXPERIMENTS / "results" / study / "results.json")


def ours(score: Dict[str, Any]) -> Tuple[str, List[Score]]:
    """The row of the peer's task, and our score with the same data, baseline and seed, if any."""
    starts = {peer: start for start, peer in TASKS.values()}
    found = kept(score["study"])
    row = next(row.name for row in found.rows if row.name.startswith(starts[score["peer"]]))
    of_baseline = found.scores(row, score["column"], score["fraction"])
    return row, [s for s in of_baseline if s["seed"] == score["seed"]]


def as_study(scores: List[Dict[str, Any]]) -> Results:
    """Peers and our baselines as a study. If there are several seeds, intervals are over these."""
    rows, runs, known = {}, [], []
    for score in scores:
        row, same = ours(score)
        metric, seed, names = score["metric"], score["seed"], (score["peer"], score["column"])
        columns = tuple(Column(name, metric, None) for name in names)
        rows[row] = Row(row, columns, True, lower_is_better=False, compare=True, num_baselines=1)
        training = {f"best_validation_{metric}": score["dev"]}
        peer = {"training": training, "evaluation": {metric: score["test"]}, "history": []}
        has_seeds = sum(each["peer"] == score["peer"] for each in scores) > 1
        for name, found in zip(names, (peer, *same)):
            runs.append(Run(row, name, score["fraction"], seed, None, {}, str(len(runs))))
            # Without the variance over test data, which the peers' scores lack.
            samples = {metric: 1000 * [found["evaluation"][metric]]} if has_seeds else None
            known.append({**found, "digest": runs[-1].digest, "samples": samples})
    results = Results(Path("not-a-file.json"))
    results.set_study(
        Study(
            "Baselines of other code (intervals over seeds only)", tuple(rows.values()), tuple(runs)
        )
    )
    for each in known:
        results.add(each)
    return results


def with_findings(scores: List[Dict[str, Any]]) -> Dict[str, Any]:
    """The scores, and what `elmo report` shows of them."""
    results = as_study(scores)
    epochs: Dict[str, int] = {}
    for study in {score["study"] for score in scores}:
        note_epochs(kept(study), epochs)
    content = {
        "title": results.title,
        "command": "",
        "findings": [each._asdict() for each in findings(results, epochs)],
        "tables": [asdict(each) for each in score_tables(results)],
        "scores": scores,
    }
    return json.loads(json.dumps(content))


def table(scores: List[Dict[str, Any]]) -> str:
    """The scores beside ours in the same study with the same data, baseline and seed."""
    lines = []
    for score in scores:
        metric = score["metric"]
        row, same = ours(score)
        dev = [s["training"][f"best_validation_{metric}"] for s in same]
        test = [s["evaluation"][metric] for s in same]
        numbers = [dev, [score["dev"]], test, [score["test"]]]
        percent = [f"{100 * number[0]:.2f}" if number else "-" for number in numbers]
        data = f"{100 * score['fraction']:g} %"
        lines.append([row, data, score["peer"], score["column"], str(score["seed"]), *percent])
    head = [
        "",
        "data",
        "peer",
        "our baseline",
        "seed",
        "dev, ours",
        "dev, peer",
        "test, ours",
        "test, peer",
    ]
    return markdown_table(head, lines, num_left=4)


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--task", nargs="+", choices=TASKS, default=["ner"])
    parser.add_argument(
        "--study", choices=("table1", "table2"), default="table1", help="with our baselines"
    )
    parser.add_argument(
        "--columns",
        nargs="+",
        help="baselines of the study, such as 'fixed vectors'; default: all",
    )
    parser.add_argument(
        "--fractions",
        nargs="+",
        type=float,
        metavar="SHARE",
        help="of the training data, those of the study; default: the smallest of each task",
    )
    parser.add_argument("--seeds", nargs="*", type=int, default=[1, 2, 3])
    parser.add_argument("--epochs", type=int, help="default: those of the study")
    parser.add_argument("--patience", type=int, help="default: that of the study")
    parser.add_argument("--output", type=Path, required=True, help="JSON, added to if it exists")
    parser.add_argument(
        "--peers",
        type=Path,
        default=os.environ.get("ELMO_PEERS"),
        help="folder of allennlp-models; default $ELMO_PEERS",
    )
    parser.add_argument("--update", type=Path, metavar="FILE", help="a Markdown file")
    arguments = parser.parse_args()
    if not find_peers(arguments.peers):
        parser.error(f"allennlp-models was not found: {CURE}")
    known: Dict[str, Any] = {"scores": []}
    if arguments.output.exists():
        known = json.loads(arguments.output.read_text(encoding="utf-8"))
    scores = list(known["scores"])
    for name in arguments.task:
        row, peer = TASKS[name]
        runs = runs_of(row, arguments)
        if arguments.seeds and not runs:
            parser.error(
                f"{arguments.study} has no run of {row} with these --columns and --fractions"
            )
        for run in runs:
            known = identity(run, peer, arguments.study)
            if any(known.items() <= score.items() for score in scores):
                continue
            folder = folder_of(known, arguments.output)
            scores.append({**known, **measure(run, peer, folder)})
            print(scores[-1], flush=True)
            write_json_rows(arguments.output, with_findings(scores), "study")
            shutil.rmtree(folder)
    if scores and (content := with_findings(scores)) != known:
        # Our scores may have changed, too.
        write_json_rows(arguments.output, content, "study")
    tables = table(scores)
    print(tables)
    if arguments.update:
        replace_tables(arguments.update, "<!-- peers -->", "<!-- /peers -->", tables)


if __name__ == "__main__":
    main()
