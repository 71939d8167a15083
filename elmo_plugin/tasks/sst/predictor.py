import json
from typing import Any, Dict, List

from allennlp.common.util import JsonDict, sanitize
from allennlp.data import DatasetReader, Instance, Token
from allennlp.models import Model
from allennlp.predictors import Predictor
from overrides import overrides

from elmo_plugin.corpora.json_lines import parse_object
from elmo_plugin.tasks.sst.reader import LABELS, in_order
from elmo_plugin.tasks.tokenizer import words_of_line

_EXAMPLE = '{"sentence": "A quiet triumph."}'


@Predictor.register("elmo-sst")
class SstPredictor(Predictor):
    """
    Says how positive sentences are.

    A line of input is JSON: `{"sentence": "A quiet triumph."}`, which the Penn Treebank's rules
    tokenise, or `{"tokens": ["A", …]}`. With `--use-dataset-reader` the input is a file of trees,
    and `gold_label` stands beside `label`.
    """

    def __init__(self, model: Model, dataset_reader: DatasetReader) -> None:
        super().__init__(model, dataset_reader)
        self._num_lines = 0

    def predict(self, sentence: str) -> JsonDict:
        """Classifies one sentence; see `predict_batch_instance` for the result."""
        return self.predict_json({"sentence": sentence})

    @overrides
    def predict_instance(self, instance: Instance) -> JsonDict:
        return self.predict_batch_instance([instance])[0]

    @overrides
    def predict_batch_instance(self, instances: List[Instance]) -> List[JsonDict]:
        """
        # Returns

        `List[JsonDict]`
            For each sentence its `tokens`, the `label`, the `probabilities` of all labels from
            the most negative to the most positive, and `gold_label` where it is known.
        """
        if not instances:
            return []
        for instance in instances:
            self._dataset_reader.apply_token_indexers(instance)
        return [self._named(output) for output in self._model.forward_on_instances(instances)]

    @overrides
    def load_line(self, line: str) -> JsonDict:
        self._num_lines += 1
        place = f"non-empty line {self._num_lines}"
        inputs = parse_object(line, place, _EXAMPLE)
        return {"tokens": words_of_line(inputs, place)}

    @overrides
    def dump_line(self, outputs: JsonDict) -> str:
        return json.dumps(outputs, ensure_ascii=False) + "\n"

    @overrides
    def _json_to_instance(self, json_dict: JsonDict) -> Instance:
        words = words_of_line(json_dict, "input")
        return self._dataset_reader.text_to_instance([Token(word) for word in words])

    def _named(self, output: Dict[str, Any]) -> JsonDict:
        names = self._model.vocab.get_index_to_token_vocabulary(LABELS)
        probabilities = {names[i]: p for i, p in enumerate(output["probabilities"])}
        named = {
            "tokens": output["metadata"]["words"],
            "label": output["label"],
            "probabilities": {name: probabilities[name] for name in in_order(probabilities)},
        }
        if output["metadata"]["label"] is not None:
            named["gold_label"] = output["metadata"]["label"]
        return sanitize(named)
