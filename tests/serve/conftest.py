import os
import re
import subprocess
import sys
import threading
from functools import lru_cache
from pathlib import Path
from typing import Callable, Dict, Iterator

import pytest

from elmo_plugin import load_predictor
from elmo_plugin.serve.served_task import Limits, ServedTask, load_tasks
from tests.guide import FIXTURES, PROJECT
from tests.trained import NUM_EPOCHS, train_task


@pytest.fixture(scope="session")
def archive_of(tmp_path_factory) -> Callable[[str], Path]:
    """The archive of a task's fixture experiment with ELMo."""
    return lambda task: train_task(tmp_path_factory, f"{task}_elmo")


@pytest.fixture(scope="session")
def task_of(archive_of) -> Callable[[str], ServedTask]:
    """A task as the server has it."""

    @lru_cache(maxsize=None)
    def load(task: str) -> ServedTask:
        return load_tasks([archive_of(task)], load_predictor, Limits())[task]

    return load


@pytest.fixture(scope="session")
def start_server() -> Iterator[Callable[..., Dict[str, object]]]:
    """Starts `elmo serve` as a process of its own, and gives its URL and process."""
    processes = []

    def start(*arguments: object) -> Dict[str, object]:
        script = "from elmo_plugin.commands.main import main; main()"
        command = [sys.executable, "-c", script, "serve", *map(str, arguments), "--port", "0"]
        environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
        processes.append(process)
        said = ""
        for line in process.stderr:
            said += line
            if found := re.match(r"(http://127\.0\.0\.1:\d+/) answers", line):
                # What it says later must not fill the pipe.
                threading.Thread(target=process.stderr.read, daemon=True).start()
                return {"url": found[1], "process": process}
        raise AssertionError(said)

    yield start
    for process in processes:
        process.kill()
        process.wait()


@pytest.fixture(scope="session")
def server(start_server, archive_of, tmp_path_factory) -> Dict[str, object]:
    """All six tasks, the biLM that ships, and an index of nearest contexts."""
    index = tmp_path_factory.mktemp("neighbours") / "index"
    bilm = PROJECT / "pretrained/small"
    of_bilm = [
        "--options-file",
        bilm / "options.json",
        "--weight-file",
        bilm / "weights.safetensors",
    ]
    script = "from elmo_plugin.commands.main import main; main()"
    text = FIXTURES / "corpora/lm/small/train.txt"
    build = ["neighbours", "build", text, index, *of_bilm]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    subprocess.run([sys.executable, "-c", script, *map(str, build)], check=True, env=environment)
    archives = [archive_of(task) for task in NUM_EPOCHS]
    return start_server(*archives, "--neighbours", index, *of_bilm)
