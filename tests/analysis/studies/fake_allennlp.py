"""
Stands in for `python -m allennlp`, so that a training takes no time. What it does is in the
experiment: `fail` ends it with an error unless there is a file of that name, `wait` makes it wait
for one.
"""

import json
import os
import sys
import time
from pathlib import Path

command, arguments = sys.argv[1], sys.argv[2:]


def note():
    with open(f"{os.environ['FAKE_CALLS']}.parents", "a") as file:
        file.write(f"{os.getppid()}\n")
    with open(os.environ["FAKE_CALLS"], "a") as file:
        file.write(f"{command} {'--recover' in arguments} {os.environ.get('OMP_NUM_THREADS')}\n")


def after(option):
    return Path(arguments[arguments.index(option) + 1])


def is_there(mark):
    return os.path.exists(mark.removeprefix("mark "))


if command == "train":
    experiment = json.loads(Path(next(a for a in arguments if a.endswith(".json"))).read_text())
    out = after("-s")
    out.mkdir(exist_ok="--recover" in arguments)
    (out / "config.json").write_text("{}")
    note()
    print("epoch 1")
    while "wait" in experiment and not is_there(experiment["wait"]):
        time.sleep(0.05)
    if experiment.get("fail") and not is_there(experiment["fail"]):
        print("no such thing", flush=True)
        sys.exit(3)
    (out / "metrics.json").write_text('{"best_validation_f1": 0.5, "training_duration": "0:01"}')
    for epoch, value in enumerate([0.4, 0.5]):
        (out / f"metrics_epoch_{epoch}.json").write_text(json.dumps({"validation_f1": value}))
    (out / "model.tar.gz").write_text("a model")
else:
    note()
    assert any(a.endswith("model.tar.gz") and os.path.exists(a) for a in arguments)
    after("--output-file").write_text('{"f1": 0.25, "loss": 2.0}')
    samples = {"num_instances": 3, "metrics": {"f1": [0.2, 0.3], "recall": [0.1, 0.1]}}
    samples["group_metrics"] = {"f1": [0.1, 0.4]}
    after("--predictions-output-file").write_text(json.dumps(samples))
