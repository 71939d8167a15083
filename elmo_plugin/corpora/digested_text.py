import hashlib
import os
from itertools import islice
from typing import Iterator, Sequence, Tuple, Union

from elmo_plugin.corpora.sentence_per_line import read_sentences
from elmo_plugin.util.errors import ConfigurationError


class DigestedText:
    """
    Reads the sentences of `paths` (see `read_sentences`) and digests those read so far. Resumed
    work compares the digest to check that it continues with the same text.
    """

    def __init__(self, paths: Sequence[Union[str, os.PathLike]]) -> None:
        self._paths = paths
        self._digest = hashlib.sha256()
        #: Numbers of the lines and of the words read so far.
        self.num_lines = self.num_tokens = 0

    @property
    def sha256(self) -> str:
        """The digest of the sentences read so far."""
        return self._digest.hexdigest()

    def sentences(self) -> Iterator[Tuple[int, Tuple[str, ...]]]:
        """Yields line numbers and words. Lines are numbered through all files."""
        for path in self._paths:
            for _, words in read_sentences(path):
                self._digest.update(f"{' '.join(words)}\n".encode())
                self.num_lines, self.num_tokens = self.num_lines + 1, self.num_tokens + len(words)
                yield self.num_lines, words

    def read_all(self) -> None:
        """Reads the whole text, for its digest and counts."""
        for _ in self.sentences():
            pass

    def skip(
        self,
        sentences: Iterator[Tuple[int, Tuple[str, ...]]],
        num_lines: int,
        sha256: str,
        folder: Union[str, os.PathLike],
    ) -> None:
        """
        Skips the finished lines of `sentences`. Raises `ConfigurationError`, which names `folder`,
        if their digest is not `sha256`.
        """
        for _ in islice(sentences, num_lines):
            pass
        if num_lines and self.sha256 != sha256:
            raise ConfigurationError(
                f"{folder} holds {num_lines} lines of another text: the first lines of the input "
                f"are not the same. Give the same input, name another output, or delete {folder}."
            )
