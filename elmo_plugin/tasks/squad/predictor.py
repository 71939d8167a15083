from typing import Any, Dict, Iterable

from allennlp.common.util import JsonDict
from allennlp.data import Field, Instance
from allennlp.data.fields import SpanField
from allennlp.predictors import Predictor
from overrides import overrides

from elmo_plugin.corpora.tokenizer import sentences_by_rules, tokenize_with_spacy
from elmo_plugin.tasks.prediction import Bars, MarkedWords, Part, Prediction
from elmo_plugin.tasks.predictor import TEXT, TaskPredictor, page_of
from elmo_plugin.util.errors import expect

# Answers of a lower probability are not drawn.
_LEAST_SHOWN = 0.01


@Predictor.register("elmo-squad")
class SquadPredictor(TaskPredictor):
    """
    Answers questions with spans of a passage.

    An input line is `{"passage": "Ada lives in London.", "question": "Where does Ada live?"}`,
    optionally with an `"id"`. The output has the `id`, if given, the best `answer`, its
    `probability`, and its character offsets `start` and `end`, so that `passage[start:end] ==
    answer`. `n_best` has the same four fields for each of the best answers, best first.
    """

    title = "Question answering"
    summary = "The answer to a question, in a passage"
    page = page_of(__file__)
    example = {
        "passage": "Ada Lovelace was born in London in 1815. She wrote the first program for a "
        "machine that Charles Babbage had designed.",
        "question": "Where was Ada Lovelace born?",
    }
    corpus_start = r'\s*\{\s*("data"|"version"|$)'
    schema = {"passage": TEXT, "question": TEXT, "id": {"type": "string", "description": "text"}}

    def predict(self, question: str, passage: str) -> JsonDict:
        return self.predict_json({"passage": passage, "question": question})

    @classmethod
    @overrides
    def draw(cls, prediction: Prediction) -> Iterable[Part]:
        start, end = prediction["start"], prediction["end"]
        tokens = tokenize_with_spacy(prediction.passage)
        for sentence in sentences_by_rules(tokens[0].doc) if tokens else ():
            words = [token for token in sentence if not token.is_space]
            marked = [n for n, w in enumerate(words) if w.idx < end and start < w.idx + len(w)]
            spans = [(marked[0], marked[-1], "")] if marked else []
            yield MarkedWords([token.text for token in words], spans)
        if not tokens:
            yield MarkedWords([prediction["answer"]], [(0, 0, "")])
        best = [(each["answer"], each["probability"]) for each in prediction["n_best"]]
        shown = best[:1] + [each for each in best[1:] if each[1] >= _LEAST_SHOWN]
        yield Bars(shown, "Answers and their probabilities")

    @overrides
    def _checked(self, line: JsonDict, location: str) -> JsonDict:
        expect({"passage", "question"} <= {*line}, location, 'a "passage" and a "question"', line)
        return line

    @overrides
    def _json_to_instance(self, json_dict: JsonDict) -> Instance:
        fields = self._valid(json_dict, "the question")
        return self._dataset_reader.text_to_instance(
            fields["question"], fields["passage"], question_id=fields.get("id")
        )

    @overrides
    def _prediction(self, output: Dict[str, Any]) -> Prediction:
        prediction = super()._prediction(output)
        prediction.passage = output["metadata"]["passage"]
        return prediction

    @overrides
    def _labels(self, instance: Instance, outputs: Dict[str, Any]) -> Dict[str, Field]:
        first, last = outputs["best_spans"].reshape(-1, 2)[0].tolist()
        return {"answer_span": SpanField(first, last, instance["passage"])}

    @overrides
    def _described(self, output: Dict[str, Any]) -> JsonDict:
        metadata = output["metadata"]
        passage, offsets = metadata["passage"], metadata["token_offsets"]
        n_best = []
        for (first, last), probability in zip(
            output["best_spans"].tolist(), output["best_span_probabilities"].tolist()
        ):
            # A short passage has fewer than `num_best` spans; the others are -1.
            if first >= 0:
                start, end = offsets[first][0], offsets[last][1]
                answer = {"answer": passage[start:end], "start": start, "end": end}
                n_best.append({**answer, "probability": probability})
        return {"id": metadata["question_id"], **n_best[0], "n_best": n_best}
