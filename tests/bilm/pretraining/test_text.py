import gzip
import tracemalloc
from random import Random

import pytest

from elmo_plugin.bilm.pretraining.text import Text, decoded, find_shards
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.text_files import DecodedPath


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(path, text):
    path.parent.mkdir(exist_ok=True)
    data = text if isinstance(text, bytes) else text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return str(path)


def joined(text, order=None):
    return [" ".join(words) for words in text.sentences(order)]


def test_a_path_may_be_a_file_its_gz_twin_a_pattern_or_a_folder(folder):
    names = ("news/b.txt", "news/a.txt", "news/a.txt.gz", "news/c.txt.gz", "news/.hidden")
    for name in (*names, "other.txt"):
        write(folder / name, name)
    (folder / "news" / "inner").mkdir()
    assert find_shards("news/b.txt") == ["news/b.txt"]
    assert find_shards("news/c.txt") == ["news/c.txt.gz"]
    assert find_shards("news/*.txt") == ["news/a.txt", "news/b.txt"]
    assert find_shards("**/*.txt") == ["news/a.txt", "news/b.txt", "other.txt"]
    assert find_shards(folder / "news") == [
        str(folder / "news" / name) for name in ("a.txt", "b.txt", "c.txt.gz")
    ]


def test_several_paths_are_a_list_or_have_commas_between_and_no_file_comes_twice(
    folder, monkeypatch
):
    for name in ("a.txt", "b.txt", "c,d.txt", "e[1].txt"):
        write(folder / name, name)
    assert find_shards(["b.txt", "a.txt"]) == ["a.txt", "b.txt"]
    assert find_shards("b.txt, a.txt") == ["a.txt", "b.txt"]
    assert find_shards(["b.txt", "?.txt"]) == ["a.txt", "b.txt"]
    monkeypatch.setenv("HOME", str(folder))
    assert find_shards("~/a.txt,~/b.*") == [str(folder / "a.txt"), str(folder / "b.txt")]
    # Names that only look like lists and patterns.
    assert find_shards("c,d.txt") == ["c,d.txt"]
    assert find_shards("e[1].txt") == ["e[1].txt"]
    assert find_shards("https://host/a.txt") == ["https://host/a.txt"]


def test_the_files_of_a_path_are_decoded_as_the_path(folder):
    for name in ("a.txt", "b.txt", "c.txt.gz"):
        write(folder / name, b"caf\xe9\n")
    for path in ("*.txt*", folder, "a.txt,b.txt,c.txt", ["a.txt", "[bc].*"]):
        shards = find_shards(decoded(path, "replace"))
        assert [shard.decoding_errors for shard in shards] == ["replace"] * 3
        assert list(map(str, shards)) == find_shards(path)
        assert find_shards(shards) == shards
        assert joined(Text(shards)) == ["caf\ufffd"] * 3


@pytest.mark.parametrize("path", ["nowhere.txt", "*.txt", "empty", "a.log,nowhere.txt"])
def test_a_path_that_stands_for_nothing_is_refused(folder, path):
    (folder / "empty").mkdir()
    write(folder / "a.log", "a")
    with pytest.raises(
        ConfigurationError, match=f"`{path.split(',')[-1]}` is no file".replace("*", r"\*")
    ):
        find_shards(path)
    with pytest.raises(ConfigurationError, match="empty list"):
        find_shards([])


def test_unshuffled_text_is_read_as_it_stands(folder):
    write(folder / "2.txt", "d\n\ne  f\n")
    write(folder / "1.txt.gz", "a b\n \nc")
    assert joined(Text("*.txt*")) == ["a b", "c", "d", "e f"]


def test_odd_text_is_read(folder):
    path = write(
        folder / "odd.txt",
        "\ufeffbyte order\r\nn\0l \0\n\r\n\U0001f989\u200d שלום\nline\u2028end\n".encode()
        + b"caf\xe9\n" + b"x" * 10_000,
    )  # fmt: skip
    assert joined(Text(DecodedPath(path, "replace"))) == [
        "byte order", "n\0l \0", "\U0001f989\u200d שלום", "line end", "caf\ufffd", "x" * 10_000,
    ]  # fmt: skip


def test_long_lines_are_cut_into_sentences(folder):
    path = write(folder / "a.txt", "a b c d e f g\nh i j\nk\n")
    assert joined(Text(path, max_tokens=3)) == ["a b c", "d e f", "g", "h i j", "k"]
    assert joined(Text(path)) == ["a b c d e f g", "h i j", "k"]


@pytest.mark.parametrize("shuffle_lines", [1, 2, 10, 1000])
def test_shuffling_keeps_every_line_and_follows_the_seed(folder, shuffle_lines):
    lines = [f"{shard} {line}" for shard in "abcde" for line in range(20)]
    for shard in "abcde":
        write(folder / f"{shard}.txt", "\n".join(line for line in lines if line[0] == shard))
    text = Text("*.txt", shuffle_lines)
    orders = [joined(text, Random(seed)) for seed in (1, 1, 2)]
    assert all(sorted(order) == sorted(lines) for order in orders)
    assert orders[0] == orders[1] != orders[2]
    assert orders[0] != lines


def test_memory_does_not_grow_with_the_text(folder):
    path = write(folder / "a.txt", "some words of a sentence\n" * 100_000)
    tracemalloc.start()
    assert sum(1 for _ in Text(path, shuffle_lines=1000).sentences(Random(0))) == 100_000
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1_000_000
