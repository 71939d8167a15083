import json
import os
from typing import Any, BinaryIO, Dict, List, Optional, Set

from allennlp.common.util import JsonDict
from allennlp.data import DatasetReader, Instance
from allennlp.models import Model
from allennlp.predictors import Predictor
from overrides import overrides

from elmo_plugin.corpora.json_lines import parse_object
from elmo_plugin.util.errors import ConfigurationError

_EXAMPLE = '{"passage": "Ada lives in London.", "question": "Where does Ada live?"}'


@Predictor.register("elmo-squad")
class SquadPredictor(Predictor):
    """
    Answers questions with words of a passage.

    A line of input is JSON: `{"passage": "Ada lives in London.", "question": "Where does Ada
    live?"}`, to which an `"id"` may be added. With `--use-dataset-reader` the input is a file of
    SQuAD's.

    # Parameters

    model : `Model`
    dataset_reader : `DatasetReader`
    official_file : `Optional[str]`, optional (default = `None`)
        Where to write the answers as SQuAD's own script reads them too, one JSON object of ids and
        answers; every question has to have an id then. The file is whole after each question.

    # Raises

    `ConfigurationError`
        If the file's folder is not there.
    """

    def __init__(
        self, model: Model, dataset_reader: DatasetReader, official_file: Optional[str] = None
    ) -> None:
        super().__init__(model, dataset_reader)
        self._official = None if official_file is None else _OfficialFile(official_file)
        self._num_lines = 0

    def predict(self, question: str, passage: str) -> JsonDict:
        """Answers one question; see `predict_batch_instance` for the result."""
        return self.predict_json({"passage": passage, "question": question})

    @overrides
    def predict_instance(self, instance: Instance) -> JsonDict:
        return self.predict_batch_instance([instance])[0]

    @overrides
    def predict_batch_instance(self, instances: List[Instance]) -> List[JsonDict]:
        """
        # Returns

        `List[JsonDict]`
            For each question its `id`, where it has one; the best `answer`, between which
            characters of the passage it stands, `start` and `end`, so that
            `passage[start:end] == answer`, and its `probability`; and the same four things of the
            best few answers in `n_best`, best first.
        """
        if not instances:
            return []
        for instance in instances:
            self._dataset_reader.apply_token_indexers(instance)
        return [_answered(output) for output in self._model.forward_on_instances(instances)]

    @overrides
    def load_line(self, line: str) -> JsonDict:
        """
        # Raises

        `ValueError`
            If the line is not JSON, lacks a passage or a question, or lacks an id of its own where
            the official file needs it; with its number.
        """
        self._num_lines += 1
        place = f"non-empty line {self._num_lines}"
        fields = _checked(parse_object(line, place, _EXAMPLE), place)
        if self._official is not None:
            self._official.reserve(fields.get("id"), place)
        return fields

    @overrides
    def dump_line(self, outputs: JsonDict) -> str:
        if self._official is not None:
            self._official.add(outputs["id"], outputs["answer"])
        return json.dumps(outputs, ensure_ascii=False) + "\n"

    @overrides
    def _json_to_instance(self, json_dict: JsonDict) -> Instance:
        fields = _checked(json_dict, "the question")
        return self._dataset_reader.text_to_instance(
            fields["question"], fields["passage"], question_id=fields.get("id")
        )


class _OfficialFile:
    """One JSON object that can be read after each addition, as nobody says which is the last."""

    def __init__(self, path: str) -> None:
        if not os.path.isdir(os.path.dirname(path) or "."):
            raise ConfigurationError(
                f"elmo-squad: expected `official_file` in a folder that is there, found {path}. "
                "Make the folder, or correct the path."
            )
        self._path = path
        self._ids: Set[str] = set()
        self._file: Optional[BinaryIO] = None

    def reserve(self, question_id: Optional[str], place: str) -> None:
        """Refuses a question that the file could not tell from others."""
        if question_id is None or question_id in self._ids:
            found = "none" if question_id is None else f"{question_id!r} a second time"
            raise ValueError(
                f'{place}: expected an "id" of its own, by which `official_file` tells answers '
                f"apart, found {found}. Give each question one, or leave `official_file` out."
            )
        self._ids.add(question_id)

    def add(self, question_id: str, answer: str) -> None:
        pair = json.dumps({question_id: answer}, ensure_ascii=False).encode("utf-8")
        if self._file is None:
            # Not before there is an answer: what the file held may be dear to somebody whose
            # input is mistyped. Bytes, since text cannot be overwritten from its end.
            self._file = open(self._path, "wb")
            self._file.write(pair)
        else:
            self._file.seek(-1, os.SEEK_END)
            self._file.write(b",\n" + pair[1:])
        self._file.flush()


def _checked(fields: JsonDict, place: str) -> JsonDict:
    for key in ("passage", "question"):
        text = fields.get(key)
        if not isinstance(text, str) or not text.strip():
            found = json.dumps(text) if key in fields else f"the fields {sorted(fields)}"
            raise ValueError(
                f'{place}: expected a "{key}" with some text, found {found}. Fill it in, so that '
                f"the line is like {_EXAMPLE}, or leave the line out."
            )
    if not isinstance(fields.get("id", ""), str):
        raise ValueError(
            f'{place}: expected "id" to be a text, found {json.dumps(fields["id"])}. Put it in '
            "quotation marks, or leave it out."
        )
    return fields


def _answered(output: Dict[str, Any]) -> JsonDict:
    metadata = output["metadata"]
    passage, offsets = metadata["passage"], metadata["token_offsets"]
    n_best = []
    for (first, last), probability in zip(
        output["best_spans"].tolist(), output["best_span_probabilities"].tolist()
    ):
        # A short passage has fewer spans than were asked for; the rest is filled up with -1.
        if first >= 0:
            start, end = offsets[first][0], offsets[last][1]
            n_best.append(
                {
                    "answer": passage[start:end],
                    "start": start,
                    "end": end,
                    "probability": probability,
                }
            )
    named = {} if metadata["question_id"] is None else {"id": metadata["question_id"]}
    return {**named, **n_best[0], "n_best": n_best}
