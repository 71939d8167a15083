from typing import Any, Dict

from allennlp.common.util import JsonDict
from allennlp.data import Instance, Token
from allennlp.predictors import Predictor
from overrides import overrides

from elmo_plugin.corpora.tokenizer import words_of_line
from elmo_plugin.tasks.predictor import TaskPredictor
from elmo_plugin.tasks.sst.reader import LABELS, in_order


@Predictor.register("elmo-sst")
class SstPredictor(TaskPredictor):
    """
    Classifies sentences by their sentiment.

    A line of input is JSON: `{"sentence": "A quiet triumph."}`, tokenised by the Penn Treebank's
    rules, or `{"tokens": ["A", …]}`. With `--use-dataset-reader` the input is a file of trees.

    The output has for each sentence its `tokens`, the `label`, the `probabilities` of all labels
    from the most negative to the most positive, and `gold_label`, if known. For the parameters see
    `TaskPredictor`.
    """

    example = '{"sentence": "A quiet triumph."}'

    def predict(self, sentence: str) -> JsonDict:
        """The prediction for a raw sentence."""
        return self.predict_json({"sentence": sentence})

    @overrides
    def _checked(self, line: JsonDict, place: str) -> JsonDict:
        return {"tokens": words_of_line(line, place)}

    @overrides
    def _json_to_instance(self, json_dict: JsonDict) -> Instance:
        words = words_of_line(json_dict, "input")
        return self._dataset_reader.text_to_instance([Token(word) for word in words])

    @overrides
    def _described(self, output: Dict[str, Any]) -> JsonDict:
        names = self._model.vocab.get_index_to_token_vocabulary(LABELS)
        probabilities = {names[i]: p for i, p in enumerate(output["probabilities"])}
        described = {
            "tokens": output["metadata"]["words"],
            "label": output["label"],
            "probabilities": {name: probabilities[name] for name in in_order(probabilities)},
        }
        if output["metadata"]["label"] is not None:
            described["gold_label"] = output["metadata"]["label"]
        return described
