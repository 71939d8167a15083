import gzip
import os
import pickle

import pytest

from elmo_plugin.util import files
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.text_files import DecodedPath, find_file, numbered_lines

TEXT = "Straße\nnaïve 🦉\n"


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
@pytest.mark.parametrize("name", ["text.txt", "text.gz", "no-suffix"])
def test_compression_is_seen_from_the_content(tmp_path, compress, name):
    path = tmp_path / name
    path.write_bytes(compress(TEXT.encode("utf-8")))
    assert list(numbered_lines(path)) == [(1, "Straße"), (2, "naïve 🦉")]


def test_the_gz_twin_is_read_only_when_the_plain_file_is_absent(tmp_path, monkeypatch):
    plain = tmp_path / "text.txt"
    with pytest.raises(FileNotFoundError, match=f"{plain} and {plain}.gz. .* ELMO_DATA"):
        find_file(plain)
    (tmp_path / "text.txt.gz").write_bytes(gzip.compress(b"twin\n"))
    assert list(numbered_lines(plain)) == [(1, "twin")]
    plain.write_text("plain\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert list(numbered_lines("~/text.txt")) == [(1, "plain")]


@pytest.mark.posix
def test_a_compressed_pipe_is_read(tmp_path):
    read, write = os.pipe()
    os.write(write, gzip.compress("naïve text\n".encode()))
    os.close(write)
    assert [line for _, line in numbered_lines(f"/dev/fd/{read}")] == ["naïve text"]
    os.close(read)


def test_a_url_is_downloaded_and_others_are_not_found(tmp_path, monkeypatch):
    copy = tmp_path / "0123abc"
    copy.write_bytes(gzip.compress(b"downloaded\n"))
    monkeypatch.setattr(files, "download", lambda url: copy)
    assert list(numbered_lines("https://host/a.txt")) == [(1, "downloaded")]
    assert list(numbered_lines(f"file://{copy}")) == [(1, "downloaded")]
    with pytest.raises(FileNotFoundError, match="s3://bucket/a.txt"):
        next(numbered_lines("s3://bucket/a.txt"))


@pytest.mark.parametrize(
    "content, newline, lines",
    [
        ("\ufeffone\n\ufefftwo", None, ["one", "\ufefftwo"]),
        ("a\r\nb\rc\x0bd\n\ne", None, ["a", "b", "c\x0bd", "", "e"]),
        ("a\r\nb\rc\x0bd\n\ne", "\n", ["a\r", "b\rc\x0bd", "", "e"]),
        ("nul \0 inside\n", None, ["nul \0 inside"]),
        ("", None, []),
    ],
)
def test_lines_end_where_they_should(tmp_path, content, newline, lines):
    path = tmp_path / "text.txt"
    path.write_bytes(content.encode("utf-8"))
    assert [line for _, line in numbered_lines(path, newline=newline)] == lines


def test_undecodable_bytes_can_be_replaced(tmp_path):
    path = tmp_path / "text.txt"
    path.write_bytes(b"caf\xe9 \xff\n")
    replaced = pickle.loads(pickle.dumps(DecodedPath(str(path), "replace")))
    assert list(numbered_lines(replaced)) == [(1, "caf\ufffd \ufffd")]
    with pytest.raises(ValueError, match=f"{path}:1: .* the byte 0xe9 at character 4. Convert"):
        list(numbered_lines(DecodedPath(str(path), "strict")))
    with pytest.raises(ConfigurationError, match="one of strict, replace, found 'ignore'"):
        DecodedPath(str(path), "ignore")


@pytest.mark.parametrize("damage", [lambda data: data[:-12], lambda data: data[:40] + data[80:]])
def test_a_damaged_gzip_file_is_named(tmp_path, damage):
    path = tmp_path / "text.gz"
    text = "".join(f"line {number}\n" for number in range(100))
    path.write_bytes(damage(gzip.compress(text.encode("utf-8"))))
    with pytest.raises(ValueError) as error:
        list(numbered_lines(path))
    assert "found a damaged or truncated gzip file" in str(error.value)
    assert str(error.value).startswith(f"{path}:")


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("written", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_utf_16_and_32_are_refused(tmp_path, written, pack):
    path = tmp_path / "text.txt"
    path.write_bytes(pack("\ufeff日本語\n".encode(written)))
    with pytest.raises(ValueError, match=f"^{path}:1: expected UTF-8 text, found the byte 0xf[ef]"):
        list(numbered_lines(path))
