import json
from typing import Any, Dict, List

from allennlp.common.util import JsonDict, sanitize
from allennlp.data import DatasetReader, Instance, Token
from allennlp.models import Model
from allennlp.predictors import Predictor
from overrides import overrides

from elmo_plugin.corpora.conll2003 import bio_tags, check_word, find_entities, format_sentence
from elmo_plugin.corpora.json_lines import parse_object
from elmo_plugin.tasks.tokenizer import words_of_line
from elmo_plugin.util.errors import ConfigurationError

OUTPUT_FORMATS = ("json", "conll")
_EXAMPLE = '{"sentence": "Ada lives in London."}'


@Predictor.register("elmo-ner")
class NerPredictor(Predictor):
    """
    Finds the names in sentences.

    A line of input is JSON: `{"sentence": "Ada lives in London."}`, which the Penn Treebank's rules
    tokenise, or `{"tokens": ["Ada", …]}`. With `--use-dataset-reader` the input is a file of
    CoNLL-2003 columns.

    # Parameters

    model : `Model`
    dataset_reader : `DatasetReader`
    output_format : `str`, optional (default = `"json"`)
        `json` lines, or `conll`: a word per line, its gold tag where the input has one, and its
        predicted tag, as `conlleval` reads them; both as BIO. `-DOCSTART-` lines stand where they
        stand in the input.

    # Raises

    `ConfigurationError`
        If the output format is none of these.
    """

    def __init__(
        self, model: Model, dataset_reader: DatasetReader, output_format: str = "json"
    ) -> None:
        super().__init__(model, dataset_reader)
        if output_format not in OUTPUT_FORMATS:
            raise ConfigurationError(
                f"Expected `output_format` to be one of {OUTPUT_FORMATS}, found {output_format!r}."
            )
        self._output_format = output_format
        self._num_lines = 0

    def predict(self, sentence: str) -> JsonDict:
        """Finds the names in one sentence; see `predict_batch_instance` for the result."""
        return self.predict_json({"sentence": sentence})

    @overrides
    def predict_instance(self, instance: Instance) -> JsonDict:
        return self.predict_batch_instance([instance])[0]

    @overrides
    def predict_batch_instance(self, instances: List[Instance]) -> List[JsonDict]:
        """
        # Returns

        `List[JsonDict]`
            For each sentence its `tokens`, a BIO tag for each in `tags`, and `entities`: `type`,
            position of the first and the last token in `start` and `end`, and `text`. Of a corpus
            also `gold_tags`, where it has them, and whether it `is_document_start`.
        """
        if not instances:
            return []
        for instance in instances:
            self._dataset_reader.apply_token_indexers(instance)
        return [_named(output) for output in self._model.forward_on_instances(instances)]

    @overrides
    def load_line(self, line: str) -> JsonDict:
        """
        # Raises

        `ValueError`
            If the line is not JSON, holds no words, or words that the output has no room for.
        """
        self._num_lines += 1
        place = f"non-empty line {self._num_lines}"
        words = words_of_line(parse_object(line, place, _EXAMPLE), place)
        if self._output_format == "conll":
            try:
                for word in words:
                    check_word(word)
            except ValueError as error:
                raise ValueError(f"{place}: {error}. JSON output has room for it.") from error
        return {"tokens": words}

    @overrides
    def dump_line(self, outputs: JsonDict) -> str:
        if self._output_format == "json":
            return json.dumps(outputs, ensure_ascii=False) + "\n"
        return format_sentence(
            outputs["tokens"],
            outputs["tags"],
            outputs.get("gold_tags"),
            outputs.get("is_document_start", False),
        )

    @overrides
    def _json_to_instance(self, json_dict: JsonDict) -> Instance:
        words = words_of_line(json_dict, "input")
        return self._dataset_reader.text_to_instance([Token(word) for word in words])


def _named(output: Dict[str, Any]) -> JsonDict:
    words = output["metadata"]["words"]
    entities = find_entities(output["tags"])
    named = {
        "tokens": words,
        "tags": bio_tags(entities, len(words)),
        "entities": [
            {
                "type": entity.label,
                "start": entity.start,
                "end": entity.end,
                "text": " ".join(words[entity.start : entity.end + 1]),
            }
            for entity in entities
        ],
    }
    if output["metadata"]["gold_tags"] is not None:
        named["gold_tags"] = output["metadata"]["gold_tags"]
    if output["metadata"]["is_document_start"]:
        named["is_document_start"] = True
    return sanitize(named)
