"""Reads text files: plain or gzip, local or at a URL. All text enters through `numbered_lines`."""

import gzip
import io
import os
import zlib
from dataclasses import dataclass
from typing import Iterator, Optional, TextIO, Tuple, Union

from elmo_plugin.util.errors import check_one_of
from elmo_plugin.util.files import STDIN_PATH, is_pipe, local_path

# A path or a URL.
FilePath = Union[str, os.PathLike]
# Or an open binary file: standard input, or a member of an archive.
Source = Union[FilePath, io.BufferedReader]

# How bytes that are not UTF-8 are decoded; the built-in `open` has more.
DECODING_ERRORS = ("strict", "replace")
# How the vectors of a line become one, see `pooled`.
POOLS = ("mean", "max", "first_last")

_GZIP_MAGIC = b"\x1f\x8b"


@dataclass(frozen=True)
class DecodedPath(os.PathLike):
    """
    A path, and what to do with bytes that are not UTF-8: `replace` reads U+FFFD; `strict`, as for
    other paths, raises an error with their place. Anything else is a `ConfigurationError`.
    """

    path: str
    decoding_errors: str
    #: The language of raw text, which readers split into words by `tokenizer_of`.
    tokenize: Optional[str] = None

    def __post_init__(self) -> None:
        check_one_of(DECODING_ERRORS, decoding_errors=self.decoding_errors)

    def __fspath__(self) -> str:
        return self.path

    __str__ = __fspath__


def language_of(path: Source) -> Optional[str]:
    """The language of the raw text at a `DecodedPath`; `None` if the text is tokenised."""
    return path.tokenize if isinstance(path, DecodedPath) else None


def has_suffix(path: FilePath, *suffixes: str) -> bool:
    """Whether a name ends in one of the suffixes, perhaps with `.gz` after it."""
    return os.fspath(path).lower().removesuffix(".gz").endswith(suffixes)


def find_file(path: FilePath) -> str:
    """
    The local file of a path or URL (see `local_path`): the path itself, or `PATH.gz` if only that
    exists, or the downloaded copy. Raises `FileNotFoundError` if there is none.
    """
    path = os.fspath(path)
    if "://" in path:
        return local_path(path)
    path = os.path.expanduser(path)
    for candidate in (path, path + ".gz"):
        if os.path.exists(candidate) or is_pipe(candidate):
            return candidate
    raise FileNotFoundError(
        f"No such file: looked for {path} and {path}.gz. Correct the path, or ELMO_DATA if it is a "
        "corpus of an experiment."
    )


def numbered_lines(path: Source, *, newline: Optional[str] = None) -> Iterator[Tuple[int, str]]:
    """
    Streams the number (from 1) and the text of each line of a UTF-8 file, plain or gzip. Line ends
    and a byte order mark at the start are dropped. RAM grows with the longest line.

    `path` is a path or URL (see `find_file`), a `DecodedPath`, or an open binary file such as
    standard input, which is closed at the end. `newline` is as in `open`: `None` accepts every line
    ending, `"\\n"` only that one.

    Raises `OSError` if there is no such file, or it is a folder, and `ValueError` if a line is not
    UTF-8 or the gzip data is damaged.
    """
    errors = path.decoding_errors if isinstance(path, DecodedPath) else "strict"
    strict = errors == "strict"
    number = 0
    # A strict decoder could not name the line: it decodes in blocks. So invalid bytes become lone
    # surrogates, which valid UTF-8 never contains, and each line is searched for them.
    try:
        with _open(path, newline, "surrogateescape" if strict else errors) as lines:
            for number, line in enumerate(lines, start=1):
                if strict and not line.isascii():
                    _refuse_surrogates(line, f"{_name(path)}:{number}")
                yield number, line.removesuffix("\n")
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(
            f"{_name(path)}:{number + 1}: expected compressed text, found a damaged or truncated "
            f"gzip file ({error}). Copy or download it again."
        ) from error


def _open(path: Source, newline: Optional[str], errors: str) -> TextIO:
    binary: Union[io.BufferedReader, gzip.GzipFile]
    if isinstance(path, io.BufferedReader):
        binary = path
    else:
        found = find_file(path)
        if os.path.isdir(found):
            raise IsADirectoryError(f"{found} is a folder; expected a text file.")
        # Windows has no path of standard input.
        is_path = found != STDIN_PATH or os.path.exists(found)
        binary = open(found if is_path else 0, "rb", closefd=is_path)
    # Downloaded copies have no suffix, and a pipe can be read only once, so peek.
    if binary.peek(len(_GZIP_MAGIC)).startswith(_GZIP_MAGIC):
        compressed = gzip.GzipFile(fileobj=binary)
        # Closed together with the gzip file.
        compressed.myfileobj = binary  # type: ignore[assignment]  # Any file does.
        binary = compressed
    return io.TextIOWrapper(binary, encoding="utf-8-sig", errors=errors, newline=newline)


def _name(path: Source) -> str:
    if not isinstance(path, io.BufferedReader):
        return os.fspath(path)
    # The name of a file that was opened by its descriptor is a number.
    name = getattr(path, "name", None)
    return name if isinstance(name, str) else "standard input"


def _refuse_surrogates(line: str, location: str) -> None:
    try:
        line.encode("utf-8")
    except UnicodeEncodeError as error:
        byte = ord(line[error.start]) - 0xDC00
        raise ValueError(
            f"{location}: expected UTF-8 text, found the byte 0x{byte:02x} at character "
            f"{error.start + 1}. Convert the file to UTF-8."
        ) from error
