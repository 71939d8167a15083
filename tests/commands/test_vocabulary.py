import gzip
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


def test_undecodable_bytes_are_counted_when_asked_for(folder):
    (folder / "latin.txt").write_bytes(b"caf\xe9\n")
    run("latin.txt", "out.txt", "--decoding-errors", "replace")
    assert (folder / "out.txt").read_text().endswith("\ncaf\ufffd\t1\n")
