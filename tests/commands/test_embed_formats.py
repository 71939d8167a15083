"""What the formats of `elmo embed` can do, and its limits."""

import os
import sys
from functools import partial

import pyarrow.parquet
import pytest
from safetensors import safe_open

from elmo_plugin import load_bilm
from elmo_plugin.elmo.store import formats
from elmo_plugin.elmo.store.dump import DumpOptions, dump_embeddings
from elmo_plugin.util.errors import ConfigurationError
from tests.commands import running

LINES = ["The play began", "", "They play", "The play began", 'and / or "x\\y" .', "🦉 naïve", ""]
run = partial(running.run, "elmo-embed")
failure = partial(running.failure, "elmo-embed")


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    return path


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
    run(text, tmp_path / "some.parquet", "--layers", "2,0")
    names = pyarrow.parquet.read_schema(tmp_path / "some.parquet").names
    assert names[3:] == ["layer_2", "layer_0"]
    run(text, tmp_path / "top.parquet", "--top")
    assert pyarrow.parquet.read_schema(tmp_path / "top.parquet").names[3:] == ["vector"]


@pytest.mark.parametrize(
    "options",
    [
        *({"layers": layers} for layers in ("last", "", "0,", "1;2")),
        *({"dtype": dtype} for dtype in ("int8", "float64")),
        {"pool": "median"},
    ],
)
def test_impossible_options_are_refused(options):
    ((name, value),) = options.items()
    with pytest.raises(ConfigurationError, match=f"Expected `{name}` to be one of .*'{value}'"):
        DumpOptions(**options)


def test_from_python_too_a_stateful_bilm_and_what_a_format_cannot_do_are_refused(text, tmp_path):
    for bilm, settings, reason in (
        (load_bilm(stateful=True), {}, "needs a biLM that is not stateful"),
        (load_bilm(), {"compression": "zstd"}, "zstd: .hdf5 has gzip or lzf"),
    ):
        with pytest.raises(ConfigurationError, match=reason):
            dump_embeddings(bilm, text, tmp_path / "out.hdf5", DumpOptions(**settings))
    assert os.listdir(tmp_path) == ["text.txt"]


def test_without_pyarrow_the_error_names_it(text, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "pyarrow.parquet")
    message = failure(text, tmp_path / "out.parquet", "--all")
    assert message.endswith("needs the package pyarrow: pip install pyarrow.")
    assert os.listdir(tmp_path) == ["text.txt"]
    run(text, tmp_path / "out.safetensors", "--all")


def test_more_lines_than_safetensors_reads_are_refused_at_once(text, tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "_MAX_LINES", 7)
    run(text, tmp_path / "out.safetensors", "--all")
    monkeypatch.setattr(formats, "_MAX_LINES", 6)
    load = "elmo_plugin.commands.bilm_arguments.load_bilm"
    monkeypatch.setattr(load, lambda *_, **__: pytest.fail("late"))
    message = failure(text, tmp_path / "more.safetensors", "--all")
    assert "more.safetensors would have a header of more than 100 MB" in message
    assert "expected at most 6 lines" in message and "or write HDF5 or Parquet" in message
    assert sorted(os.listdir(tmp_path)) == ["out.safetensors", "text.txt"]


def test_a_large_header_is_read_by_the_library_and_no_longer_than_assumed(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("\n" * 20_000)
    run(text, tmp_path / "out.safetensors", "--top", "--forget-sentences")
    size = int.from_bytes((tmp_path / "out.safetensors").read_bytes()[:8], "little")
    assert 1_000_000 < size < 20_000 * 98
    with safe_open(tmp_path / "out.safetensors", "numpy") as file:
        assert len(file.keys()) == 20_000
        assert file.get_tensor("19999").shape == (0, 32)
    offsets = [10**15 - 2, 10**15 - 1]
    longest = {"dtype": "F32", "shape": [9, 999_999, 9_999], "data_offsets": offsets}
    assert len(f',"999999":{formats._json(longest)}') == 98
    assert 98 * formats._MAX_LINES < 99_000_000
