import json
from typing import Any, Dict, List, Tuple

from allennlp.common.util import JsonDict, sanitize
from allennlp.data import DatasetReader, Field, Instance, Token
from allennlp.data.fields import ListField, TextField
from allennlp.models import Model
from allennlp.predictors import Predictor
from overrides import overrides

from elmo_plugin.corpora.json_lines import parse_object
from elmo_plugin.corpora.tokenizer import words_of_line
from elmo_plugin.tasks.prediction import Prediction
from elmo_plugin.util.errors import check_one_of


class TaskPredictor(Predictor):
    """
    The base of the tasks' predictors: reads JSON lines, predicts in batches, and writes JSON lines
    or, where the task has one, the format of its official scorer.

    # Parameters

    model : `Model`
    dataset_reader : `DatasetReader`
    output_format : `str`, optional (default = `"json"`)
        One of the class's `output_formats`.

    # Raises

    `ConfigurationError`
        If the output format is not one of these.
    """

    #: A line of input, for the error.
    example: str
    output_formats: Tuple[str, ...] = ("json",)

    def __init__(
        self, model: Model, dataset_reader: DatasetReader, output_format: str = "json"
    ) -> None:
        super().__init__(model, dataset_reader)
        check_one_of(self.output_formats, output_format=output_format)
        self._output_format = output_format
        self._num_lines = 0

    @overrides
    def load_line(self, line: str) -> JsonDict:
        """
        # Raises

        `ValueError`
            If the line is not a JSON object, or not an input of the task; the message has the
            number of the line.
        """
        self._num_lines += 1
        location = f"non-empty line {self._num_lines}"
        return self._checked(parse_object(line, location, self.example), location)

    def load_request(self, text: str) -> JsonDict:
        """As `load_line`, for a single request: errors do not name the number of a line."""
        self._num_lines, location = 1, "the request"
        return self._checked(parse_object(text, location, self.example), location)

    def texts(self, line: JsonDict) -> List[List[str]]:
        """The words of each text that the model reads to answer a line, see `load_line`."""
        texts: List[Field] = []
        for field in self._json_to_instance(line).fields.values():
            texts += field if isinstance(field, ListField) else [field]
        return [[token.text for token in text] for text in texts if isinstance(text, TextField)]

    @overrides
    def predict_instance(self, instance: Instance) -> JsonDict:
        return self.predict_batch_instance([instance])[0]

    @overrides
    def predict_batch_instance(self, instances: List[Instance]) -> List[JsonDict]:
        """A `Prediction` for each instance; see the class for its fields."""
        if not instances:
            return []
        for instance in instances:
            self._dataset_reader.apply_token_indexers(instance)
        outputs = self._model.forward_on_instances(instances)
        return [self._prediction(output) for output in outputs]

    @overrides
    def dump_line(self, outputs: JsonDict) -> str:
        if self._output_format == "json":
            return json.dumps(outputs, ensure_ascii=False) + "\n"
        return self._for_scorer(outputs)

    def _prediction(self, output: Dict[str, Any]) -> Prediction:
        described = self._described(output).items()
        return Prediction(sanitize({name: value for name, value in described if value is not None}))

    def _checked(self, line: JsonDict, location: str) -> JsonDict:
        """The input of a line; a `ValueError` that begins with the location if it is invalid."""
        raise NotImplementedError

    def _described(self, output: Dict[str, Any]) -> JsonDict:
        """The prediction, from what the model returns; a field that is `None` is left out."""
        raise NotImplementedError

    def _for_scorer(self, outputs: JsonDict) -> str:
        """The prediction in the other output format, usually that of an official scorer."""
        raise NotImplementedError


class SentencePredictor(TaskPredictor):
    """The base of the predictors that read one sentence, as text or as a list of words."""

    def predict(self, sentence: str) -> JsonDict:
        """The prediction for a raw sentence."""
        return self.predict_json({"sentence": sentence})

    @overrides
    def _checked(self, line: JsonDict, location: str) -> JsonDict:
        return {"tokens": words_of_line(line, location)}

    @overrides
    def _json_to_instance(self, json_dict: JsonDict) -> Instance:
        words = words_of_line(json_dict, "input")
        return self._dataset_reader.text_to_instance([Token(word) for word in words])
