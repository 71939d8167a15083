"""How `allennlp predict` reads its input; see `elmo_plugin.allennlp_patches`."""

import re
import sys
from typing import Any, Iterator

from allennlp.commands.predict import _PredictManager
from allennlp.common.util import JsonDict
from allennlp.data import Instance
from overrides import overrides

from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.text_files import Source, numbered_lines

# Compressed files that AllenNLP reads and `numbered_lines` does not.
_OTHER_COMPRESSIONS = (".bz2", ".xz")
# The beginning of errors of `TaskPredictor.load_line`.
_LINE = re.compile(r"^non-empty line \d+: ")


class PredictManager(_PredictManager):
    """Reads the input as UTF-8, with file and line in errors, and refuses an empty input."""

    @property
    def _input_name(self) -> str:
        return "standard input" if self._input_file == "-" else self._input_file

    @overrides
    def _get_json_data(self) -> Iterator[JsonDict]:
        is_other = self._input_file.endswith(_OTHER_COMPRESSIONS)
        yield from self._at_least_one(self._compressed_objects() if is_other else self._objects())

    @overrides
    def _get_instance_data(self) -> Iterator[Instance]:
        yield from self._at_least_one(super()._get_instance_data())

    def _objects(self) -> Iterator[JsonDict]:
        source: Source = self._input_file
        if source == "-":
            # Not as a path such as /dev/stdin, which would reopen a redirected file at its start.
            source = open(sys.stdin.fileno(), "rb", closefd=False)
        for number, line in numbered_lines(source):
            if line and not line.isspace():
                try:
                    yield self._predictor.load_line(f"{line}\n")
                except ValueError as error:
                    reason = _LINE.sub("", str(error))
                    raise ValueError(f"{self._input_name}:{number}: {reason}") from error

    def _compressed_objects(self) -> Iterator[JsonDict]:
        try:
            yield from super()._get_json_data()
        except ValueError as error:
            raise ValueError(f"{self._input_name}: {error}") from error

    def _at_least_one(self, inputs: Iterator[Any]) -> Iterator[Any]:
        first = next(inputs, None)
        if first is None:
            raise ConfigurationError(
                f"{self._input_name}: expected at least one instance to predict, found none."
            )
        yield first
        yield from inputs
