"""
`allennlp predict`, as AllenNLP has it, for untrusted archives and files.

AllenNLP builds its command line before it imports plugins, so it never uses a sub-command that a
plugin registers as `predict`. Importing this module instead replaces names in AllenNLP's module,
which its sub-command looks up at every call.
"""

import argparse
import re
import sys
from functools import partial
from typing import Any, Iterator

from allennlp.commands import predict as allennlp_predict
from allennlp.common.util import JsonDict
from allennlp.data import Instance
from allennlp.predictors import Predictor
from overrides import overrides

from elmo_plugin.archives import load_archive
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.files import expanded
from elmo_plugin.util.text_files import Source, numbered_lines

# Compressed files that AllenNLP reads and `numbered_lines` does not.
_OTHER_COMPRESSIONS = (".bz2", ".xz")
# How errors of `TaskPredictor.load_line` begin.
_LINE = re.compile(r"^non-empty line \d+: ")

_get_predictor = allennlp_predict._get_predictor


class PredictManager(allennlp_predict._PredictManager):
    """
    Reads the input as UTF-8, with file and line in errors, and refuses an empty input. See AllenNLP
    for its parameters.
    """

    @property
    def _input_name(self) -> str:
        return "standard input" if self._input_file == "-" else self._input_file

    @overrides
    def _get_json_data(self) -> Iterator[JsonDict]:
        if self._input_file.endswith(_OTHER_COMPRESSIONS):
            yield from self._at_least_one(self._compressed_objects())
        else:
            yield from self._at_least_one(self._objects())

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
        is_empty = True
        for each in inputs:
            is_empty = False
            yield each
        if is_empty:
            raise ConfigurationError(
                f"{self._input_name}: expected at least one instance to predict, found none."
            )


def get_predictor(args: argparse.Namespace) -> Predictor:
    """AllenNLP's function, after a check of `--batch-size`, of which AllenNLP takes any value."""
    if args.batch_size < 1:
        raise ConfigurationError(f"Expected --batch-size of at least 1, found {args.batch_size}.")
    # Only a corpus is subject to the limits of the archive's reader; lines of JSON are not.
    allennlp_predict.load_archive = partial(load_archive, every_instance=args.use_dataset_reader)
    args.output_file = args.output_file and str(expanded(args.output_file))
    return _get_predictor(args)


allennlp_predict._get_predictor = get_predictor
allennlp_predict._PredictManager = PredictManager
