"""`allennlp predict`, as AllenNLP starts it, with this plugin."""

import bz2
import gzip
import json
import os
import socket
import subprocess
import sys

import pytest
from allennlp.models import archival

from elmo_plugin.corpora.conll2003 import read_sentences
from tests.commands.running import refusal, run
from tests.tagger import CORPUS, LINES, answers, repack

SENTENCES = sum(1 for _ in read_sentences(CORPUS))


def predict(archive, input_file, out, *arguments):
    run("predict", archive, input_file, "--silent", "--output-file", out, *arguments)
    return out.read_text(encoding="utf-8").splitlines(keepends=True)


def refused(archive, input_file, tmp_path, *arguments):
    settings = ("--silent", "--output-file", tmp_path / "out.jsonl", *arguments)
    return refusal("predict", archive, input_file, *settings)


@pytest.mark.parametrize("arguments", [(), ("--batch-size", 3)])
def test_lines_are_answered_as_allennlp_does(tagger, tmp_path, arguments):
    expected = answers(archival.load_archive(tagger))
    written = predict(tagger, LINES, tmp_path / "out", *arguments)
    assert written == expected


def test_every_instance_of_a_corpus_is_answered_unless_the_call_says_otherwise(tagger, tmp_path):
    given = (tagger, CORPUS, tmp_path / "out", "--use-dataset-reader", "--batch-size", 8)
    whole = predict(*given)
    assert len(whole) == SENTENCES > 5
    assert predict(*given, "--dataset-reader-choice", "train") == whole
    limit = '{"validation_dataset_reader.max_instances": 2}'
    assert predict(*given, "-o", limit) == whole[:2]


def test_standard_input_is_read_from_where_it_is(tagger, tmp_path, monkeypatch):
    """As a shell leaves it: after `read` has taken a line from a redirected file."""
    first, rest = LINES.read_bytes().split(b"\n", 1)
    expected = predict(tagger, LINES, tmp_path / "expected")[1:]
    (tmp_path / "compressed").write_bytes(first + b"\n" + gzip.compress(rest))
    for path in (LINES, tmp_path / "compressed"):
        with open(path) as stdin:
            os.lseek(stdin.fileno(), len(first) + 1, os.SEEK_SET)
            monkeypatch.setattr(sys, "stdin", stdin)
            assert predict(tagger, "-", tmp_path / "out") == expected
            assert "standard input: expected at least one" in refused(tagger, "-", tmp_path)


def test_a_socket_is_read_as_standard_input_and_called_so(tagger, tmp_path, monkeypatch):
    ours, theirs = socket.socketpair()
    with ours, theirs, theirs.makefile() as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        ours.sendall(LINES.read_bytes() + b"\n\xff\n{\n")
        ours.close()
        message = refused(tagger, "-", tmp_path)
    number = len(LINES.read_bytes().splitlines()) + 2
    assert message.startswith(f"standard input:{number}: expected UTF-8 text, found the byte 0xff")


def test_compressed_input_is_read_under_any_name(tagger, tmp_path):
    for name in ("lines.jsonl.gz", "lines.jsonl"):
        (tmp_path / name).write_bytes(gzip.compress(LINES.read_bytes()))
        assert predict(tagger, tmp_path / name, tmp_path / "out") == predict(
            tagger, LINES, tmp_path / "expected"
        )


@pytest.mark.parametrize(
    "encoding, place, found",
    [("latin-1", ":2", "the byte 0xef"), ("utf-16", ":1", "the byte order mark")],
)
def test_input_that_is_not_utf_8_is_named(tagger, tmp_path, encoding, place, found):
    file = tmp_path / "lines.jsonl"
    file.write_bytes('{"sentence": "Hello ."}\n{"sentence": "naïve"}\n'.encode(encoding))
    message = refused(tagger, file, tmp_path)
    assert message.startswith(f"{file}{place}: expected UTF-8 text, found {found}")


def test_a_malformed_line_is_named_by_file_and_line(tagger, tmp_path):
    (tmp_path / "lines.jsonl").write_text('\n{"sentence": "Hello ."}\n{"sentence"\n')
    message = refused(tagger, tmp_path / "lines.jsonl", tmp_path)
    assert f"{tmp_path}/lines.jsonl:3: expected a JSON object" in message
    (tmp_path / "lines.bz2").write_bytes(bz2.compress(b'{"sentence"\n'))
    message = refused(tagger, tmp_path / "lines.bz2", tmp_path)
    assert message.startswith(f"{tmp_path}/lines.bz2: non-empty line 1: expected a JSON object")


@pytest.mark.parametrize("content", ["", "\n  \n"])
def test_empty_input_is_refused(tagger, tmp_path, content):
    (tmp_path / "empty").write_text(content)
    message = refused(tagger, tmp_path / "empty", tmp_path)
    assert message.endswith("/empty: expected at least one instance to predict, found none.")


@pytest.mark.parametrize("size", [0, -3])
def test_a_batch_size_below_1_is_refused(tagger, tmp_path, size):
    message = refused(tagger, LINES, tmp_path, f"--batch-size={size}")
    assert message == f"Expected --batch-size of at least 1, found {size}."


def test_missing_input_is_named(tagger, tmp_path):
    assert f"{tmp_path}/none" in refused(tagger, tmp_path / "none", tmp_path)


def test_nothing_in_an_untrusted_archive_is_executed(tagger, tmp_path):
    def change(config):
        config["model"]["type"] = "subprocess.Popen"

    evil = repack(tagger, tmp_path / "evil.tar.gz", change)
    message = refused(evil, LINES, tmp_path)
    assert "(model.type in config.json) is refused: expected the registered name" in message
    assert "does not exist" in refused(tmp_path / "none.tar.gz", LINES, tmp_path)


def test_allennlp_uses_it_though_it_imports_plugins_late(tagger, tmp_path):
    """The command itself: tests have imported the plugin before AllenNLP builds its parser."""
    (tmp_path / "empty").touch()
    command = [sys.executable, "-m", "allennlp", "predict", tagger, tmp_path / "empty"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    message = "expected at least one instance to predict, found none."
    assert done.stderr.splitlines()[-1].endswith(message)


def test_its_output_is_shown_as_allennlp_shows_it(tagger, tmp_path, capsys):
    (tmp_path / "line").write_text('{"tokens": ["Oslo"]}')
    run("predict", tagger, tmp_path / "line")
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == 'input 0:  {"tokens": ["Oslo"]}'
    assert json.loads(shown[1].removeprefix("prediction:  "))["tokens"] == ["Oslo"]
