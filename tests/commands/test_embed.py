import fcntl
import gzip
import json
import multiprocessing
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import threading
from argparse import Namespace
from collections import namedtuple
from functools import partial
from pathlib import Path

import h5py
import numpy
import pytest
import torch
from allennlp.commands.subcommand import Subcommand

from elmo_plugin import Bilm, embed_sentences, load_bilm
from elmo_plugin.bilm.fingerprint import fingerprint
from elmo_plugin.commands.bilm_arguments import given_vocabulary
from elmo_plugin.elmo.store import sentence_vectors
from elmo_plugin.elmo.store.dump import DumpFile, check_space
from elmo_plugin.elmo.store.sentence_vectors import sentence_name
from elmo_plugin.util.errors import ConfigurationError
from tests.bilm.token_files import save_token_bilm
from tests.commands import running
from tests.commands.killed_worker import KilledWorker

PROJECT = Path(__file__).resolve().parents[2]
LINES = ["The play began", "", "They play", "The play began", "and / or ."]
ODD_LINES = [
    "crlf line\r",
    "nul \0 inside",
    "line\u2028separator",
    "x" * 10_000,
    "🦉🏳️‍🌈 owl",
    "שלום עולם",
    "\r",
    "caf\u00e9 naïve",
]


@pytest.fixture(autouse=True)
def one_thread(set_num_threads):
    # Results must not depend on how many cores the machine has left.
    set_num_threads(1)


@pytest.fixture(scope="module")
def bilm():
    return load_bilm()


run = partial(running.run, "elmo")
failure = partial(running.failure, "elmo")


def write(path, lines):
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    return path


def layers_of(bilm, lines):
    sentences = [line.split() for line in lines]
    return [layers.numpy() for layers in embed_sentences(bilm, sentences)]


def content(path):
    with h5py.File(path) as file:
        datasets = {key: (file[key].dtype, file[key][...].tolist()) for key in file}
        return datasets, dict(file.attrs)


def test_all_top_and_average_hold_the_layers_of_each_line(tmp_path, bilm):
    text = write(tmp_path / "text.txt", LINES)
    expected = layers_of(bilm, LINES)
    for flag, of_layers in [
        ("--all", lambda layers: layers),
        ("--top", lambda layers: layers[-1]),
        ("--average", lambda layers: layers.mean(axis=0)),
    ]:
        run(text, tmp_path / f"{flag}.hdf5", flag)
        with h5py.File(tmp_path / f"{flag}.hdf5") as file:
            for line, layers in enumerate(expected):
                vectors = file[str(line)]
                assert vectors.dtype == numpy.float32
                assert vectors.shape == of_layers(layers).shape
                numpy.testing.assert_allclose(vectors[...], of_layers(layers), atol=1e-6)


def test_the_map_points_to_the_first_of_equal_sentences(tmp_path):
    text = write(tmp_path / "text.txt", LINES)
    run(text, tmp_path / "out.hdf5", "--top")
    with h5py.File(tmp_path / "out.hdf5") as file:
        assert file["sentence_to_index"].shape == (1,)
        assert json.loads(file["sentence_to_index"][0]) == {
            "The play began": "0",
            "": "1",
            "They play": "2",
            "and / or .": "4",
        }
        assert (file["0"][...] == file["3"][...]).all()
        # Datasets stand in the order of the lines, not of their names as text.
        assert list(file) == ["0", "1", "2", "3", "4", "sentence_to_index"]
    run(text, tmp_path / "bare.hdf5", "--top", "--forget-sentences")
    with h5py.File(tmp_path / "bare.hdf5") as file:
        assert "sentence_to_index" not in file


def test_sentences_can_be_keys(tmp_path, bilm, capsys):
    # No name is too long for a key.
    lines = [*LINES, ".", "nul \0", f"{'x' * 200} " * 1000]
    text = write(tmp_path / "text.txt", lines)
    run(text, tmp_path / "out.hdf5", "--all", "--use-sentence-keys")
    assert "2 lines were empty or repeated and have no key" in capsys.readouterr().out
    with h5py.File(tmp_path / "out.hdf5") as file:
        assert len(file) == 6
        for line, layers in zip(lines, layers_of(bilm, lines)):
            if line:
                vectors = file[sentence_name(line.split())][...]
                numpy.testing.assert_allclose(vectors, layers, atol=1e-6)
        assert {"and \u2215 or .", "\u2024", "nul \u2400"} < set(file)


def test_attributes_name_the_bilm_and_the_settings(tmp_path, capsys, bilm):
    text = write(tmp_path / "text.txt", LINES)
    run(text, tmp_path / "new" / "folder" / "out.hdf5", "--all")
    assert "5 lines, 12 tokens" in capsys.readouterr().out
    with h5py.File(tmp_path / "new" / "folder" / "out.hdf5") as file:
        assert file.attrs["complete"] and file.attrs["num_lines"] == 5
        assert file.attrs["layers"] == "all" and file.attrs["dtype"] == "float32"
        assert file.attrs["format_version"] == 1 and file.attrs["input"] == str(text)
        assert json.loads(file.attrs["bilm_options"])["lstm"]["n_layers"] == 2
        assert file.attrs["bilm_fingerprint"] == fingerprint(bilm)
        assert file.attrs["elmo_plugin_version"]
    assert os.listdir(tmp_path / "new" / "folder") == ["out.hdf5"]


def test_half_and_compressed_vectors_are_smaller_and_nearly_equal(tmp_path):
    text = write(tmp_path / "text.txt", ["a b c d e f g h"] * 50 + [""])
    run(text, tmp_path / "full.hdf5", "--all")
    for compression in ("gzip", "lzf"):
        path = tmp_path / f"{compression}.hdf5"
        run(text, path, "--all", "--half", "--compression", compression)
        with h5py.File(path) as small, h5py.File(tmp_path / "full.hdf5") as full:
            assert small["0"].dtype == numpy.float16 and small["0"].compression == compression
            numpy.testing.assert_allclose(small["0"][...], full["0"][...], atol=2e-3)
            assert small["50"].shape == full["50"].shape == (3, 0, 32)


def test_bfloat16_and_a_vocabulary_change_how_and_not_what(tmp_path, bilm, monkeypatch):
    known, precompute = [], Bilm.precompute

    def recording(bilm, words):
        known.append(list(words))
        precompute(bilm, known[-1])

    monkeypatch.setattr(Bilm, "precompute", recording)
    text = write(tmp_path / "text.txt", LINES)
    words = write(tmp_path / "words.txt", ["The", "play", "", "never-seen"])
    run(text, tmp_path / "out.hdf5", "--all", "--vocab-path", words)
    (words_of_file,) = known
    assert {"The", "play", "never-seen"} <= set(words_of_file)
    run(text, tmp_path / "fast.hdf5", "--all", "--bfloat16")
    expected = layers_of(bilm, LINES)
    with h5py.File(tmp_path / "out.hdf5") as out, h5py.File(tmp_path / "fast.hdf5") as fast:
        numpy.testing.assert_allclose(out["0"][...], expected[0], atol=1e-6)
        difference = numpy.linalg.norm(fast["0"][...] - expected[0])
        assert 0 < difference < 0.03 * numpy.linalg.norm(expected[0])
        assert fast.attrs["computed_in"] == "bfloat16"


def test_odd_text_gives_one_dataset_per_line(tmp_path, bilm):
    text = tmp_path / "text.txt"
    body = "\n".join(ODD_LINES) + "\n" + "many " * 2_000 + "\nno newline at the end"
    text.write_bytes(b"\xef\xbb\xbf" + body.encode())
    run(text, tmp_path / "out.hdf5", "--all")
    lines = body.split("\n")
    with h5py.File(tmp_path / "out.hdf5") as file:
        assert file.attrs["num_lines"] == len(lines) == len(file) - 1
        for line, layers in enumerate(layers_of(bilm, lines)):
            numpy.testing.assert_allclose(file[str(line)][...], layers, atol=1e-6)
        assert json.loads(file["sentence_to_index"][0])["nul \0 inside"] == "1"


def test_text_that_is_not_utf_8_stops_before_anything_is_written(tmp_path, bilm):
    text, out = tmp_path / "text.txt", tmp_path / "out.hdf5"
    for data, place in ((b"They play\ncaf\xe9 one\n", 2), ("They play\n".encode("utf-16"), 1)):
        text.write_bytes(data)
        assert f"{text}:{place}: expected UTF-8 text" in failure(text, out, "--all")
        assert list(tmp_path.iterdir()) == [text]
    text.write_bytes(b"They play\ncaf\xe9 one\n")
    run(text, out, "--all", "--decoding-errors", "replace")
    (tmp_path / "texts").mkdir()
    text.rename(tmp_path / "texts" / "text.txt")
    run(tmp_path / "texts", tmp_path / "many", "--all", "--decoding-errors", "replace")
    expected = layers_of(bilm, ["They play", "caf\ufffd one"])
    for written in (out, tmp_path / "many" / "text.txt.hdf5"):
        with h5py.File(written) as file:
            numpy.testing.assert_allclose(file["1"][...], expected[1], atol=1e-6)


def test_words_of_a_vocabulary_are_utf_8_too(tmp_path):
    text = write(tmp_path / "text.txt", LINES)
    words = tmp_path / "words.txt"
    words.write_bytes(b"play\nbegan\xff\n")
    message = failure(text, tmp_path / "out.hdf5", "--all", "--vocab-path", words)
    assert f"{words}:2: expected UTF-8 text, found the byte 0xff" in message


@pytest.mark.parametrize("source", ["file", "pipe"])
def test_an_empty_text_is_refused(tmp_path, source):
    text, out = tmp_path / "text.txt", tmp_path / "out.hdf5"
    os.mkfifo(text) if source == "pipe" else text.touch()
    if source == "pipe":
        # Opened and closed without a byte.
        writer = threading.Thread(target=lambda: text.open("wb").close(), daemon=True)
        writer.start()
    assert failure(text, out, "--all").endswith(f"{text} is empty; expected a sentence per line.")
    assert list(tmp_path.iterdir()) == [text]


@pytest.mark.parametrize("lines", [[""], ["", "", ""]])
def test_a_text_without_words_gives_empty_datasets(tmp_path, lines):
    text = write(tmp_path / "text.txt", lines)
    run(text, tmp_path / "out.hdf5", "--all")
    with h5py.File(tmp_path / "out.hdf5") as file:
        assert file.attrs["complete"] and file.attrs["num_lines"] == len(lines)
        for line in range(len(lines)):
            assert file[str(line)].shape == (3, 0, 32)


def test_a_pipe_is_read_without_knowing_its_length(tmp_path):
    command = [sys.executable, "-m", "allennlp", "elmo", "-", tmp_path / "out.hdf5", "--top"]
    text = "one line\nand another\n"
    done = subprocess.run(command, cwd=PROJECT, input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "2 lines, 4 tokens" in done.stdout
    with h5py.File(tmp_path / "out.hdf5") as file:
        assert file["1"].shape == (2, 32)


def test_a_pipe_is_refused_before_the_text_is_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    message = failure(tmp_path / "nowhere.txt", tmp_path / "pipe", "--all", "--force")
    assert "pipe is a pipe or device; expected the name of a file" in message


def write_random_lines(path):
    draw = random.Random(13)
    words = [f"word{number}" for number in range(500)]
    return write(path, [" ".join(draw.choices(words, k=draw.randrange(12))) for _ in range(100)])


def run_for_commits(number, *arguments):
    """Runs a command that kills itself before the commit that follows so many."""
    add, left = DumpFile.add, iter(range(number))

    def counted(*arguments):
        if next(left, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)
        add(*arguments)

    DumpFile.add = counted
    run(*arguments)


def test_a_killed_run_goes_on_and_ends_the_same(tmp_path, capsys):
    text = write_random_lines(tmp_path / "text.txt")
    output = tmp_path / "killed.hdf5"
    # A fork has all imports behind it.
    context = multiprocessing.get_context("fork")
    for num_commits in (1, 2, 3):
        arguments = (num_commits, text, output, "--all", "--batch-size", "1")
        process = context.Process(target=run_for_commits, args=arguments)
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL
    state = json.loads((tmp_path / "killed.hdf5.unfinished/progress.json").read_text())
    assert state["num_lines"] == 6 * 16 and not output.exists()
    run(text, output, "--all", "--batch-size", "1")
    assert "of them earlier" in capsys.readouterr().out
    run(text, tmp_path / "alone.hdf5", "--all", "--batch-size", "1")
    assert content(output) == content(tmp_path / "alone.hdf5")
    assert output.read_bytes() == (tmp_path / "alone.hdf5").read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["alone.hdf5", "killed.hdf5", "text.txt"]


def test_workers_write_the_same_file_and_may_be_killed(tmp_path, monkeypatch):
    text = write_random_lines(tmp_path / "text.txt")
    output = tmp_path / "workers.hdf5"
    settings = ("--all", "--batch-size", "1")
    with monkeypatch.context() as patched:
        patched.setattr("elmo_plugin.elmo.store.dump.SentenceVectors", KilledWorker)
        message = failure(text, output, *settings, "--num-workers", "2")
    assert "worker" in message and "The lines done are kept." in message
    assert not output.exists()
    run(text, output, *settings, "--num-workers", "2")
    run(text, tmp_path / "alone.hdf5", *settings)
    assert output.read_bytes() == (tmp_path / "alone.hdf5").read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["alone.hdf5", "text.txt", "workers.hdf5"]


@pytest.fixture
def begun(tmp_path, monkeypatch, capsys):
    """A run that stopped after its first commit: text, output, and how to let it go on."""
    text = write(tmp_path / "text.txt", [f"line number {number}" for number in range(40)])
    whole = sentence_vectors._vectors

    def stops(layers, options, place):
        if place.endswith(":25"):
            raise KeyboardInterrupt
        return whole(layers, options, place)

    monkeypatch.setattr(sentence_vectors, "_vectors", stops)
    output = tmp_path / "out.hdf5"
    shown = running.interruption(capsys, "elmo", text, output, "--all", "--batch-size", "1")
    assert "Run the same command again to continue" in shown
    monkeypatch.setattr(sentence_vectors, "_vectors", whole)
    return Namespace(text=text, output=output, arguments=["--all", "--batch-size", "1"])


def test_only_the_same_command_continues(begun, capsys):
    message = failure(begun.text, begun.output, "--top", "--batch-size", "2")
    assert "layers all, now top; batch_size 1, now 2" in message
    run(begun.text, begun.output, *begun.arguments)
    assert "40 lines (16 of them earlier)" in capsys.readouterr().out


def test_another_bilm_does_not_continue(begun, tmp_path):
    weights = tmp_path / "weights.hdf5"
    weights.write_bytes(Path(os.environ["ELMO_WEIGHTS"]).read_bytes())
    with h5py.File(weights, "r+") as file:
        file["char_embed"][0, 0] += 1
    options = os.environ["ELMO_OPTIONS"]
    arguments = [*begun.arguments, "--options-file", options, "--weight-file", weights]
    assert "another bilm_fingerprint" in failure(begun.text, begun.output, *arguments)
    run(begun.text, begun.output, *arguments, "--force")
    with h5py.File(begun.output) as file:
        assert file.attrs["num_lines"] == 40


def test_another_text_does_not_continue(begun):
    lines = begun.text.read_text().splitlines()
    write(begun.text, ["changed", *lines[1:]])
    message = failure(begun.text, begun.output, *begun.arguments)
    assert "16 lines of another text" in message
    write(begun.text, lines[:10])
    assert "16 lines of another text" in failure(begun.text, begun.output, *begun.arguments)
    # What comes after the lines done may still change.
    write(begun.text, [*lines, "one more"])
    run(begun.text, begun.output, *begun.arguments)


def test_a_second_process_is_kept_out(begun):
    with open(f"{begun.output}.unfinished/lock", "w") as first:
        fcntl.flock(first, fcntl.LOCK_EX)
        message = failure(begun.text, begun.output, *begun.arguments)
        assert "is being written by another process" in message
    run(begun.text, begun.output, *begun.arguments)


def test_a_finished_output_is_left_alone_unless_forced(begun):
    run(begun.text, begun.output, *begun.arguments)
    before = begun.output.read_bytes()
    message = failure(begun.text, begun.output, "--top")
    assert "exists. Give --force" in message
    assert begun.output.read_bytes() == before
    run(begun.text, begun.output, "--top", "--force")
    with h5py.File(begun.output) as file:
        assert file["0"].shape == (3, 32)


def test_a_full_disk_costs_nothing_done(begun, capsys):
    size = Path(f"{begun.output}.unfinished/vectors").stat().st_size
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, limits[1]))
    try:
        message = failure(begun.text, begun.output, *begun.arguments)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "no space left to write" in message and "The lines done are kept" in message
    run(begun.text, begun.output, *begun.arguments)
    assert "(16 of them earlier)" in capsys.readouterr().out


def test_nothing_is_begun_that_the_disk_cannot_hold(tmp_path, monkeypatch, capsys):
    text = write(tmp_path / "text.txt", LINES)
    out = tmp_path / "out.hdf5"
    # 12 tokens, 3 layers of 32 numbers.
    size = 12 * 3 * 32 * 4
    for free in (2 * size - 1, 2 * size):
        monkeypatch.setattr(shutil, "disk_usage", lambda folder: Namespace(free=free))  # noqa: B023
        if free < 2 * size:
            assert "GB are free. Free some space" in failure(text, out, "--all")
            assert os.listdir(tmp_path) == ["text.txt"]
        else:
            run(text, out, "--all")
    assert "0.0 MB of vectors to write." in capsys.readouterr().err


def test_wrong_files_are_named_in_one_sentence(tmp_path):
    text = write(tmp_path / "text.txt", LINES)
    out = tmp_path / "out.hdf5"
    junk = write(tmp_path / "junk", ["{"])
    assert "looked for" in failure(tmp_path / "absent.txt", out, "--all")
    for options, weights, message in (
        (junk, junk, "is not JSON"),
        (tmp_path / "none", junk, "none does not exist"),
        (os.environ["ELMO_OPTIONS"], junk, "cannot be read"),
        (os.environ["ELMO_OPTIONS"], tmp_path / "none", "none does not exist"),
    ):
        files = ("--options-file", options, "--weight-file", weights)
        assert message in failure(text, out, "--all", *files)
    assert "weights a.hdf5 alone" in failure(text, out, "--all", "--weight-file", "a.hdf5")
    assert "looked for" in failure(text, out, "--all", "--vocab-path", tmp_path / "none")
    assert "CUDA devices" in failure(text, out, "--all", "--cuda-device", "99")
    on_a_gpu = ("--num-workers", "2", "--cuda-device", "0")
    assert "--num-workers is for CPUs" in failure(text, out, "--all", *on_a_gpu)
    message = failure(text, junk / "out.hdf5", "--all")
    assert f"{junk / 'out.hdf5'} cannot be written: {junk} is not a folder" in message
    message = failure(text, out, "--all", "--vocab-path", tmp_path)
    assert f"{tmp_path} is a folder; expected a text file" in message
    assert str(junk) in failure(text, junk, "--all")
    assert not out.exists()


def test_vectors_too_large_for_float16_are_refused(tmp_path, monkeypatch):
    text = write(tmp_path / "text.txt", LINES)
    large = lambda bilm, sentences, batch_size: (  # noqa: E731
        torch.full((3, len(words), 32), 1e5) for words in sentences
    )
    monkeypatch.setattr(sentence_vectors, "embed_sentences", large)
    message = failure(text, tmp_path / "out.hdf5", "--all", "--half")
    assert f"{text}:1" in message and "float16" in message


def test_exactly_one_choice_of_layers_is_needed(tmp_path, capsys):
    for flags in ([], ["--all", "--top"]):
        with pytest.raises(SystemExit) as stopped:
            run(tmp_path / "text.txt", tmp_path / "out.hdf5", *flags)
        assert stopped.value.code == 2
    assert "required" in capsys.readouterr().err


@pytest.mark.parametrize("size", ["0", "-1", "many", "1.5"])
def test_a_batch_has_at_least_one_sentence(tmp_path, capsys, size):
    with pytest.raises(SystemExit) as stopped:
        run(tmp_path / "text.txt", tmp_path / "out.hdf5", "--all", "--batch-size", size)
    assert stopped.value.code == 2
    assert f"expected a whole number above 0, found {size}" in capsys.readouterr().err


def test_help_has_an_example(capsys):
    with pytest.raises(SystemExit) as stopped:
        run("--help")
    assert stopped.value.code == 0
    assert "allennlp elmo sentences.txt vectors.hdf5 --all" in capsys.readouterr().out
    assert Subcommand.by_name("elmo")().name == "elmo"


def test_the_input_and_a_folder_are_no_outputs(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("They play\n")
    for force in ([], ["--force"]):
        for output, reason in ((text, "is the input"), (tmp_path, "is a folder")):
            assert reason in failure("--all", *force, text, output)
            assert text.read_text() == "They play\n"
    assert "is the folder of the texts" in failure("--all", tmp_path, tmp_path / ".")
    compressed = tmp_path / "only.txt.gz"
    compressed.write_bytes(gzip.compress(b"They play\n"))
    assert "is the input" in failure("--all", "--force", tmp_path / "only.txt", compressed)


def test_a_full_gpu_is_one_sentence_for_a_folder_too(tmp_path, monkeypatch):
    def full(*_, **__):
        raise torch.OutOfMemoryError

    monkeypatch.setattr("elmo_plugin.commands.embed.dump_shards", full)
    (tmp_path / "texts").mkdir()
    write(tmp_path / "texts/text.txt", LINES)
    message = failure("--all", tmp_path / "texts", tmp_path / "out")
    assert "The GPU has too little memory" in message


def test_workers_are_for_this_machine(tmp_path):
    arguments = ("--ray", "--num-workers", 2, tmp_path, tmp_path / "out")
    assert "--num-workers is for this machine" in failure("--all", *arguments)
    message = failure("--all", tmp_path, tmp_path / "out", "--cpus", 2)
    assert "--cpus is for the tasks of --ray" in message


def test_the_counts_of_a_vocabulary_are_no_part_of_its_words(tmp_path):
    path = tmp_path / "vocabulary.txt"
    path.write_text("<S>\t9\nthe\t7\n\ncafé\n")
    args = Namespace(vocab_path=str(path), decoding_errors="strict")
    assert given_vocabulary(args) == ["<S>", "the", "café"]


def test_space_counts_what_unfinished_files_of_a_folder_hold(tmp_path, monkeypatch):
    usage = namedtuple("usage", "free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(100))
    out = tmp_path / "out"
    for name in ("a", "b", "other"):
        (out / f"{name}.hdf5.unfinished").mkdir(parents=True)
        (out / f"{name}.hdf5.unfinished/part").write_bytes(bytes(30))
    files = [out / "a.hdf5", out / "b.hdf5"]
    check_space(out, 160, files)
    with pytest.raises(ConfigurationError, match="Free some space"):
        check_space(out, 161, files)
    check_space(out / "a.hdf5", 130)
    with pytest.raises(ConfigurationError, match="Free some space"):
        check_space(out / "a.hdf5", 131)


def test_a_bilm_over_token_embeddings_writes_its_layers(tmp_path, make_options):
    folder = save_token_bilm(tmp_path / "tokens", make_options())
    files = [folder / name for name in ("options.json", "weights.hdf5")]
    text = write(tmp_path / "text.txt", ["the naïve 🦉", "", "unheard of"])
    arguments = [text, tmp_path / "out.hdf5", "--all", "--vocab-path", folder / "vocabulary.txt"]
    run(*arguments, "--options-file", files[0], "--weight-file", files[1])
    with h5py.File(tmp_path / "out.hdf5") as file:
        found = [file[str(line)][...] for line in range(3)]
    for vectors, expected in zip(found, layers_of(load_bilm(*files), ["the naïve 🦉", "", "x y"])):
        numpy.testing.assert_allclose(vectors, expected, rtol=1e-5, atol=1e-6)
