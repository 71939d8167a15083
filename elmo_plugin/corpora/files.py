"""Opens a text file wherever it lies: plain, compressed, or behind a URL."""

import gzip
import io
import os
import zlib
from typing import Iterator, Optional, TextIO, Tuple, Union

__all__ = ["find_file", "numbered_lines", "open_text"]

_GZIP_MAGIC = b"\x1f\x8b"


def find_file(path: Union[str, os.PathLike]) -> str:
    """
    The local file that a path or URL stands for.

    # Parameters

    path : `Union[str, os.PathLike]`
        A local path, or a string with `://` that `cached_path` understands (`https`, `hf`, `gs`
        …), which is downloaded once and kept. A member of an archive is written
        `https://host/archive.zip!folder/file`.

    # Returns

    `str`
        The path itself, its `.gz` twin when only that exists, or the downloaded copy.

    # Raises

    `FileNotFoundError`
        If neither the local file nor its twin exists.
    """
    path = os.fspath(path)
    if "://" in path:
        # Its import costs a second and many packages, which users of local files should not pay.
        from cached_path import cached_path

        return str(cached_path(path, extract_archive="!" in path))
    for candidate in (path, path + ".gz"):
        if os.path.exists(candidate):
            return candidate
    raise FileNotFoundError(
        f"No such file: looked for {path} and {path}.gz. If your corpora lie elsewhere, set the "
        "environment variable ELMO_DATA to the folder that holds them."
    )


def open_text(
    path: Union[str, os.PathLike], *, newline: Optional[str] = None, errors: str = "strict"
) -> TextIO:
    """
    Opens a file as UTF-8 text; a byte order mark at its start is dropped.

    # Parameters

    path : `Union[str, os.PathLike]`
        See `find_file`. Whether the file is compressed is seen from its first bytes.
    newline : `Optional[str]`, optional (default = `None`)
        As in the built-in `open`: `None` accepts every line ending, `"\\n"` only that one.
    errors : `str`, optional (default = `"strict"`)
        As in the built-in `open`: what becomes of bytes that are not UTF-8.

    # Returns

    `TextIO`
        The open file; closing it is up to the caller.

    # Raises

    `FileNotFoundError`
        If neither the local file nor its `.gz` twin exists.
    """
    binary = open(find_file(path), "rb")
    # A downloaded copy has lost its suffix, and a pipe cannot be read twice: look without reading.
    if binary.peek(len(_GZIP_MAGIC)).startswith(_GZIP_MAGIC):
        compressed = gzip.GzipFile(fileobj=binary)
        # What it closes along with itself.
        compressed.myfileobj = binary
        binary = compressed
    return io.TextIOWrapper(binary, encoding="utf-8-sig", errors=errors, newline=newline)


def numbered_lines(
    path: Union[str, os.PathLike], *, newline: Optional[str] = None, errors: str = "strict"
) -> Iterator[Tuple[int, str]]:
    """
    Streams the lines of a text file without their line ends. Memory grows with the longest line.

    # Parameters

    path : `Union[str, os.PathLike]`
        See `find_file`.
    newline : `Optional[str]`, optional (default = `None`)
        See `open_text`.
    errors : `str`, optional (default = `"strict"`)
        `"strict"` refuses a line that is not UTF-8 by its number; `"replace"` reads it with
        U+FFFD in place of the bad bytes.

    # Returns

    `Iterator[Tuple[int, str]]`
        The line's number, counted from 1, and its text.

    # Raises

    `ValueError`
        If a line is not UTF-8 and `errors` is strict, or if a compressed file is damaged.
    """
    strict = errors == "strict"
    number = 0
    # Decoding runs ahead of the lines in blocks, so a strict decoder could not name the line:
    # bad bytes are let through as lone surrogates, which valid UTF-8 never contains.
    with open_text(path, newline=newline, errors="surrogateescape" if strict else errors) as lines:
        try:
            for number, line in enumerate(lines, start=1):
                if strict and not line.isascii():
                    _refuse_surrogates(line, f"{path}:{number}")
                yield number, line.removesuffix("\n")
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(
                f"{path}:{number + 1}: expected compressed text, found a damaged or truncated "
                f"gzip file ({error}). Copy or download it again."
            ) from error


def _refuse_surrogates(line: str, place: str) -> None:
    try:
        line.encode("utf-8")
    except UnicodeEncodeError as error:
        byte = ord(line[error.start]) - 0xDC00
        raise ValueError(
            f"{place}: expected UTF-8 text, found the byte 0x{byte:02x} at character "
            f"{error.start + 1}. Convert the file to UTF-8."
        ) from error
