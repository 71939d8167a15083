from typing import Any, Dict, Iterable

from allennlp.common.util import JsonDict
from allennlp.data import Field, Instance
from allennlp.data.fields import LabelField
from allennlp.predictors import Predictor
from overrides import overrides

from elmo_plugin.tasks.prediction import Bars, MarkedWords, Part, Prediction
from elmo_plugin.tasks.predictor import SentencePredictor
from elmo_plugin.tasks.sst.reader import LABELS, in_order


@Predictor.register("elmo-sst")
class SstPredictor(SentencePredictor):
    """
    Classifies sentences by their sentiment. The output has `tokens`, `label`, `probabilities` by
    label, the most negative first, and `gold_label`, if known.
    """

    title = "Sentiment"
    summary = "The sentiment of a sentence"
    corpus_start = r"\([0-4] "
    example = {"sentence": "A quiet film, and a joy from beginning to end."}

    @classmethod
    @overrides
    def draw(cls, prediction: Prediction) -> Iterable[Part]:
        bars = list(prediction["probabilities"].items())
        return [MarkedWords(prediction["tokens"]), Bars(bars, "Probabilities")]

    @overrides
    def _labels(self, instance: Instance, outputs: Dict[str, Any]) -> Dict[str, Field]:
        return {"label": LabelField(outputs["label"], LABELS)}

    @overrides
    def _described(self, output: Dict[str, Any]) -> JsonDict:
        names = self._model.label_names
        probabilities = {names[i]: p for i, p in enumerate(output["probabilities"])}
        return {
            "tokens": output["metadata"]["words"],
            "label": output["label"],
            "probabilities": {name: probabilities[name] for name in in_order(probabilities)},
            "gold_label": output["metadata"]["label"],
        }
