import re
from typing import Any, Dict, Iterable, Optional, Sequence, Tuple

from allennlp.common.util import JsonDict
from allennlp.data import Field, Instance
from allennlp.data.fields import LabelField
from allennlp.predictors import Predictor
from overrides import overrides

from elmo_plugin.corpora.records import records_format
from elmo_plugin.tasks.prediction import Bars, MarkedWords, Part, Prediction
from elmo_plugin.tasks.predictor import SentencePredictor, page_of
from elmo_plugin.tasks.sst.reader import in_order


@Predictor.register("elmo-classifier")
class TextPredictor(SentencePredictor):
    """
    Classifies texts. The output has `tokens`, `label`, `probabilities` by label, and `gold_label`,
    if known. Labels are in the order of the vocabulary; those of the Stanford Sentiment Treebank
    have the most negative first.
    """

    title = "Classification"
    summary = "The label of a text"
    example = {"sentence": "A quiet film, and a joy from beginning to end."}

    output_formats = ("json", "csv")

    @overrides
    def corpus_format(self, lines: Sequence[str]) -> Optional[Tuple[str, str]]:
        if re.match(r"\([0-4] ", lines[0]):
            return "trees of SST", ""
        return records_format(lines, self._dataset_reader.columns)

    @classmethod
    @overrides
    def draw(cls, prediction: Prediction) -> Iterable[Part]:
        bars = list(prediction["probabilities"].items())
        return [MarkedWords(prediction["tokens"]), Bars(bars, "Probabilities")]

    @overrides
    def _labels(self, instance: Instance, outputs: Dict[str, Any]) -> Dict[str, Field]:
        return {"label": LabelField(outputs["label"])}

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


@Predictor.register("elmo-sst")
class SstPredictor(TextPredictor):
    """Classifies sentences by their sentiment. For the output see `TextPredictor`."""

    title = "Sentiment"
    summary = "The sentiment of a sentence"
    page = page_of(__file__)
