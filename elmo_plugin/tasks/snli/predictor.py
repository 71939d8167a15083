import json
from typing import Any, Dict, List

from allennlp.common.util import JsonDict
from allennlp.data import DatasetReader, Instance, Token
from allennlp.models import Model
from allennlp.predictors import Predictor
from overrides import overrides

from elmo_plugin.corpora.json_lines import parse_object
from elmo_plugin.corpora.snli import LABELS, words_of_sentence
from elmo_plugin.tasks.tokenizer import treebank_words, words_of_line

_EXAMPLE = '{"premise": "A dog runs.", "hypothesis": "An animal moves."}'


@Predictor.register("elmo-snli")
class SnliPredictor(Predictor):
    """
    Says of pairs whether the hypothesis follows from the premise.

    A line of input is JSON: `{"premise": "A dog runs.", "hypothesis": "An animal moves."}`, which
    the Penn Treebank's rules tokenise, or `{"premise_tokens": ["A", …], "hypothesis_tokens":
    [...]}`, or a line of SNLI. With `--use-dataset-reader` the input is a file of SNLI's.
    """

    def __init__(self, model: Model, dataset_reader: DatasetReader) -> None:
        super().__init__(model, dataset_reader)
        self._num_lines = 0

    def predict(self, premise: str, hypothesis: str) -> JsonDict:
        """Labels one pair of raw texts; see `predict_batch_instance` for the result."""
        return self.predict_json({"premise": premise, "hypothesis": hypothesis})

    @overrides
    def predict_instance(self, instance: Instance) -> JsonDict:
        return self.predict_batch_instance([instance])[0]

    @overrides
    def predict_batch_instance(self, instances: List[Instance]) -> List[JsonDict]:
        """
        # Returns

        `List[JsonDict]`
            For each pair its `label`, the `probabilities` of all labels by name, its
            `premise_tokens` and `hypothesis_tokens`, and its `gold_label` and `pairID` where they
            are known.
        """
        if not instances:
            return []
        for instance in instances:
            self._dataset_reader.apply_token_indexers(instance)
        return [_answer(output) for output in self._model.forward_on_instances(instances)]

    @overrides
    def load_line(self, line: str) -> JsonDict:
        """
        # Raises

        `ValueError`
            If the line is no JSON or holds no pair, with its number.
        """
        self._num_lines += 1
        place = f"non-empty line {self._num_lines}"
        return _tokenised(parse_object(line, place, _EXAMPLE), place)

    @overrides
    def dump_line(self, outputs: JsonDict) -> str:
        return json.dumps(outputs, ensure_ascii=False) + "\n"

    @overrides
    def _json_to_instance(self, json_dict: JsonDict) -> Instance:
        pair = _tokenised(json_dict, "the pair")
        return self._dataset_reader.text_to_instance(
            [Token(word) for word in pair["premise_tokens"]],
            [Token(word) for word in pair["hypothesis_tokens"]],
            pair_id=pair.get("pairID"),
        )


def _tokenised(line: JsonDict, place: str) -> JsonDict:
    """The line with its words, which it may have had before."""
    if "sentence1" in line:
        premise, hypothesis = (
            list(words_of_sentence(line, place, key, treebank_words))
            for key in ("sentence1", "sentence2")
        )
    else:
        premise, hypothesis = (
            words_of_line(line, place, key, f"{key}_tokens") for key in ("premise", "hypothesis")
        )
    words = {"premise_tokens": premise, "hypothesis_tokens": hypothesis}
    return words if line.get("pairID") is None else {**words, "pairID": line["pairID"]}


def _answer(output: Dict[str, Any]) -> JsonDict:
    metadata = output["metadata"]
    answer = {
        "label": output["label"],
        "probabilities": dict(zip(LABELS, map(float, output["probabilities"]))),
        "premise_tokens": metadata["premise"],
        "hypothesis_tokens": metadata["hypothesis"],
    }
    known = {"gold_label": metadata["label"], "pairID": metadata["pair_id"]}
    answer.update((name, value) for name, value in known.items() if value is not None)
    return answer
