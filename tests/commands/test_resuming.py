"""Commands that write in commits go on after a kill, and end with the same file."""

import multiprocessing
import os
import resource
import shlex
import signal
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import pytest

from elmo_plugin.commands.main import main
from tests.commands.test_errors import failure

NUM_LINES = 60
LINES = [f"They play {'a play ' * (number % 5)}." for number in range(NUM_LINES)]
# Each is called with the output as its last argument.
COMMANDS = {
    "out.hdf5": "embed text.txt --all --batch-size 1",
    "out.safetensors": "embed text.txt --all --batch-size 1",
    "out.parquet": "embed text.txt --layers 0,2 --pool max --batch-size 1",
    "out.tsv": "score text.txt --batch-size 1 --output",
    "out": "neighbours build text.txt --batch-size 1",
}
# What makes the unfinished work another's, and what is said then.
OTHERS = {
    "embed": ("--pool mean", ", now mean"),
    "score": ("--sentences", "sentences False, now True"),
    "neighbours": ("--layers 1", "with other settings: layers"),
}


@pytest.fixture(autouse=True)
def folder(in_folder, set_num_threads):
    # Results must not depend on how many cores the machine has left.
    set_num_threads(1)
    write(LINES)
    return in_folder


def write(lines):
    Path("text.txt").write_text("".join(f"{line}\n" for line in lines))


def content(output):
    """The bytes of a file, or of each file of a folder."""
    files = sorted(output.iterdir()) if output.is_dir() else [output]
    return [(file.name if output.is_dir() else "", file.read_bytes()) for file in files]


def run_until(number, stop, line):
    """Calls `stop` once a command says that so many lines are done."""
    done = [0]

    @contextmanager
    def progress(unit, total=None):
        def advance(number_of_lines):
            done[0] += number_of_lines
            if done[0] >= number:
                stop()

        yield advance

    command = shlex.split(line)
    module = "_".join(command[:2] if command[0] == "neighbours" else command[:1])
    with patch(f"elmo_plugin.commands.{module}.progress", progress):
        main(command)


def interrupt():
    raise KeyboardInterrupt


def kill():
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_killed_run_goes_on_and_ends_the_same(folder, name, capsys):
    # A fork has all imports behind it.
    context = multiprocessing.get_context("fork")
    for number in (25, 45):
        arguments = (number, kill, f"{COMMANDS[name]} {name}")
        process = context.Process(target=run_until, args=arguments)
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL
    main(shlex.split(f"{COMMANDS[name]} {name}"))
    assert COMMANDS[name].startswith("score") or "of them earlier" in capsys.readouterr().out
    whole = Path("whole", name)
    main(shlex.split(f"{COMMANDS[name]} {whole}"))
    assert content(folder / name) == content(whole)
    assert sorted(os.listdir()) == sorted([name, "text.txt", "whole"])


def a_full_disk_costs_nothing(line, unfinished):
    largest = max(path.stat().st_size for path in unfinished.iterdir())
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest + 10, limits[1]))
    try:
        message = failure(line)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "no space left to write" in message and "the same command" in message


@pytest.mark.parametrize("name", COMMANDS)
def test_only_the_same_command_continues_and_only_force_replaces(folder, name, capsys):
    line = f"{COMMANDS[name]} {name}"
    with pytest.raises(SystemExit) as stopped:
        run_until(40, interrupt, line)
    assert stopped.value.code == 130 and "same command" in capsys.readouterr().err
    other, message = OTHERS[line.split()[0]]
    assert message in failure(f"{line} {other}")
    write(["the", *LINES[1:]])
    assert "lines of another text" in failure(line)
    write(LINES)
    a_full_disk_costs_nothing(line, folder / (name if name == "out" else f"{name}.unfinished"))
    main(shlex.split(line))
    before = content(folder / name)
    if name != "out":
        message = failure(line)
        assert "--force" in message and "exists" in message
    else:
        assert "with other settings" in failure(f"{line} {other}")
    assert content(folder / name) == before
    main(shlex.split(f"{line} --force {other}"))
    assert content(folder / name) != before
