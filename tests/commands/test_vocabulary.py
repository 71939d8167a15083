import gzip
import os
from functools import partial

import pytest

from elmo_plugin.tasks.bilm.vocabulary import SoftmaxVocabulary, softmax_counts
from tests.commands import running


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("the owl saw the owl\n\nthe cat saw it\n")
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(b"the owl slept\n"))
    return tmp_path


run = partial(running.run, "elmo-vocabulary")
failure = partial(running.failure, "elmo-vocabulary")


def test_words_are_written_with_their_counts(folder, capsys):
    run("a.txt", "b.txt", "out.txt")
    assert (folder / "out.txt").read_text() == (
        "<S>\t3\n</S>\t3\n<UNK>\t0\nthe\t4\nowl\t3\nsaw\t2\ncat\t1\nit\t1\nslept\t1\n"
    )
    assert capsys.readouterr().out == (
        "out.txt: 9 words. Of 12 tokens in 3 sentences they cover 100.00%.\n"
    )


def test_patterns_sizes_and_counts_are_understood(folder, capsys):
    run("*.txt*", "out.txt", "--size", 6, "--min-count", 3)
    assert (folder / "out.txt").read_text() == "<S>\t3\n</S>\t3\n<UNK>\t5\nthe\t4\nowl\t3\n"
    assert "5 words. Of 12 tokens in 3 sentences they cover 58.33%" in capsys.readouterr().out


def test_the_file_is_a_vocabulary(folder):
    run("a.txt", "out.txt", "--size", 5)
    written = SoftmaxVocabulary.from_text(file="out.txt")
    counted = SoftmaxVocabulary.from_text(text="a.txt", size=5)
    assert softmax_counts(written) == softmax_counts(counted)
    assert written.get_token_to_index_vocabulary("softmax_labels") == (
        counted.get_token_to_index_vocabulary("softmax_labels")
    )


def test_a_file_is_only_replaced_when_asked(folder):
    run("a.txt", "out.txt")
    before = (folder / "out.txt").read_text()
    assert "out.txt exists. Give --force" in failure("b.txt", "out.txt")
    assert (folder / "out.txt").read_text() == before
    run("b.txt", "out.txt", "--force")
    assert (folder / "out.txt").read_text() != before


def test_the_folder_of_the_file_is_created(folder):
    run("a.txt", "new/folder/out.txt")
    assert (folder / "new/folder/out.txt").read_text().startswith("<S>\t")


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["nowhere*", "out.txt"], "`nowhere*` is no file"),
        (["a.txt", "."], ". is a folder"),
        (["a.txt", "a.txt/out.txt"], "a.txt/out.txt cannot be written"),
        (["a.txt", "out.txt", "--size", 3], "`size` of at least 4, found 3"),
        (["a.txt", "out.txt", "--min-count", 0], "`min_count` of at least 1, found 0"),
        (["empty.txt", "out.txt"], "found none in empty.txt"),
        (["a.txt", "out.txt", "--min-count", 9], "`min_count` of at most 3"),
        (["a.txt", "a.txt", "--force"], "a.txt is part of the input"),
        (["*.txt*", "b.txt.gz", "--force"], "b.txt.gz is part of the input"),
        (["damaged.gz", "out.txt"], "damaged.gz:2: expected compressed text"),
        (["latin.txt", "out.txt"], "latin.txt:2: expected UTF-8 text, found the byte 0xe9"),
        (["wide.txt", "out.txt"], "wide.txt:1: expected UTF-8 text, found the byte order mark"),
    ],
)
def test_what_a_user_can_cause_is_one_sentence(folder, arguments, message):
    (folder / "empty.txt").write_text("\n")
    (folder / "latin.txt").write_bytes(b"caf\ncaf\xe9\n")
    (folder / "wide.txt").write_text("They play\n", encoding="utf-16")
    (folder / "damaged.gz").write_bytes(gzip.compress(b"a b c\n")[:-9])
    assert message in failure(*arguments)
    assert not (folder / "out.txt").exists()


def test_undecodable_bytes_are_counted_when_asked_for(folder):
    (folder / "latin.txt").write_bytes(b"caf\xe9\n")
    run("latin.txt", "out.txt", "--decoding-errors", "replace")
    assert (folder / "out.txt").read_text().endswith("\ncaf\ufffd\t1\n")


def test_a_folder_without_permission_is_named_before_the_text_is_read(folder, monkeypatch):
    # Whoever runs tests as root may write everywhere.
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    message = failure("a.txt", "out.txt")
    assert message.endswith(f"out.txt cannot be written: you may not write in {folder}.")


def test_interrupted_it_leaves_nothing(folder, monkeypatch, capsys):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("elmo_plugin.bilm.vocabulary_file.choose_words", interrupted)
    shown = running.interruption(capsys, "elmo-vocabulary", "a.txt", "out.txt")
    assert shown.endswith("allennlp elmo-vocabulary: stopped, nothing was written.\n")
    assert not list(folder.glob("out*"))


def test_help_shows_an_example(capsys):
    with pytest.raises(SystemExit):
        run("--help")
    assert "--size 100000" in capsys.readouterr().out
