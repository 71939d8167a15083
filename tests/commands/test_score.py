import csv
import errno
import gzip
import json
import os
import signal
import subprocess
import sys
from functools import partial
from threading import Thread

import pytest
from allennlp.commands.train import train_model
from allennlp.common import Params

from elmo_plugin.bilm import load_bilm
from elmo_plugin.bilm.files.folders import save_bilm
from elmo_plugin.elmo.store.resumable import ResumableText
from tests.analysis.language_model import WORDS, make_softmax
from tests.bilm.pretraining.tiny import make_experiment
from tests.commands import running

run = partial(running.run, "elmo-score")
failure = partial(running.failure, "elmo-score")

# Kills itself after the second commit.
KILLED = """
import os, signal
from elmo_plugin.commands.main import main
from elmo_plugin.elmo.store.resumable import ResumableText
commit, left = ResumableText.commit, [2]
def counted(*arguments):
    commit(*arguments)
    left[0] -= 1
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
ResumableText.commit = counted
main()
"""
TEXT = "They play a play .\n\nNobody began the play .\n"


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bilm")
    bilm = load_bilm()
    save_bilm(bilm, folder, make_softmax(bilm.output_dim // 2))
    return folder


@pytest.fixture
def folder(tmp_path, monkeypatch, exported):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ELMO_OPTIONS", str(exported / "options.json"))
    monkeypatch.setenv("ELMO_WEIGHTS", str(exported / "weights.hdf5"))
    (tmp_path / "text.txt").write_text(TEXT)
    return tmp_path


@pytest.mark.parametrize("offset, refused", [(0, False), (4, True)])
def test_standard_input_that_was_read_in_part_is_refused(folder, capsys, offset, refused):
    """As after a shell's `read` from a redirected file."""
    before = os.dup(0)
    try:
        with open(folder / "text.txt") as file:
            os.lseek(file.fileno(), offset, os.SEEK_SET)
            os.dup2(file.fileno(), 0)
        if refused:
            assert "found a file at byte 4" in failure("-")
        else:
            run("-", "--sentences")
            assert len(rows(capsys.readouterr().out)) == 2
    finally:
        os.dup2(before, 0)
        os.close(before)


def rows(text):
    return list(csv.DictReader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE))


def test_words_and_sentences_have_the_same_sums(folder, capsys):
    run("text.txt")
    captured = capsys.readouterr()
    words = rows(captured.out)
    run("text.txt", "--sentences")
    sentences = rows(capsys.readouterr().out)
    assert "3 lines, 10 words, 12 predictions per direction. Perplexity " in captured.err
    assert [row["word"] for row in words] == [
        *("<S>", "They", "play", "a", "play", ".", "</S>"),
        *("<S>", "Nobody", "began", "the", "play", ".", "</S>"),
    ]
    assert [row["position"] for row in words] == [str(place) for place in range(7)] * 2
    assert [row["word"] for row in words if row["known"] == "no"] == ["Nobody"]
    assert [row["line"] for row in sentences] == ["1", "3"]
    for sentence in sentences:
        for direction in ("forward", "backward"):
            of_line = [row for row in words if row["line"] == sentence["line"]]
            total = sum(float(row[direction]) for row in of_line if row[direction])
            assert float(sentence[direction]) == pytest.approx(total, abs=1e-5)
            perplexity = 2.0 ** (total / (int(sentence["words"]) + 1))
            found = float(sentence[f"{direction}_perplexity"])
            assert found == pytest.approx(perplexity, rel=1e-5)


def test_objects_have_what_tables_have(folder, capsys):
    run("text.txt", "--unit", "nats")
    table = rows(capsys.readouterr().out)
    run("text.txt", "--unit", "nats", "--format", "jsonl", "--top-k", 2)
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert second["line"] == 3 and second["words"] == TEXT.split()[5:]
    assert [float(row["both"]) for row in table[1:6]] == first["both"]
    assert float(table[0]["backward"]) == first["<S>"]
    assert float(table[6]["forward"]) == first["</S>"]
    run("text.txt", "--top-k", 2)
    (cell,) = {row["forward_top_k"] for row in rows(capsys.readouterr().out)[1:2]}
    assert cell == " ".join(f"{word}={chance:.4f}" for word, chance in first["top_k"]["forward"][0])


def test_perplexity_is_that_of_evaluate_to_six_digits(tmp_path, capsys):
    experiment = make_experiment(tmp_path, "sentences")
    train_model(Params(experiment), tmp_path / "run")
    archive = tmp_path / "run" / "model.tar.gz"
    heldout = tmp_path / "heldout.txt"
    running.run("evaluate", archive, heldout, "--output-file", tmp_path / "metrics.json")
    expected = json.loads((tmp_path / "metrics.json").read_text())
    running.run("elmo-export", archive, tmp_path / "bilm")
    capsys.readouterr()
    options = ("--options-file", tmp_path / "bilm" / "options.json", "--sentences")
    for weights in (archive, tmp_path / "bilm" / "weights.hdf5"):
        run(heldout, "--weight-file", weights, *options)
        said = capsys.readouterr().err
        for name in ("perplexity", "forward_perplexity", "backward_perplexity"):
            label = {"perplexity": "Perplexity"}.get(name, name.partition("_")[0])
            assert f"{label} {expected[name]:.6g}" in said.replace(".,", ",")


def test_a_killed_run_continues_and_ends_with_the_same_file(folder, capsys):
    lines = "".join(f"They play {'a play ' * (number % 7)}.\n" for number in range(200))
    (folder / "long.txt").write_text(lines)
    arguments = ("long.txt", "--batch-size", "2", "--output")
    run(*arguments, "whole.tsv")
    capsys.readouterr()
    command = [sys.executable, "-c", KILLED, "score", *arguments, "killed.tsv"]
    killed = subprocess.run(command, capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert not (folder / "killed.tsv").exists()
    assert (folder / "killed.tsv.unfinished" / "progress.json").exists()
    run(*arguments, "killed.tsv")
    assert (folder / "killed.tsv").read_bytes() == (folder / "whole.tsv").read_bytes()
    assert "200 lines" in capsys.readouterr().out


def test_another_text_does_not_continue(folder, monkeypatch):
    lines = "They play .\n" * 3000
    (folder / "long.txt").write_text(lines)

    def stop(self):
        raise OSError(5, "stopped")

    with monkeypatch.context() as patched:
        patched.setattr(ResumableText, "finish", stop)
        assert "stopped" in failure("long.txt", "--output", "out.tsv")
    (folder / "long.txt").write_text(lines.replace("They", "the", 1))
    message = failure("long.txt", "--output", "out.tsv")
    assert "out.tsv.unfinished holds 3000 lines of another text" in message


def test_pairs_are_compared(folder, capsys):
    (folder / "sets").mkdir()
    for name, bad in (("one", "a play They."), ("two", "began of the.")):
        pair = {"sentence_good": "They play.", "sentence_bad": bad, "UID": name}
        (folder / "sets" / f"{name}.jsonl").write_text(f"{json.dumps(pair)}\n")
    run("--pairs", "sets", "--output", "judged.jsonl")
    table = capsys.readouterr().out.splitlines()
    assert [row.split(" | ")[1] for row in table[2:]] == ["one", "two", "all"]
    judged = [json.loads(line) for line in (folder / "judged.jsonl").read_text().splitlines()]
    assert judged[0]["sentence_bad"] == "a play They ."
    right = [one["right"]["both"] for one in judged]
    assert right == [one["good"]["both"] < one["bad"]["both"] for one in judged]
    assert table[-1].endswith(f"{50.0 * sum(right):.1f} |")


def test_pairs_that_were_interrupted_continue(folder, capsys, monkeypatch):
    words = ("They play .", "a play began .", "the play of a play .")
    pairs = [
        {"sentence_good": words[number % 3], "sentence_bad": words[(number + 1) % 3]}
        for number in range(100)
    ]
    (folder / "pairs.jsonl").write_text("".join(f"{json.dumps(pair)}\n" for pair in pairs))
    arguments = ("--pairs", "pairs.jsonl", "--batch-size", 2)
    run(*arguments, "--output", "whole.jsonl")
    expected = capsys.readouterr().out
    commit = ResumableText.commit

    def stop(self, text, progress):
        commit(self, text, progress)
        if progress["num_pairs"] == 48:
            raise OSError(5, "stopped")

    with monkeypatch.context() as patched:
        patched.setattr(ResumableText, "commit", stop)
        assert "stopped" in failure(*arguments, "--output", "cut.jsonl")
    run(*arguments, "--output", "cut.jsonl")
    assert capsys.readouterr().out == expected
    assert (folder / "cut.jsonl").read_bytes() == (folder / "whole.jsonl").read_bytes()
    assert expected.splitlines()[2].split(" | ")[2] == "100"


def test_pairs_that_are_not_utf_8_can_be_read(folder, capsys):
    pair = b'{"sentence_good": "the play \xff", "sentence_bad": "play the", "UID": "a"}\n'
    (folder / "pairs.jsonl").write_bytes(pair)
    assert "expected UTF-8 text" in failure("--pairs", "pairs.jsonl")
    run("--pairs", "pairs.jsonl", "--decoding-errors", "replace")
    assert "| a | 1 |" in capsys.readouterr().out


def test_a_small_output_into_a_closed_pipe_is_no_error(folder):
    program = "from elmo_plugin.commands.main import main; main()"
    environment = {n: v for n, v in os.environ.items() if n != "PYTHONUNBUFFERED"}
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-c", program, "score", "text.txt", "--output", "new.tsv"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, env=environment)
    os.close(writer)
    assert done.returncode == 1 and b"BrokenPipe" not in done.stderr


def test_a_reader_may_close_the_output_early(folder):
    (folder / "long.txt").write_text("They play .\n" * 20000)
    program = "from elmo_plugin.commands.main import main; main()"
    command = f"{sys.executable} -c '{program}' score long.txt | head -n 2"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, env=os.environ)
    assert len(done.stdout.splitlines()) == 2
    assert "Error" not in done.stderr and "Exception" not in done.stderr


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["nowhere.txt"], "No such file"),
        (["text.txt", "text.txt"], "Expected one text, found 2"),
        (["empty.txt"], "empty.txt: expected a sentence per line, found no words"),
        (["empty.txt", "--output", "new.tsv"], "empty.txt: expected a sentence per line"),
        (["text.txt", "--output", ".", "--force"], ". is a folder; expected the name of a file"),
        (["text.txt", "--output", "text.txt"], "text.txt exists. Give --force"),
        (["text.txt", "--output", "text.txt", "--force"], "text.txt is the input"),
        (["text.txt", "--cuda-device", "99"], "--cuda-device 99"),
        (["--pairs", "text.txt"], "text.txt:1: expected a JSON object"),
        (["--pairs", "nowhere*"], "`nowhere*` is no file"),
    ],
)
def test_what_a_user_can_cause_is_one_sentence(folder, arguments, message):
    (folder / "empty.txt").write_text("\n\n")
    assert message in failure(*arguments)
    assert not (folder / "new.tsv").exists()


def test_minimal_pairs_are_not_replaced_by_their_scores(folder):
    pair = '{"sentence_good": "They play.", "sentence_bad": "They plays."}\n'
    (folder / "pairs.jsonl").write_text(pair)
    message = failure("--pairs", "pairs.jsonl", "--output", "pairs.jsonl", "--force")
    assert "pairs.jsonl is part of the input; name another output" in message
    assert (folder / "pairs.jsonl").read_text() == pair


def test_a_pipe_is_refused_before_the_text_is_read(folder):
    os.mkfifo("pipe")
    message = failure("nowhere.txt", "--output", "pipe", "--force")
    assert "pipe is a pipe or device; expected the name of a file" in message


def test_pairs_at_a_url_may_replace_a_file(folder):
    pair = '{"sentence_good": "They play.", "sentence_bad": "a play They."}\n'
    (folder / "pairs.jsonl").write_text(pair)
    arguments = ("--pairs", f"file://{folder}/pairs.jsonl", "--force", "--output")
    assert "pairs.jsonl is part of the input" in failure(*arguments, "pairs.jsonl")
    (folder / "judged.jsonl").touch()
    run(*arguments, "judged.jsonl")
    assert json.loads((folder / "judged.jsonl").read_text())["UID"] == "pairs"


def test_a_pipe_without_words_leaves_nothing(folder):
    os.mkfifo("pipe")
    writer = Thread(target=lambda: (folder / "pipe").write_text("\n\n"), daemon=True)
    writer.start()
    assert "found no words" in failure("pipe", "--output", "new.tsv")
    assert not list(folder.glob("new*"))


def test_the_compressed_version_of_an_input_is_no_output(folder):
    (folder / "only.txt.gz").write_bytes(gzip.compress(b"They play\n"))
    message = failure("only.txt", "--output", "only.txt.gz", "--force")
    assert "only.txt.gz is the input; name another output" in message


def test_a_full_disk_under_a_printed_table_keeps_nothing(folder, monkeypatch):
    def print_to_full_disk(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("elmo_plugin.commands.score._Printed.commit", print_to_full_disk)
    message = failure("text.txt")
    assert "to write the output" in message and "Nothing is kept without --output" in message


def test_a_bilm_without_a_softmax_is_refused(folder, exported, monkeypatch):
    monkeypatch.setattr("elmo_plugin.bilm.files.softmax.SOFTMAX_FILE", "none.hdf5")
    assert "comes without a softmax: expected it in the file" in failure("text.txt")


def test_the_vocabulary_is_that_of_the_fixture(exported):
    assert (exported / "vocabulary.txt").read_text().split() == WORDS
