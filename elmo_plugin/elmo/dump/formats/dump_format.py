from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, Callable, Dict, Optional, Sequence, Tuple

from elmo_plugin.elmo.dump.parts import DumpOptions
from elmo_plugin.util.errors import ConfigurationError


class DumpFormat(ABC):
    """A format of files that `DumpFile.finish` can write."""

    #: The suffix of its files.
    suffix: str
    #: Whether the format stores the map from sentences to lines.
    has_index = True
    #: What its files can be compressed by.
    compressions: Tuple[str, ...] = ()

    def check(self, options: DumpOptions) -> None:
        """
        # Raises

        `ConfigurationError`
            If the format cannot do what the options ask for.
        `ImportError`
            If a package that writes it is not installed.
        """
        if options.compression not in (None, *self.compressions):
            known = " or ".join(self.compressions)
            advice = (
                f"is compressed by {known}. Change it, or leave it out."
                if known
                else "has no compression. Leave it out, or replace it by --half."
            )
            raise ConfigurationError(f"--compression {options.compression}: {self.suffix} {advice}")

    def limit(self, path: Path) -> Callable[[str], None]:
        """
        A function to call with the name of each sentence of a text, before vectors are computed;
        it raises `ConfigurationError` when the file `path` could not hold so many names.
        """
        return lambda name: None

    @abstractmethod
    def write(
        self, path: Path, parts: Sequence[Path], attributes: Dict[str, Any], index: Optional[str]
    ) -> int:
        """
        # Parameters

        path : `Path`
            The file to write.
        parts : `Sequence[Path]`
            In the order of their lines, see `read_part`; at least one.
        attributes : `Dict[str, Any]`
            Of the file: strings, numbers and booleans, with `dtype`, `sentence_keys` and
            `compression` (`none` or one of `compressions`) among them.
        index : `Optional[str]`
            The map from sentences to lines as JSON, if it is to be stored.

        # Returns

        `int`
            The number of sentences in the file.

        # Raises

        `ConfigurationError`
            If a part is damaged.
        `OSError`
            If reading or writing fails.
        """

    @abstractmethod
    def read_attributes(self, path: Path) -> Optional[Dict[str, Any]]:
        """
        What `write` was given as attributes, as they are or as strings, and `num_datasets`, which
        it returned; `None` if the file was not written by `write`.
        """
