import json
import logging
import os
import signal
import subprocess
import sys
import warnings
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.common.util import SigTermReceived

from elmo_plugin import console
from elmo_plugin.console import explanation

PROJECT = Path(__file__).parent.parent
EXPERIMENT = "fixtures/experiments/sst.jsonnet"
# Settings of what is started must not depend on those of who starts the tests.
LOUD = ("ALLENNLP_DEBUG", "ALLENNLP_LOG_LEVEL", "PYTHONWARNINGS", "ELMO_DATA")
QUIET = {name: value for name, value in os.environ.items() if name not in LOUD}


def allennlp(*arguments):
    command = [sys.executable, "-m", "allennlp", *map(str, arguments)]
    return subprocess.run(command, cwd=PROJECT, env=QUIET, capture_output=True, text=True)


def test_training_prints_a_summary_and_logs_everything(tmp_path):
    epochs = json.dumps({"trainer.num_epochs": 2})
    done = allennlp("train", EXPERIMENT, "-s", tmp_path / "out", "-o", epochs)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) < 12 and not any(line.startswith("warning") for line in lines)
    assert any(line.endswith("fixtures/corpora/sst/train.txt") for line in lines)
    assert "Epoch 0/1" in lines and "Epoch 1/1" in lines
    assert not any(line.startswith("model.type") for line in lines)
    assert lines[-2].startswith("best_epoch: ") and "best_validation_accuracy: 0." in lines[-2]
    assert lines[-1].endswith(str(tmp_path / "out" / "model.tar.gz"))
    # A note on the corpus, progress bars, and nothing else.
    note, *bars = (line for line in done.stderr.replace("\r", "\n").splitlines() if line.strip())
    assert note.startswith("warning: ELMO_DATA is not set, so this trains on a tiny sample")
    assert all("it/s" in line or "s/it" in line for line in bars)
    assert any(line.startswith("accuracy: ") and "100%" in line for line in bars)
    log = (tmp_path / "out" / "out.log").read_text()
    assert "INFO - allennlp.common.params - trainer.num_epochs" in log
    assert "Metrics: {" in log and len(log.splitlines()) > 100


def test_a_malformed_corpus_is_one_line_and_its_traceback_is_in_the_log(tmp_path):
    corpus = tmp_path / "train.txt"
    corpus.write_text("(2 (2 a) (2 film))\n(2 (2 a\n")
    arguments = ("-s", tmp_path / "out", "-o", json.dumps({"train_data_path": str(corpus)}))
    done = allennlp("train", EXPERIMENT, *arguments)
    assert done.returncode == 1
    assert "Traceback" not in done.stdout + done.stderr
    assert done.stderr.splitlines()[-1].startswith(
        f"error: {corpus}:2:8: expected ), found the end of the line"
    )
    assert "Traceback" in (tmp_path / "out" / "out.log").read_text()


def test_an_interruption_is_one_sentence_and_exit_code_130(tmp_path, tagger):
    os.mkfifo(tmp_path / "pipe")
    for arguments, last in (
        (("predict", tagger, tmp_path / "pipe"), "error: stopped"),
        (("elmo-study", "fixtures/studies/table7.jsonnet", "-s", tmp_path / "study"), "continue."),
    ):
        command = [sys.executable, "-m", "allennlp", *map(str, arguments)]
        with ExitStack() as stack:
            started = subprocess.Popen(command, cwd=PROJECT, env=QUIET, stderr=subprocess.PIPE)
            process = stack.enter_context(started)
            if arguments[0] == "elmo-study":
                # The folder of its first run.
                next(line for line in process.stderr if str(tmp_path).encode() in line)
            else:
                # Opened only once the command reads.
                stack.enter_context(open(tmp_path / "pipe", "w"))
            process.send_signal(signal.SIGINT)
            shown = process.stderr.read().decode()
        assert process.returncode == 130 and "Traceback" not in shown
        assert shown.strip().endswith(last)


@pytest.mark.parametrize(
    "error, sentence",
    [
        (ConfigurationError("key 'x' is\n  required"), "key 'x' is required"),
        (FileNotFoundError(2, "No such file", "a.txt"), "[Errno 2] No such file: 'a.txt'"),
        (ValueError("a.txt:3: expected a word"), "a.txt:3: expected a word"),
        (
            torch.OutOfMemoryError("CUDA out of memory."),
            "the GPU has too little memory. Lower "
            "--batch-size, or the sizes of batches in the experiment.",
        ),
        (KeyboardInterrupt(), "stopped"),
        (SigTermReceived(), "stopped"),
        (RuntimeError("STATIC ERROR: a.jsonnet:1:2: no }\n"), "a.jsonnet:1:2: no }"),
        (RuntimeError("RUNTIME ERROR: why\n\ta:1:2-3\tx\n\ta:9\t\n"), "why (a:1:2-3)"),
        (RuntimeError("RUNTIME ERROR: why\n\t/a/lib/settings.libsonnet:1:2\t\n"), "why"),
        (ValueError("b.json: expected a title, found 3"), "b.json: expected a title, found 3"),
        # Bugs.
        (ValueError("shapes do not match"), None),
        (RuntimeError("mat1 and mat2"), None),
        (KeyError("x"), None),
        (AssertionError(), None),
    ],
)
def test_errors_a_user_can_cause_are_one_sentence_and_bugs_are_not(error, sentence):
    assert explanation(error) == sentence


@pytest.mark.parametrize(
    "raised, sentence",
    [
        (ValueError("a.txt:3: expected a word"), "a.txt:3: expected a word"),
        (ConfigurationError("no such text"), "no such text"),
        (ValueError("shapes do not match"), None),
    ],
)
def test_errors_of_workers_are_shown_like_those_of_the_process(raised, sentence):
    loader = torch.utils.data.DataLoader(_Failing(raised), num_workers=1)
    with pytest.raises(type(raised)) as of_torch:
        next(iter(loader))
    assert explanation(of_torch.value) == sentence
    with pytest.raises(torch.multiprocessing.ProcessRaisedException) as of_spawn:
        torch.multiprocessing.start_processes(_fail, (raised,), start_method="fork")
    assert explanation(of_spawn.value) == sentence


class _Failing(torch.utils.data.Dataset):
    def __init__(self, error):
        self.error = error

    def __len__(self):
        return 1

    def __getitem__(self, index):
        raise self.error


def _fail(number, error):
    raise error


@pytest.mark.parametrize(
    "metrics, line",
    [
        ({"f1-measure-overall": 0.61344, "f1-measure-R-ARG0": 1.0}, "f1-measure-overall: 0.6134"),
        ({"best_epoch": 1, "best_validation_loss": 2.0, "epoch": 3, "training_duration": "0:01"},
         "best_epoch: 1, best_validation_loss: 2.0"),
        ({"training_loss": 2.5, "training_duration": "0:01"},
         "training_loss: 2.5, training_duration: 0:01"),
        ({"best_epoch": 0, "training_loss": 2.5}, "best_epoch: 0, training_loss: 2.5"),
    ],
)  # fmt: skip
def test_metrics_are_one_line(metrics, line):
    arguments = ("allennlp.common.util", logging.INFO, "", 0, "Metrics: %s")
    record = logging.LogRecord(*arguments, (json.dumps(metrics, indent=2),), None)
    assert console._is_worth_showing(record)
    assert console._ConsoleFormatter().format(record) == line


@pytest.mark.parametrize(
    "logger, message, is_shown",
    [
        ("tests.reader", "read 3 files", True),
        ("tests.model", "built the model", True),
        ("elmo_plugin.tasks.model", "Entities", False),
        ("allennlp.data.vocabulary", "Fitting token dictionary", False),
        ("transformers.modeling", "loading weights", False),
        ("somelib", "loading", False),
        ("allennlp.commands.test_install", "AllenNLP is installed correctly", True),
    ],
)
def test_what_a_user_s_own_package_logs_is_shown(monkeypatch, logger, message, is_shown):
    monkeypatch.setattr(sys, "argv", ["allennlp", "train"])
    installed = SimpleNamespace(__file__="/usr/lib/python3/dist-packages/somelib/__init__.py")
    monkeypatch.setitem(sys.modules, "somelib", installed)
    record = logging.LogRecord(logger, logging.INFO, "", 0, message, (), None)
    assert console._is_worth_showing(record) is is_shown


@pytest.mark.parametrize(
    "program, level",
    [("pytest", ""), ("/home/allennlp/run.py", ""), ("/elmo_plugin/__main__.py", ""),
     ("/bin/allennlp", "INFO")],
)  # fmt: skip
def test_imported_from_python_or_with_a_log_level_it_changes_nothing(monkeypatch, program, level):
    monkeypatch.setattr(sys, "argv", [program])
    monkeypatch.setenv("ALLENNLP_LOG_LEVEL", level)
    before = (sys.excepthook, list(logging.getLogger("allennlp").handlers), warnings.filters[:])
    console.quieten_command()
    assert before == (sys.excepthook, logging.getLogger("allennlp").handlers, warnings.filters)


@pytest.mark.parametrize("command, is_shown", [("predict", False), ("evaluate", True)])
def test_labels_are_missed_unless_they_are_predicted(monkeypatch, command, is_shown):
    monkeypatch.setattr(sys, "argv", ["elmo", command])
    message = "%s: no label in %r; the columns are %s"
    arguments = ("elmo_plugin", logging.WARNING, "", 0, message, ("a.csv:2", "label", "text"))
    record = logging.LogRecord(*arguments, None)
    assert console._is_worth_showing(record) is is_shown


def test_before_training_too_the_console_hides_warnings(monkeypatch, capsys):
    """The process of `elmo` has no handlers before."""
    monkeypatch.setattr(logging.root, "handlers", [])
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    console._configure_console()
    for message in ("Your label namespace was 'x'", "a.txt: strange"):
        logging.getLogger("allennlp.data").warning(message)
    assert capsys.readouterr().err == "warning: a.txt: strange\n"
