"""The index of contexts: what is in its files, whatever stops its writer."""

import os
from pathlib import Path

import numpy
import pytest
import torch

from elmo_plugin import embed_sentences
from elmo_plugin.analysis.context_index import ContextIndex, IndexWriter, build_index
from elmo_plugin.util.errors import ConfigurationError

LINES = ["The play began .", "", "They play  chess .", "The play began .", "Owls 🦉\u2028 sleep ."]


def write(path, lines):
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    return path


@pytest.fixture
def text(tmp_path):
    return write(tmp_path / "text.txt", LINES)


def make_index(bilm, text, folder, force=False, **options):
    return build_index(bilm, [text], folder, force=force, **options)


def content(folder):
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def expected_layers(bilm, sentences):
    """Shape: `(num_layers, num_tokens, dim)`, float64, of length 1."""
    layers = torch.cat(list(embed_sentences(bilm, sentences)), dim=1).double().numpy()
    return layers / numpy.linalg.norm(layers, axis=-1, keepdims=True)


def test_an_index_holds_a_vector_of_length_1_of_each_token_and_layer(shared_bilm, text, tmp_path):
    summary = make_index(shared_bilm, text, tmp_path / "index")
    assert (summary.num_lines, summary.num_contexts, summary.num_resumed) == (5, 16, 0)
    expected = expected_layers(shared_bilm, [line.split() for line in LINES])
    index = ContextIndex(tmp_path / "index")
    assert list(index.layers) == [1, 2]
    for layer, vectors in index.layers.items():
        assert vectors.dtype == numpy.float16
        numpy.testing.assert_allclose(vectors, expected[layer], rtol=2**-10, atol=1e-6)
    places = [
        (number, position, tuple(line.split()))
        for number, line in enumerate(LINES, start=1)
        for position in range(len(line.split()))
    ]
    assert [index.context(row) for row in range(16)] == places
    assert sorted(path.name for path in (tmp_path / "index").iterdir()) == [
        "index.json",
        "layer_1.npy",
        "layer_2.npy",
        "sentences.npy",
        "text.txt",
    ]
    # Plain files: NumPy reads them.
    assert numpy.load(tmp_path / "index" / "layer_1.npy").shape == (16, 32)
    lines = (tmp_path / "index" / "text.txt").read_bytes().decode().split("\n")
    assert lines[:2] == ["The play began .", "They play chess ."]


def test_layers_can_be_chosen(shared_bilm, text, tmp_path):
    make_index(shared_bilm, text, tmp_path / "index", layers=[2, 0])
    expected = expected_layers(shared_bilm, [line.split() for line in LINES])
    index = ContextIndex(tmp_path / "index")
    assert list(index.layers) == [0, 2]
    for layer, vectors in index.layers.items():
        numpy.testing.assert_allclose(vectors, expected[layer], rtol=2**-10, atol=1e-6)


def many_lines(tmp_path):
    lines = [f"line number {number} {'and more ' * (number % 3)}" for number in range(40)]
    return write(tmp_path / "text.txt", lines)


@pytest.fixture
def begun(shared_bilm, tmp_path, monkeypatch):
    """Text and folder of a build that stopped after its first commit."""
    text, folder = many_lines(tmp_path), tmp_path / "index"
    add = IndexWriter.add

    def stops(writer, line, *sentence):
        if line == 20:
            raise KeyboardInterrupt
        add(writer, line, *sentence)

    with monkeypatch.context() as patch:
        patch.setattr(IndexWriter, "add", stops)
        with pytest.raises(KeyboardInterrupt):
            make_index(shared_bilm, text, folder, batch_size=1)
    return text, folder


def test_a_build_continues_after_its_last_commit(shared_bilm, begun):
    with pytest.raises(ConfigurationError, match="index is not finished: 16 lines are done"):
        ContextIndex(begun[1])
    summary = make_index(shared_bilm, *begun, batch_size=1)
    assert (summary.num_lines, summary.num_resumed) == (40, 16)
    # Nothing is left to do.
    assert make_index(shared_bilm, *begun, batch_size=1).num_resumed == 40


def test_another_bilm_does_not_continue(bilm, begun):
    bilm.lstm.requires_grad_(False)
    next(bilm.lstm.parameters())[0] += 1
    with pytest.raises(ConfigurationError, match="other settings: another bilm_fingerprint"):
        make_index(bilm, *begun, batch_size=1)
    make_index(bilm, *begun, force=True, batch_size=1)
    index = ContextIndex(begun[1])
    index.check_bilm(bilm)
    next(bilm.lstm.parameters()).data += 1
    with pytest.raises(ConfigurationError, match="built with another biLM"):
        index.check_bilm(bilm)


def test_other_files_are_never_replaced(shared_bilm, text, tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    write(folder / "notes.txt", ["mine"])
    for force in (False, True):
        with pytest.raises(ConfigurationError, match=r"mine holds other files \(notes.txt\)"):
            make_index(shared_bilm, text, folder, force)
        with pytest.raises(ConfigurationError, match="text.txt is in .*name another folder"):
            make_index(shared_bilm, text, tmp_path, force)
        with pytest.raises(ConfigurationError, match="is not a folder"):
            make_index(shared_bilm, text, text, force)
    assert os.listdir(folder) == ["notes.txt"]


def test_what_gives_no_index_is_refused(shared_bilm, make_bilm, text, tmp_path):
    damaged = make_bilm()
    with torch.no_grad():
        next(damaged.lstm.parameters()).fill_(numpy.nan)
    empty = write(tmp_path / "empty.txt", ["", " "])
    for bilm, source, options, message in (
        (shared_bilm, empty, {}, "empty.txt: expected words, found none in 2"),
        (shared_bilm, text, {"layers": [3]}, "layers from 0 .* to 2, found 3"),
        (shared_bilm, text, {"layers": [-1]}, "found -1"),
        (make_bilm(stateful=True), text, {}, "not stateful"),
        (damaged, text, {}, "line 1 of the text: expected finite vectors"),
    ):
        with pytest.raises(ConfigurationError, match=message):
            make_index(bilm, source, tmp_path / "index", **options)
        assert not (tmp_path / "index").exists()


@pytest.mark.parametrize(
    "damage, message",
    [
        (lambda folder: (folder / "index.json").unlink(), "is no index of contexts"),
        (lambda folder: (folder / "index.json").write_text("{"), "index.json cannot be read"),
        (
            lambda folder: (folder / "index.json").write_text('{"format_version": 2}'),
            "'dim' in index.json is missing or of another type",
        ),
        (lambda folder: os.truncate(folder / "text.txt", 9), "text.txt is missing or too short"),
        (
            lambda folder: (folder / "index.json").write_text('{"format_version": 9}'),
            "has the format 9 of another version",
        ),
        (lambda folder: (folder / "layer_2.npy").unlink(), "layer_2.npy is missing or too short"),
        (lambda folder: os.truncate(folder / "layer_1.npy", 200), "layer_1.npy is missing or"),
    ],
)
def test_a_damaged_index_is_named(shared_bilm, text, tmp_path, damage, message):
    folder = tmp_path / "index"
    make_index(shared_bilm, text, folder)
    damage(folder)
    with pytest.raises(ConfigurationError, match=message):
        ContextIndex(folder)
