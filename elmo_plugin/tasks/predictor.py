import csv
import io
import json
import re
from pathlib import Path
from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple

import torch
from allennlp.common.util import JsonDict, sanitize
from allennlp.data import DatasetReader, Field, Instance, Token
from allennlp.data.fields import ListField, TextField
from allennlp.models import Model
from allennlp.predictors import Predictor
from overrides import overrides

from elmo_plugin.corpora.json_lines import check_fields, parse_object
from elmo_plugin.corpora.tokenizer import words_of_line
from elmo_plugin.tasks.prediction import Part, Prediction
from elmo_plugin.util.errors import ConfigurationError, check_no_settings, check_one_of, excerpt

#: JSON schemas of fields of input lines.
TEXT: JsonDict = {"type": "string", "pattern": r"\S", "description": "some text"}
WORD: JsonDict = {"type": "string", "pattern": r"[\s\S]", "description": "a word"}
WORDS: JsonDict = {
    "type": "array",
    "items": WORD,
    "minItems": 1,
    "description": "a list of words, none of them empty",
}


def page_of(file: str) -> JsonDict:
    """What `page.json` beside a predictor's file says to the page of `elmo serve`."""
    return json.loads(Path(file).with_name("page.json").read_text(encoding="utf-8"))


class TaskPredictor(Predictor):
    """
    The base of the tasks' predictors. Reads JSON lines, predicts in batches, and writes JSON lines
    or the format of the task's official scorer, if it has one. With `--use-dataset-reader` it reads
    the task's corpus instead. `elmo serve`, notebooks and spaCy use the class attributes, too, and
    name the task by its registered name without `elmo-`.

    # Parameters

    output_format : `str`
        One of the class's `output_formats`; another, or an unknown setting, raises a
        `ConfigurationError`.
    """

    #: The name of the task on the page, and one line about what it finds.
    title: str
    summary: str
    #: An input line. The page's form has the same fields: texts, or lists of words of the texts.
    example: JsonDict
    #: More of them, each with `hard` if the shipped model's answer is wrong: what is. And `labels`,
    #: in the order of their colours, with their meanings. See `page_of`.
    page: JsonDict = {"examples": [], "labels": {}}
    #: The JSON schema of each field of an input line. Its `description` is for error messages.
    schema: Dict[str, JsonDict]
    #: Whether an input line may be a document; otherwise it has at most a sentence.
    reads_documents: bool = False
    #: The field of an input line that a line of raw text fills; `None` if one text is not enough.
    text_field: Optional[str] = None
    #: A pattern of the beginning of the first line of the task's corpus.
    corpus_start: Optional[str] = None
    #: Whether a corpus without labels has a word per line and nothing else.
    has_word_per_line: bool = False
    output_formats: Tuple[str, ...] = ("json",)

    def __init__(
        self,
        model: Model,
        dataset_reader: DatasetReader,
        output_format: str = "json",
        **unknown: Any,
    ) -> None:
        check_no_settings(self, unknown)
        super().__init__(model, dataset_reader)
        check_one_of(self.output_formats, output_format=output_format)
        self._output_format = output_format
        self._num_lines = 0
        # Of the output `csv`.
        self._columns: List[str] = []

    @overrides
    def load_line(self, line: str) -> JsonDict:
        """Raises a `ValueError` with the line's number if it is not an input of the task."""
        return self.load(line, f"non-empty line {self._num_lines + 1}")

    def load_request(self, text: str) -> JsonDict:
        """Like `load_line`, for a single request: errors name no line."""
        self._num_lines = 0
        return self.load(text, "the request")

    def load(self, line: str, location: str, *, is_text: bool = False) -> JsonDict:
        """The input of a line of JSON, or of text. Its `ValueError` names `location`."""
        self._num_lines += 1
        if is_text:
            return self._valid({str(self.text_field): line}, location)
        example = json.dumps(self.example, ensure_ascii=False)
        return self._valid(parse_object(line, location, example), location)

    def completed(self, line: JsonDict) -> JsonDict:
        """Returns the line with what another model finds first, such as predicates."""
        return line

    def corpus_format(self, lines: Sequence[str]) -> Optional[Tuple[str, str]]:
        """
        The format, for the user, and the suffix by which the reader knows it, if the first lines of
        a file, without empty ones, look like the task's corpus. A suffix may be empty.
        """
        if self.corpus_start is None or not re.match(self.corpus_start, lines[0]):
            return None
        return f"the corpus format of {self.title}", ""

    def texts(self, line: JsonDict) -> List[List[str]]:
        """Returns the words of each text that the model reads to answer a line."""
        texts: List[Field] = []
        for field in self._json_to_instance(line).fields.values():
            texts += field if isinstance(field, ListField) else [field]
        return [[token.text for token in text] for text in texts if isinstance(text, TextField)]

    def line_of(self, sentences: List[List[str]]) -> JsonDict:
        """Returns the input line for a sentence, or for several if `reads_documents`."""
        raise ConfigurationError(f"{type(self).__name__} reads pairs of texts, not single ones.")

    @classmethod
    def draw(cls, prediction: Prediction) -> Iterable[Part]:
        """Returns the parts to show. Raises `KeyError` if a prediction lacks the task's fields."""
        raise NotImplementedError

    @overrides
    def predict_instance(self, instance: Instance) -> JsonDict:
        return self.predict_batch_instance([instance])[0]

    @overrides
    def predict_batch_instance(self, instances: List[Instance]) -> List[JsonDict]:
        if not instances:
            return []
        for instance in instances:
            self._dataset_reader.apply_token_indexers(instance)
        outputs = self._model.forward_on_instances(instances)
        return [self._prediction(output) for output in outputs]

    @overrides
    def dump_line(self, outputs: JsonDict) -> str:
        """Raises a `ValueError` if the other output format cannot hold a prediction."""
        if self._output_format == "json":
            return json.dumps(outputs, ensure_ascii=False) + "\n"
        if self._output_format == "csv":
            return self._csv_line(outputs)
        try:
            return self._for_scorer(outputs)
        except ValueError as error:
            shown = excerpt(json.dumps(outputs, ensure_ascii=False))
            raise ValueError(f"{shown}: {error}. Use JSON output instead.") from error

    @overrides
    def get_interpretable_layer(self) -> torch.nn.Module:
        self._model.input_layer.embed = self._model.embed
        return self._model.input_layer

    @overrides
    def predictions_to_labeled_instances(
        self, instance: Instance, outputs: Dict[str, Any]
    ) -> List[Instance]:
        labelled = instance.duplicate()
        for name, field in self._labels(labelled, outputs).items():
            labelled.add_field(name, field, self._model.vocab)
        return [labelled]

    def _csv_line(self, outputs: JsonDict) -> str:
        """A row, below a header if it is the first: lists joined by spaces, a column per label."""
        cells: Dict[str, Any] = {}
        for name, value in outputs.items():
            if isinstance(value, dict):
                cells.update({f"{name}.{key}": part for key, part in value.items()})
            else:
                cells[name] = " ".join(value) if isinstance(value, list) else value
        written = io.StringIO()
        is_first = not self._columns
        self._columns = self._columns or list(cells)
        writer = csv.DictWriter(written, self._columns, restval="", extrasaction="ignore")
        if is_first:
            writer.writeheader()
        writer.writerow(cells)
        return written.getvalue()

    def _valid(self, line: JsonDict, location: str) -> JsonDict:
        """`_checked`, after a check by `schema`."""
        example = json.dumps(self.example, ensure_ascii=False)
        return self._checked(check_fields(line, self.schema, location, example), location)

    def _prediction(self, output: Dict[str, Any]) -> Prediction:
        described = self._described(output).items()
        return Prediction(sanitize({name: value for name, value in described if value is not None}))

    def _checked(self, line: JsonDict, location: str) -> JsonDict:
        """The input of a line that fits the `schema`. Its `ValueError` begins with `location`."""
        raise NotImplementedError

    def _described(self, output: Dict[str, Any]) -> JsonDict:
        """The prediction, from the model's output. Fields that are `None` are left out."""
        raise NotImplementedError

    def _labels(self, instance: Instance, outputs: Dict[str, Any]) -> Dict[str, Field]:
        """The label fields of an instance, from the model's output."""
        raise NotImplementedError

    def _for_scorer(self, outputs: JsonDict) -> str:
        """Formats a prediction in the other output format, usually an official scorer's."""
        raise NotImplementedError


class SentencePredictor(TaskPredictor):
    """
    The base of predictors that read a sentence: `{"sentence": "Ada lives in London."}`, tokenised
    as by its reader, by default by the rules of the Penn Treebank, or `{"tokens": ["Ada", …]}`.
    """

    schema = {"sentence": TEXT, "tokens": WORDS}
    text_field = "sentence"

    def predict(self, sentence: str) -> JsonDict:
        return self.predict_json({"sentence": sentence})

    @overrides
    def line_of(self, sentences: List[List[str]]) -> JsonDict:
        (words,) = sentences
        return {"tokens": words}

    @overrides
    def _checked(self, line: JsonDict, location: str) -> JsonDict:
        return {**line, "tokens": words_of_line(line, location, self._dataset_reader.split)}

    @overrides
    def _json_to_instance(self, json_dict: JsonDict) -> Instance:
        words = self._valid(json_dict, "the sentence")["tokens"]
        return self._dataset_reader.text_to_instance([Token(word) for word in words])
