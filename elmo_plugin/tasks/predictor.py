import json
from contextlib import contextmanager
from typing import Any, Dict, Iterable, Iterator, List, Tuple

import torch
from allennlp.common.util import JsonDict, sanitize
from allennlp.data import DatasetReader, Field, Instance, Token
from allennlp.data.fields import ListField, TextField
from allennlp.models import Model
from allennlp.predictors import Predictor
from overrides import overrides

from elmo_plugin.corpora.json_lines import parse_object
from elmo_plugin.corpora.tokenizer import words_of_line
from elmo_plugin.tasks.prediction import Part, Prediction
from elmo_plugin.util.errors import ConfigurationError, check_one_of

#: JSON schemas of fields of input lines.
TEXT: JsonDict = {"type": "string", "minLength": 1}
WORDS: JsonDict = {"type": "array", "items": TEXT, "minItems": 1}


class TaskPredictor(Predictor):
    """
    The base of the tasks' predictors: reads JSON lines, predicts in batches, and writes JSON lines
    or, where the task has one, the format of its official scorer.

    It also holds what others show of the task: `elmo serve` and its page, notebooks, spaCy. Its
    name there is its registered name without `elmo-`.

    # Parameters

    output_format : `str`, optional (default = `"json"`)
        One of the class's `output_formats`.

    # Raises

    `ConfigurationError`
        If the output format is not one of these.
    """

    #: The task on the page, in a few words, and what it finds, in one line.
    title: str
    summary: str
    #: An input line. Its fields are those of the form on the page: texts, or lists of words.
    example: JsonDict
    #: The JSON schema of each field of an input line.
    schema: Dict[str, JsonDict]
    #: Whether an input line may be a document; otherwise it is at most a sentence.
    reads_documents: bool = False
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
        return self._loaded(line, f"non-empty line {self._num_lines}")

    def load_request(self, text: str) -> JsonDict:
        """As `load_line`, for a single request: errors do not name the number of a line."""
        self._num_lines = 1
        return self._loaded(text, "the request")

    def texts(self, line: JsonDict) -> List[List[str]]:
        """The words of each text that the model reads to answer a line, see `load_line`."""
        texts: List[Field] = []
        for field in self._json_to_instance(line).fields.values():
            texts += field if isinstance(field, ListField) else [field]
        return [[token.text for token in text] for text in texts if isinstance(text, TextField)]

    def line_of(self, sentences: List[List[str]]) -> JsonDict:
        """The input line of a sentence's words; of several sentences if `reads_documents`."""
        raise ConfigurationError(f"{type(self).__name__} reads pairs of texts, not single ones.")

    @classmethod
    def draw(cls, prediction: Prediction) -> Iterable[Part]:
        """How a prediction is shown. Raises `KeyError` if it lacks fields that the task's have."""
        raise NotImplementedError

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

    @overrides
    def get_interpretable_layer(self) -> torch.nn.Module:
        self._model.input_layer.embed = self._model.embed
        return self._model.input_layer

    @overrides
    def predictions_to_labeled_instances(
        self, instance: Instance, outputs: Dict[str, Any]
    ) -> List[Instance]:
        """The instance, labelled with the whole prediction."""
        labelled = instance.duplicate()
        for name, field in self._labels(labelled, outputs).items():
            labelled.add_field(name, field, self._model.vocab)
        return [labelled]

    @contextmanager
    def capture_model_internals(self, module_regex: str = ".*") -> Iterator[Dict[int, Any]]:
        """See AllenNLP, which leaves its hooks on the model if the block raises an exception."""
        internals = super().capture_model_internals(module_regex)
        try:
            yield internals.__enter__()
        finally:
            internals.__exit__(None, None, None)

    def _loaded(self, text: str, location: str) -> JsonDict:
        example = json.dumps(self.example, ensure_ascii=False)
        return self._checked(parse_object(text, location, example), location)

    def _prediction(self, output: Dict[str, Any]) -> Prediction:
        described = self._described(output).items()
        return Prediction(sanitize({name: value for name, value in described if value is not None}))

    def _checked(self, line: JsonDict, location: str) -> JsonDict:
        """The input of a line; a `ValueError` that begins with the location if it is invalid."""
        raise NotImplementedError

    def _described(self, output: Dict[str, Any]) -> JsonDict:
        """The prediction, from what the model returns; a field that is `None` is left out."""
        raise NotImplementedError

    def _labels(self, instance: Instance, outputs: Dict[str, Any]) -> Dict[str, Field]:
        """The fields of a labelled instance, from what the model returns."""
        raise NotImplementedError

    def _for_scorer(self, outputs: JsonDict) -> str:
        """The prediction in the other output format, usually that of an official scorer."""
        raise NotImplementedError


@contextmanager
def in_columns(location: str) -> Iterator[None]:
    """Says where the `ValueError` of a format of columns comes from, and what to do."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{location}: {error}. Use JSON output instead.") from error


class SentencePredictor(TaskPredictor):
    """The base of the predictors that read one sentence, as text or as a list of words."""

    schema = {"sentence": TEXT, "tokens": WORDS}

    def predict(self, sentence: str) -> JsonDict:
        """The prediction for a raw sentence."""
        return self.predict_json({"sentence": sentence})

    @overrides
    def line_of(self, sentences: List[List[str]]) -> JsonDict:
        (words,) = sentences
        return {"tokens": words}

    @overrides
    def _checked(self, line: JsonDict, location: str) -> JsonDict:
        return {"tokens": words_of_line(line, location)}

    @overrides
    def _json_to_instance(self, json_dict: JsonDict) -> Instance:
        words = words_of_line(json_dict, "input")
        return self._dataset_reader.text_to_instance([Token(word) for word in words])
