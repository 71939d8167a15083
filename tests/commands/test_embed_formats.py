"""`elmo embed` into safetensors and Parquet: the values of the HDF5 file, in files of libraries."""

import json
import os
import sys
import threading
from functools import partial

import pyarrow.parquet
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file

from elmo_plugin import load_bilm
from elmo_plugin.elmo.store import formats
from elmo_plugin.elmo.store.dump import DumpFile, DumpOptions, dump_embeddings
from elmo_plugin.util.errors import ConfigurationError
from tests.commands import running
from tests.elmo.store.reading import SUFFIXES, read, same

run = partial(running.run, "elmo")
failure = partial(running.failure, "elmo")

LINES = ["The play began", "", "They play", "The play began", 'and / or "x\\y" .', "🦉 naïve", ""]
NEW = SUFFIXES[1:]


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    return path


@pytest.mark.parametrize("half", [[], ["--half"]])
@pytest.mark.parametrize("layers", ["--all", "--top", "--average"])
def test_all_formats_hold_the_same_bits(text, tmp_path, layers, half):
    for suffix in SUFFIXES:
        run(text, tmp_path / f"out{suffix}", layers, *half)
    expected, attributes = read(tmp_path / "out.hdf5")
    assert len(expected) == 5 and expected["0"].shape[-2:] == (3, 32)
    for suffix in NEW:
        found, of_file = read(tmp_path / f"out{suffix}")
        assert same(found, expected)
        of_file.pop("ARROW:schema", None)
        assert of_file == attributes


def test_sentences_can_be_names_of_tensors(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("\n".join([*LINES, ".", "__metadata__", "sentence_to_index"]) + "\n")
    for name in ("out.hdf5", "out.safetensors"):
        run(text, tmp_path / name, "--all", "--use-sentence-keys")
    expected, _ = read(tmp_path / "out.hdf5")
    assert {"The play began", 'and \u2215 or "x\\y" .', "\uff3f_metadata__"} < set(expected)
    assert same(read(tmp_path / "out.safetensors")[0], expected)


def test_a_tensor_of_safetensors_maps_sentences_to_lines(text, tmp_path):
    run(text, tmp_path / "out.safetensors", "--all")
    tensors = load_file(tmp_path / "out.safetensors")
    assert tensors["1"].shape == (3, 0, 32)
    assert json.loads(tensors["sentence_to_index"].tobytes()) == {
        line: str(number) for number, line in enumerate(LINES) if number not in (3, 6)
    }
    run(text, tmp_path / "bare.safetensors", "--top", "--forget-sentences")
    with safe_open(tmp_path / "bare.safetensors", "numpy") as file:
        assert sorted(file.keys()) == [str(number) for number in range(7)]
    # The vectors begin at a multiple of 8 bytes.
    header = (tmp_path / "out.safetensors").read_bytes()[:8]
    assert int.from_bytes(header, "little") % 8 == 0


def test_parquet_has_a_row_for_each_token(text, tmp_path, monkeypatch):
    # Two tokens of 3 layers.
    monkeypatch.setattr(formats, "_BYTES_PER_ROW_GROUP", 2 * 3 * 32 * 4)
    run(text, tmp_path / "out.parquet", "--all", "--batch-size", "1", "--compression", "zstd")
    file = pyarrow.parquet.ParquetFile(tmp_path / "out.parquet")
    sizes = [file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)]
    # A row group ends with a sentence.
    assert sizes == [3, 2, 3, 5, 2]
    assert file.metadata.row_group(0).column(3).compression == "ZSTD"
    table = file.read()
    vectors = pyarrow.list_(pyarrow.float32(), 32)
    assert dict(zip(table.column_names, table.schema.types)) == {
        "sentence": pyarrow.int64(),
        "position": pyarrow.int32(),
        "word": pyarrow.string(),
        **{f"layer_{layer}": vectors for layer in range(3)},
    }
    rows = [(s, p, w) for s, line in enumerate(LINES) for p, w in enumerate(line.split())]
    words = zip(*(table[name].to_pylist() for name in ("sentence", "position", "word")))
    assert list(words) == rows
    run(text, tmp_path / "top.parquet", "--top")
    assert pyarrow.parquet.read_schema(tmp_path / "top.parquet").names[3:] == ["vector"]


@pytest.mark.parametrize("suffix", NEW)
def test_a_text_without_words_gives_a_file(tmp_path, suffix):
    text = tmp_path / "text.txt"
    text.write_text("\n\n")
    run(text, tmp_path / f"out{suffix}", "--all")
    found, attributes = read(tmp_path / f"out{suffix}")
    assert not found and attributes["num_lines"] == "2"


@pytest.mark.parametrize("suffix", NEW)
def test_work_that_was_stopped_goes_on_and_ends_the_same(tmp_path, suffix, monkeypatch, capsys):
    text, output = tmp_path / "text.txt", tmp_path / f"out{suffix}"
    text.write_text("".join(f"line number {number}\n" for number in range(40)))
    add = DumpFile.add

    def stops(*arguments):
        add(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(DumpFile, "add", stops)
    settings = ["--all", "--batch-size", "1"]
    shown = running.interruption(capsys, "elmo", text, output, *settings)
    assert "Run the same command again" in shown
    monkeypatch.undo()
    assert "layers all, now top" in failure(text, output, "--top", "--batch-size", "1")
    run(text, output, *settings, "--num-workers", "2")
    assert "40 lines (16 of them earlier)" in capsys.readouterr().out
    run(text, tmp_path / f"alone{suffix}", *settings)
    assert output.read_bytes() == (tmp_path / f"alone{suffix}").read_bytes()
    assert sorted(os.listdir(tmp_path)) == [f"alone{suffix}", output.name, "text.txt"]
    assert "exists. Give --force" in failure(text, output, *settings)


@pytest.mark.parametrize("suffix", NEW)
def test_the_ending_of_a_folder_is_the_format_of_its_files(text, tmp_path, suffix, capsys):
    texts, out = tmp_path / "texts", tmp_path / f"vectors{suffix}"
    texts.mkdir()
    os.replace(text, texts / "a.txt")
    (texts / "b.txt").write_text("Another text .\n")
    run(texts, out, "--top")
    assert sorted(os.listdir(out)) == [f"a.txt{suffix}", f"b.txt{suffix}"]
    run(texts / "a.txt", tmp_path / "alone.hdf5", "--top")
    assert same(read(out / f"a.txt{suffix}")[0], read(tmp_path / "alone.hdf5")[0])
    before = {path: path.read_bytes() for path in out.iterdir()}
    capsys.readouterr()
    run(texts, out, "--top")
    assert "7 lines (7 of them earlier)" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in out.iterdir()} == before
    (texts / "b.txt").write_text("Yet another .\n")
    assert "1 of 2 texts failed" in failure(texts, out, "--top")
    assert "b.txt has changed" in capsys.readouterr().err
    assert "2 of 2 texts failed" in failure(texts, out, "--all")
    assert "layers top, now all" in capsys.readouterr().err


@pytest.mark.parametrize(
    "name, settings, reason",
    [
        ("out.hdf5", ["--compression", "zstd"], "zstd: .hdf5 is compressed by gzip or lzf"),
        ("out.safetensors", ["--compression", "gzip"], ".safetensors has no compression"),
        ("out.parquet", ["--compression", "gzip"], ".parquet is compressed by zstd"),
        ("OUT.PARQUET", ["--use-sentence-keys"], "in Parquet the words are a column"),
    ],
)
def test_what_a_format_cannot_do_is_refused(text, tmp_path, name, settings, reason):
    # The folder of the text stands for a folder of texts.
    for source in (text, tmp_path):
        assert reason in failure(source, tmp_path / name, "--all", *settings)
    assert os.listdir(tmp_path) == ["text.txt"]
    with pytest.raises(ConfigurationError, match=reason):
        options = {"compression": settings[-1]} if len(settings) > 1 else {"sentence_keys": True}
        dump_embeddings(load_bilm(), text, tmp_path / name, DumpOptions(**options))


@pytest.mark.parametrize("options", [{"layers": "last"}, {"dtype": "int8"}, {"dtype": "float64"}])
def test_impossible_options_are_refused(options):
    ((name, value),) = options.items()
    with pytest.raises(ConfigurationError, match=f"Expected `{name}` to be one of .*'{value}'"):
        DumpOptions(**options)


def test_a_stateful_bilm_is_refused(text, tmp_path):
    with pytest.raises(ConfigurationError, match="needs a biLM that is not stateful"):
        dump_embeddings(load_bilm(stateful=True), text, tmp_path / "out.hdf5", DumpOptions())
    assert os.listdir(tmp_path) == ["text.txt"]


def test_without_pyarrow_its_extra_is_named(text, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "pyarrow.parquet")
    message = failure(text, tmp_path / "out.parquet", "--all")
    assert message.endswith(
        "Parquet needs the package pyarrow: pip install 'elmo-plugin[parquet]'."
    )
    assert os.listdir(tmp_path) == ["text.txt"]
    run(text, tmp_path / "out.safetensors", "--all")


def test_more_lines_than_safetensors_reads_are_refused_at_once(text, tmp_path, monkeypatch):
    name_and_rest = len('"0"') + formats._BYTES_PER_ENTRY
    monkeypatch.setattr(formats, "_MAX_BYTES_OF_ENTRIES", 7 * name_and_rest)
    run(text, tmp_path / "out.safetensors", "--all")
    monkeypatch.setattr(formats, "_MAX_BYTES_OF_ENTRIES", 7 * name_and_rest - 1)
    monkeypatch.setattr(
        "elmo_plugin.commands.bilm_arguments.load_bilm", lambda *_: pytest.fail("late")
    )
    message = failure(text, tmp_path / "more.safetensors", "--all")
    assert "more.safetensors would have a header of more than 100 MB" in message
    assert "expected fewer than 7 lines" in message and "or write HDF5 or Parquet" in message
    assert sorted(os.listdir(tmp_path)) == ["out.safetensors", "text.txt"]


def test_a_pipe_with_too_many_lines_is_stopped_where_they_become_too_many(tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "_MAX_BYTES_OF_ENTRIES", 2_000)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_text("a line\n" * 30), daemon=True)
    writer.start()
    message = failure(pipe, tmp_path / "out.safetensors", "--all", "--batch-size", "1")
    writer.join()
    assert "expected fewer than 22 lines" in message


def test_an_entry_of_the_header_is_no_longer_than_assumed():
    longest = {
        "dtype": "F32",
        "shape": [9, 999_999, 9_999],
        "data_offsets": [10**15 - 2, 10**15 - 1],
    }
    assert len(f",:{formats._json(longest)}") <= formats._BYTES_PER_ENTRY


def test_a_large_header_is_read_by_the_library(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("\n" * 20_000)
    run(text, tmp_path / "out.safetensors", "--top", "--forget-sentences")
    size = int.from_bytes((tmp_path / "out.safetensors").read_bytes()[:8], "little")
    limit = sum(len(f'"{n}"') + formats._BYTES_PER_ENTRY for n in range(20_000))
    assert 1_000_000 < size < limit
    with safe_open(tmp_path / "out.safetensors", "numpy") as file:
        assert len(file.keys()) == 20_000
        assert file.get_tensor("19999").shape == (0, 32)
