from typing import Any, Dict, Iterable, Optional, Sequence, Tuple

from allennlp.common.util import JsonDict
from allennlp.data import Field, Instance, Token
from allennlp.predictors import Predictor
from overrides import overrides

from elmo_plugin.corpora.records import records_format
from elmo_plugin.corpora.snli import words_of_sentence
from elmo_plugin.corpora.tokenizer import words_of_line
from elmo_plugin.tasks.prediction import Bars, MarkedWords, Part, Prediction
from elmo_plugin.tasks.predictor import TEXT, WORDS, TaskPredictor, page_of
from elmo_plugin.util.errors import expect


@Predictor.register("elmo-pairs")
class PairPredictor(TaskPredictor):
    """
    Classifies pairs of texts.

    An input line is `{"premise": "A dog runs.", "hypothesis": "An animal moves."}`, tokenised as by
    the reader, by default by the rules of the Penn Treebank, or `{"premise_tokens": ["A", …],
    "hypothesis_tokens": ["An", …]}`. The output has `label`, `probabilities` by label,
    `premise_tokens`, `hypothesis_tokens`, and, if known, `pairID` and `gold_label`.
    """

    title = "Pairs of texts"
    summary = "The label of two texts"
    example = {
        "premise": "Two dogs run across a green field.",
        "hypothesis": "Some animals are outside.",
    }
    schema = {
        "premise": TEXT,
        "hypothesis": TEXT,
        "premise_tokens": WORDS,
        "hypothesis_tokens": WORDS,
    }

    output_formats = ("json", "csv")

    @overrides
    def corpus_format(self, lines: Sequence[str]) -> Optional[Tuple[str, str]]:
        return records_format(lines, self._dataset_reader.columns)

    def predict(self, premise: str, hypothesis: str) -> JsonDict:
        return self.predict_json({"premise": premise, "hypothesis": hypothesis})

    @classmethod
    @overrides
    def draw(cls, prediction: Prediction) -> Iterable[Part]:
        return [
            MarkedWords(prediction["premise_tokens"], title="Premise"),
            MarkedWords(prediction["hypothesis_tokens"], title="Hypothesis"),
            Bars(list(prediction["probabilities"].items()), "Probabilities"),
        ]

    @overrides
    def _checked(self, line: JsonDict, location: str) -> JsonDict:
        split = self._dataset_reader.split
        words = {
            f"{key}_tokens": words_of_line(line, location, split, key, f"{key}_tokens")
            for key in ("premise", "hypothesis")
        }
        return {**line, **words}

    @overrides
    def _json_to_instance(self, json_dict: JsonDict) -> Instance:
        pair = self._valid(json_dict, "the pair")
        return self._dataset_reader.text_to_instance(
            [Token(word) for word in pair["premise_tokens"]],
            [Token(word) for word in pair["hypothesis_tokens"]],
            pair_id=pair.get("pairID"),
        )

    @overrides
    def _labels(self, instance: Instance, outputs: Dict[str, Any]) -> Dict[str, Field]:
        return {"label": self._dataset_reader.label_field(outputs["label"])}

    @overrides
    def _described(self, output: Dict[str, Any]) -> JsonDict:
        metadata, names = output["metadata"], self._model.label_names
        return {
            "label": output["label"],
            "probabilities": {names[n]: each for n, each in enumerate(output["probabilities"])},
            "premise_tokens": metadata["premise"],
            "hypothesis_tokens": metadata["hypothesis"],
            "gold_label": metadata["label"],
            "pairID": metadata["pair_id"],
        }


@Predictor.register("elmo-snli")
class SnliPredictor(PairPredictor):
    """
    Predicts whether a premise entails or contradicts a hypothesis, or neither. An input line may be
    one of SNLI. For other lines and the output see `PairPredictor`.
    """

    title = "Textual entailment"
    summary = "Whether a premise entails or contradicts a hypothesis"
    page = page_of(__file__)

    @overrides
    def corpus_format(self, lines: Sequence[str]) -> Optional[Tuple[str, str]]:
        # Its lines are input lines, too.
        return None

    @overrides
    def _checked(self, line: JsonDict, location: str) -> JsonDict:
        if "sentence1" not in line:
            return super()._checked(line, location)
        premise, hypothesis = (
            list(words_of_sentence(line, location, key)) for key in ("sentence1", "sentence2")
        )
        expect(premise and hypothesis, location, "at least one word in each sentence", line)
        return {**line, "premise_tokens": premise, "hypothesis_tokens": hypothesis}
