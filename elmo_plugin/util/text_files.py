"""Opens text files: plain or gzip, local or at a URL."""

import codecs
import gzip
import io
import os
import zlib
from typing import Iterator, Optional, TextIO, Tuple, Union

from elmo_plugin.util.files import local_path

# A path or a URL, or an open binary file: standard input, or a file within an archive.
Source = Union[str, os.PathLike, io.BufferedReader]
_Peekable = Union[io.BufferedReader, gzip.GzipFile]

# The values of `decoding_errors`, for bytes that are not UTF-8; the built-in `open` has more.
DECODING_ERRORS = ("strict", "replace")

_GZIP_MAGIC = b"\x1f\x8b"
_NUM_PEEKED = 1024
# UTF-32 before UTF-16, whose byte order mark is a prefix.
_OTHER_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)


def find_file(path: Union[str, os.PathLike]) -> str:
    """
    The local file of a path or URL (see `local_path`): the path itself, the path with `.gz`
    appended if only that exists, or the downloaded copy.

    # Raises

    `FileNotFoundError`
        If neither local file exists.
    """
    path = os.fspath(path)
    if "://" in path:
        return local_path(path)
    path = os.path.expanduser(path)
    for candidate in (path, path + ".gz"):
        if os.path.exists(candidate):
            return candidate
    raise FileNotFoundError(
        f"No such file: looked for {path} and {path}.gz. Correct the path, or ELMO_DATA if it is a "
        "corpus of an experiment."
    )


def open_text(
    path: Source, *, newline: Optional[str] = None, decoding_errors: str = "strict"
) -> TextIO:
    """
    Opens a file as UTF-8 text; a byte order mark at its start is dropped.

    # Parameters

    path : `Union[str, os.PathLike, io.BufferedReader]`
        See `find_file`; or an open binary file such as standard input. Compression is detected by
        the first bytes.
    newline : `Optional[str]`, optional (default = `None`)
        As in the built-in `open`: `None` accepts every line ending, `"\\n"` only that one.
    decoding_errors : `str`, optional (default = `"strict"`)
        As in the built-in `open`: how bytes that are not UTF-8 are handled.

    # Returns

    `TextIO`
        The open file. Closing it, which is left to the caller, also closes a given binary file.

    # Raises

    `FileNotFoundError`
        If neither the local file nor its `.gz` version exists.
    `IsADirectoryError`
        If it is a folder.
    `ValueError`
        If the file is UTF-16 or UTF-32.
    """
    binary: _Peekable
    if isinstance(path, io.BufferedReader):
        binary = path
    else:
        found = find_file(path)
        if os.path.isdir(found):
            raise IsADirectoryError(f"{found} is a folder; expected a text file.")
        binary = open(found, "rb")
    # Downloaded copies have no suffix, and a pipe can be read only once, so peek.
    if binary.peek(len(_GZIP_MAGIC)).startswith(_GZIP_MAGIC):
        compressed = gzip.GzipFile(fileobj=binary)
        # Closed together with the gzip file.
        compressed.myfileobj = binary  # type: ignore[assignment]  # Any file does.
        binary = compressed
    _refuse_wide_encodings(binary, _name(path))
    return io.TextIOWrapper(binary, encoding="utf-8-sig", errors=decoding_errors, newline=newline)


def numbered_lines(
    path: Source, *, newline: Optional[str] = None, decoding_errors: str = "strict"
) -> Iterator[Tuple[int, str]]:
    """
    Streams the lines of a text file without their line ends. Memory grows with the longest line.

    # Parameters

    path, newline
        See `open_text`.
    decoding_errors : `str`, optional (default = `"strict"`)
        `"strict"` raises an error with the line number if a line is not UTF-8; `"replace"` reads
        U+FFFD in place of invalid bytes.

    # Returns

    `Iterator[Tuple[int, str]]`
        The line number, counted from 1, and the text.

    # Raises

    `ValueError`
        If a line is not UTF-8 and `decoding_errors` is strict, if the file is UTF-16 or UTF-32, or
        if a compressed file is damaged. Also raises what `open_text` raises.
    """
    strict = decoding_errors == "strict"
    number = 0
    # Text is decoded in blocks, so a strict decoder could not name the line. Instead, invalid bytes
    # are decoded as lone surrogates, which never occur in valid UTF-8, and found line by line.
    decoding = "surrogateescape" if strict else decoding_errors
    try:
        with open_text(path, newline=newline, decoding_errors=decoding) as lines:
            for number, line in enumerate(lines, start=1):
                if strict and not line.isascii():
                    _refuse_surrogates(line, f"{_name(path)}:{number}")
                yield number, line.removesuffix("\n")
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(
            f"{_name(path)}:{number + 1}: expected compressed text, found a damaged or truncated "
            f"gzip file ({error}). Copy or download it again."
        ) from error


def _name(path: Source) -> str:
    """The name in error messages."""
    if not isinstance(path, io.BufferedReader):
        return os.fspath(path)
    # The name of a file that was opened by its descriptor is a number.
    name = getattr(path, "name", None)
    return name if isinstance(name, str) else "standard input"


def _refuse_wide_encodings(binary: _Peekable, name: str) -> None:
    """
    Detects UTF-16 and UTF-32 by the byte order mark, or by many NUL bytes: every second byte of
    English text in UTF-16 is NUL, which is valid UTF-8, so that decoding would not fail.
    """
    first = binary.peek(_NUM_PEEKED)[:_NUM_PEEKED]
    marks = (name for mark, name in _OTHER_BYTE_ORDER_MARKS if first.startswith(mark))
    encoding = next(marks, None)
    found = f"the byte order mark of {encoding}"
    if encoding is None and 3 * first.count(0) > len(first):
        encoding = "UTF-16LE" if first[1:2] == b"\0" else "UTF-16BE"
        found = f"{first.count(0)} NUL bytes among the first {len(first)}, as in {encoding}"
    if encoding is not None:
        binary.close()
        raise ValueError(
            f"{name}:1: expected UTF-8 text, found {found}. Convert it to UTF-8: "
            f"iconv -f {encoding} -t UTF-8 OLD > NEW"
        )


def _refuse_surrogates(line: str, location: str) -> None:
    try:
        line.encode("utf-8")
    except UnicodeEncodeError as error:
        byte = ord(line[error.start]) - 0xDC00
        raise ValueError(
            f"{location}: expected UTF-8 text, found the byte 0x{byte:02x} at character "
            f"{error.start + 1}. Convert the file to UTF-8."
        ) from error
