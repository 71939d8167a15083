"""What `elmo embed` writes, in HDF5, safetensors and Parquet."""

import json
import os
import shutil
from argparse import Namespace
from functools import partial

import h5py
import numpy
import pyarrow.parquet
import pytest
import torch
from safetensors import safe_open

from elmo_plugin import embed_sentences
from elmo_plugin.bilm import fingerprint
from elmo_plugin.elmo.store import sentence_vectors
from elmo_plugin.elmo.store.dump import check_space
from elmo_plugin.util.errors import ConfigurationError
from tests.commands import running
from tests.commands.killed_worker import KilledWorker
from tests.elmo.store.reading import SUFFIXES, read, same

LINES = ["The play began", "", "They play", "The play began", 'and / or "x\\y" .', "🦉 naïve", ""]
run = partial(running.run, "elmo-embed")
failure = partial(running.failure, "elmo-embed")


@pytest.fixture(autouse=True)
def one_thread(set_num_threads):
    # Results must not depend on how many cores the machine has left.
    set_num_threads(1)


def write(path, lines):
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    return path


@pytest.fixture
def text(tmp_path):
    return write(tmp_path / "text.txt", LINES)


def layers_of(bilm, lines):
    sentences = [line.split() for line in lines]
    return [layers.numpy() for layers in embed_sentences(bilm, sentences)]


@pytest.mark.parametrize("half", [[], ["--half"]])
@pytest.mark.parametrize("which", ["all", "top", "average"])
def test_all_formats_hold_the_layers_of_each_line(text, tmp_path, shared_bilm, which, half):
    for suffix in SUFFIXES:
        run(text, tmp_path / f"out{suffix}", f"--{which}", *half)
    found, attributes = read(tmp_path / "out.hdf5")
    wanted = {"all": lambda x: x, "top": lambda x: x[-1], "average": lambda x: x.mean(axis=0)}
    for line, layers in enumerate(layers_of(shared_bilm, LINES)):
        expected = wanted[which](layers)
        with h5py.File(tmp_path / "out.hdf5") as file:
            vectors = file[str(line)][...]
        assert vectors.dtype == (numpy.float16 if half else numpy.float32)
        assert vectors.shape == expected.shape
        numpy.testing.assert_allclose(vectors, expected, atol=2e-3 if half else 1e-6)
    for suffix in SUFFIXES[1:]:
        others, of_file = read(tmp_path / f"out{suffix}")
        of_file.pop("ARROW:schema", None)
        assert same(others, found) and of_file == attributes


POOLED = {
    "mean": lambda x: x.mean(axis=-2),
    "max": lambda x: x.max(axis=-2),
    "first_last": lambda x: numpy.concatenate([x[..., -1, :16], x[..., 0, 16:]], axis=-1),
}


@pytest.mark.parametrize("pool", POOLED)
@pytest.mark.parametrize("which", ["--layers=2,0", "--average"])
def test_a_line_can_have_one_vector_of_its_tokens(text, tmp_path, shared_bilm, which, pool):
    for suffix, compression in zip(SUFFIXES, ("gzip", "", "zstd")):
        options = ["--compression", compression] if compression else []
        run(text, tmp_path / f"out{suffix}", which, "--pool", pool, *options)
    found, attributes = read(tmp_path / "out.hdf5")
    assert attributes["pool"] == pool and attributes["layers"] in ("2,0", "average")
    for line, layers in enumerate(layers_of(shared_bilm, LINES)):
        # Of a mean of the layers, the maximum is not the mean of their maxima.
        vectors = layers.mean(axis=0) if which == "--average" else layers[[2, 0]]
        shape = (*vectors.shape[:-2], 32)
        expected = POOLED[pool](vectors) if LINES[line] else numpy.zeros(shape)
        assert found[str(line)].shape == shape
        numpy.testing.assert_allclose(found[str(line)], expected, atol=1e-6)
    assert same(read(tmp_path / "out.safetensors")[0], found)
    table = pyarrow.parquet.read_table(tmp_path / "out.parquet")
    names = ["vector"] if which == "--average" else ["layer_2", "layer_0"]
    assert table.column_names == ["sentence", "text", *names]
    assert table["sentence"].to_pylist() == list(range(len(LINES)))
    assert table["text"].to_pylist() == LINES
    for number, name in enumerate(names):
        column = numpy.array(table[name].to_pylist(), dtype="float32")
        expected = [found[str(line)].reshape(-1, 32)[number] for line in range(len(LINES))]
        assert (column == expected).all()


def test_the_map_points_to_the_first_of_equal_sentences(text, tmp_path):
    for suffix in SUFFIXES[:2]:
        run(text, tmp_path / f"out{suffix}", "--top")
        run(text, tmp_path / f"bare{suffix}", "--top", "--forget-sentences")
    numbers = [str(number) for number in range(len(LINES))]
    expected = {line: str(LINES.index(line)) for line in LINES}
    with h5py.File(tmp_path / "out.hdf5") as file, h5py.File(tmp_path / "bare.hdf5") as bare:
        assert json.loads(file["sentence_to_index"][0]) == expected
        assert (file["0"][...] == file["3"][...]).all()
        # Datasets stand in the order of the lines, not of their names as text.
        assert list(file) == [*numbers, "sentence_to_index"] and list(bare) == numbers
    with safe_open(tmp_path / "out.safetensors", "numpy") as file:
        assert json.loads(file.get_tensor("sentence_to_index").tobytes()) == expected
        assert file.get_tensor("1").shape == (0, 32)
    with safe_open(tmp_path / "bare.safetensors", "numpy") as file:
        assert sorted(file.keys()) == numbers
    # The vectors begin at a multiple of 8 bytes.
    header = (tmp_path / "out.safetensors").read_bytes()[:8]
    assert int.from_bytes(header, "little") % 8 == 0


def test_attributes_name_the_bilm_and_the_settings(text, tmp_path, capsys, shared_bilm):
    run(text, tmp_path / "new" / "folder" / "out.hdf5", "--all")
    assert "7 lines, 15 tokens" in capsys.readouterr().out
    with h5py.File(tmp_path / "new" / "folder" / "out.hdf5") as file:
        assert file.attrs["complete"] and file.attrs["num_lines"] == 7
        assert file.attrs["layers"] == "all" and file.attrs["dtype"] == "float32"
        assert file.attrs["format_version"] == 1 and file.attrs["input"] == str(text)
        assert json.loads(file.attrs["bilm_options"])["lstm"]["n_layers"] == 2
        assert file.attrs["bilm_fingerprint"] == fingerprint(shared_bilm)
        assert file.attrs["elmo_plugin_version"]
    assert os.listdir(tmp_path / "new" / "folder") == ["out.hdf5"]


@pytest.mark.parametrize("compression", ["gzip", "lzf"])
def test_hdf5_can_be_compressed(text, tmp_path, compression):
    run(text, tmp_path / "full.hdf5", "--all")
    run(text, tmp_path / "small.hdf5", "--all", "--compression", compression)
    with h5py.File(tmp_path / "small.hdf5") as file:
        assert file["0"].compression == compression and file["1"].shape == (3, 0, 32)
    assert same(read(tmp_path / "small.hdf5")[0], read(tmp_path / "full.hdf5")[0])


def test_bfloat16_changes_how_and_not_what(text, tmp_path, shared_bilm):
    run(text, tmp_path / "fast.hdf5", "--all", "--bfloat16")
    expected = layers_of(shared_bilm, LINES)
    with h5py.File(tmp_path / "fast.hdf5") as fast:
        difference = numpy.linalg.norm(fast["0"][...] - expected[0])
        assert 0 < difference < 0.03 * numpy.linalg.norm(expected[0])
        assert fast.attrs["computed_in"] == "bfloat16"


def test_text_that_is_not_utf_8_can_be_read(tmp_path, shared_bilm):
    (tmp_path / "texts").mkdir()
    text = tmp_path / "texts/text.txt"
    text.write_bytes(b"They play\ncaf\xe9 one\n")
    run(text, tmp_path / "one.hdf5", "--all", "--decoding-errors", "replace")
    run(tmp_path / "texts", tmp_path / "many", "--all", "--decoding-errors", "replace")
    expected = layers_of(shared_bilm, ["They play", "caf\ufffd one"])
    for written in (tmp_path / "one.hdf5", tmp_path / "many" / "text.txt.hdf5"):
        with h5py.File(written) as file:
            numpy.testing.assert_allclose(file["1"][...], expected[1], atol=1e-6)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_text_without_words_gives_a_file(tmp_path, suffix):
    text = write(tmp_path / "text.txt", ["", ""])
    run(text, tmp_path / f"out{suffix}", "--all")
    found, attributes = read(tmp_path / f"out{suffix}")
    assert not found and attributes["num_lines"] == "2"


def test_a_pipe_is_read_without_knowing_its_length(tmp_path, capsys):
    before, (reader, writer) = os.dup(0), os.pipe()
    os.write(writer, b"one line\nand another\n")
    os.close(writer)
    try:
        os.dup2(reader, 0)
        run("-", tmp_path / "out.hdf5", "--top")
    finally:
        os.dup2(before, 0)
        os.close(before)
        os.close(reader)
    assert "2 lines, 4 tokens" in capsys.readouterr().out
    with h5py.File(tmp_path / "out.hdf5") as file:
        assert file["1"].shape == (2, 32)


def test_workers_write_the_same_file_and_may_be_killed(tmp_path, monkeypatch):
    text = write(tmp_path / "text.txt", [f"line {'of words ' * (n % 5)}" for n in range(100)])
    output = tmp_path / "workers.hdf5"
    settings = ("--all", "--batch-size", "1")
    with monkeypatch.context() as patched:
        patched.setattr("elmo_plugin.elmo.store.dump.SentenceVectors", KilledWorker)
        message = failure(text, output, *settings, "--num-workers", "2")
    assert "worker" in message
    assert not output.exists()
    run(text, output, *settings, "--num-workers", "2")
    run(text, tmp_path / "alone.hdf5", *settings)
    assert output.read_bytes() == (tmp_path / "alone.hdf5").read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["alone.hdf5", "text.txt", "workers.hdf5"]


def test_the_ending_of_a_folder_is_the_format_of_its_files(text, tmp_path, capsys):
    texts, out = tmp_path / "texts", tmp_path / "vectors.parquet"
    texts.mkdir()
    os.replace(text, texts / "a.txt")
    (texts / "b.txt").write_text("Another text .\n")
    run(texts, out, "--top")
    assert sorted(os.listdir(out)) == ["a.txt.parquet", "b.txt.parquet"]
    run(texts / "a.txt", tmp_path / "alone.hdf5", "--top")
    assert same(read(out / "a.txt.parquet")[0], read(tmp_path / "alone.hdf5")[0])
    before = {path: path.read_bytes() for path in out.iterdir()}
    capsys.readouterr()
    run(texts, out, "--top")
    assert "7 lines (7 of them earlier)" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in out.iterdir()} == before
    (texts / "b.txt").write_text("Another .\n")
    assert "1 of 2 texts failed" in failure(texts, out, "--top")
    assert "b.txt has changed" in capsys.readouterr().err
    assert "2 of 2 texts failed" in failure(texts, out, "--all")
    assert "layers top, now all" in capsys.readouterr().err
    failure(texts, out, "--top", "--pool", "max")
    assert "pool None, now max" in capsys.readouterr().err
    assert "1 of 2 texts failed" not in failure(texts, tmp_path / "others", "--layers", "0,3")
    assert "from 0 (the token layer) to 2, found [0, 3]" in capsys.readouterr().err
    run(texts, out, "--top", "--force")
    assert "earlier" not in capsys.readouterr().err
    assert len(read(out / "b.txt.parquet")[0]["0"]) == 2


def test_nothing_is_begun_that_the_disk_cannot_hold(text, tmp_path, monkeypatch, capsys):
    # 15 tokens, 3 layers of 32 numbers.
    size = 15 * 3 * 32 * 4
    pooled_size = 7 * 2 * 32 * 4
    out = tmp_path / "out.hdf5"
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: Namespace(free=2 * size - 1))
    assert "GB are free. Free some space" in failure(text, out, "--all")
    assert os.listdir(tmp_path) == ["text.txt"]
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: Namespace(free=2 * size))
    run(text, out, "--all")
    assert "0.0 MB of vectors to write." in capsys.readouterr().err
    pooled = (text, tmp_path / "pooled.hdf5", "--layers", "0,2", "--pool", "mean")
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: Namespace(free=2 * pooled_size - 1))
    assert "GB are free. Free some space" in failure(*pooled)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: Namespace(free=2 * pooled_size))
    run(*pooled)


def test_space_counts_what_unfinished_files_of_a_folder_hold(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: Namespace(free=100))
    out = tmp_path / "out"
    for name in ("a", "b", "other"):
        (out / f"{name}.hdf5.unfinished").mkdir(parents=True)
        (out / f"{name}.hdf5.unfinished/part").write_bytes(bytes(30))
    files = [out / "a.hdf5", out / "b.hdf5"]
    for outputs, most in ((files, 160), (files[:1], 130)):
        check_space(outputs, most)
        with pytest.raises(ConfigurationError, match="Free some space"):
            check_space(outputs, most + 1)


def test_vectors_too_large_for_float16_are_refused(text, tmp_path, monkeypatch):
    large = lambda bilm, sentences, batch_size: (  # noqa: E731
        torch.full((3, len(words), 32), 1e5) for words in sentences
    )
    monkeypatch.setattr(sentence_vectors, "embed_sentences", large)
    message = failure(text, tmp_path / "out.hdf5", "--all", "--half")
    assert f"{text}:1" in message and "float16" in message


def test_a_full_gpu_is_one_sentence_for_a_folder_too(text, tmp_path, monkeypatch):
    def full(*_, **__):
        raise torch.OutOfMemoryError

    monkeypatch.setattr("elmo_plugin.commands.embed.dump_shards", full)
    message = failure("--all", tmp_path, tmp_path / "out")
    assert "the GPU has too little memory" in message
