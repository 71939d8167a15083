import json
from typing import Any, Dict, Iterable, Optional, Set

from allennlp.common.util import JsonDict
from allennlp.data import DatasetReader, Field, Instance
from allennlp.data.fields import SpanField
from allennlp.models import Model
from allennlp.predictors import Predictor
from overrides import overrides

from elmo_plugin.corpora.tokenizer import sentences_by_rules, tokenize_with_spacy
from elmo_plugin.tasks.prediction import Bars, MarkedWords, Part, Prediction
from elmo_plugin.tasks.predictor import TEXT, TaskPredictor
from elmo_plugin.util.errors import ConfigurationError, expect
from elmo_plugin.util.files import expanded


@Predictor.register("elmo-squad")
class SquadPredictor(TaskPredictor):
    """
    Answers questions with spans of a passage.

    An input line is `{"passage": "Ada lives in London.", "question": "Where does Ada live?"}`,
    optionally with an `"id"`. The output has the `id`, if given, the best `answer`, its
    `probability`, and its character offsets `start` and `end`, so that `passage[start:end] ==
    answer`. `n_best` has the same four fields for each of the best answers, best first.

    # Parameters

    official_file : `Optional[str]`
        Also write the answers to this file, in the format of SQuAD's own script: one JSON object
        from ids to answers, complete after each question. Each question then needs a unique `id`.
        If the folder does not exist, a `ConfigurationError` is raised.
    """

    title = "Question answering"
    summary = "The answer to a question, in a passage"
    example = {
        "passage": "Ada Lovelace was born in London in 1815. She wrote the first program for a "
        "machine that Charles Babbage had designed.",
        "question": "Where was Ada Lovelace born?",
    }
    corpus_start = r'\s*\{\s*("data"|"version"|$)'
    schema = {"passage": TEXT, "question": TEXT, "id": {"type": "string", "description": "text"}}

    def __init__(
        self,
        model: Model,
        dataset_reader: DatasetReader,
        official_file: Optional[str] = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(model, dataset_reader, **kwargs)
        self._official = None if official_file is None else _OfficialFile(official_file)

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
        yield Bars(best, "Answers and their probabilities")

    @overrides
    def load_line(self, line: str) -> JsonDict:
        fields = super().load_line(line)
        if self._official is not None:
            self._official.reserve(fields.get("id"), f"non-empty line {self._num_lines}")
        return fields

    @overrides
    def dump_line(self, outputs: JsonDict) -> str:
        if self._official is not None:
            self._official.add(outputs["id"], outputs["answer"])
        return super().dump_line(outputs)

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
        if not n_best:
            # Not a `ConfigurationError`, which would blame the line instead of the model.
            raise RuntimeError(
                "elmo-squad: all span probabilities are NaN, because the training of this model "
                "diverged. Use another model."
            )
        return {"id": metadata["question_id"], **n_best[0], "n_best": n_best}


class _OfficialFile:
    """One JSON object, complete after each answer: a predictor does not know the last one."""

    def __init__(self, path: str) -> None:
        try:
            # Appends: only the first answer empties an existing file, because input may be wrong.
            self._file = open(expanded(path), "ab")
        except OSError as error:
            raise ConfigurationError(
                f"elmo-squad: cannot write `official_file` ({error}). Create the folder, or "
                "correct the path."
            ) from error
        self._size = 0
        self._ids: Set[str] = set()

    def reserve(self, question_id: Optional[str], location: str) -> None:
        """Raises a `ValueError` if the id is missing or was used before."""
        if question_id is None or question_id in self._ids:
            found = "none" if question_id is None else f"{question_id!r} a second time"
            raise ValueError(
                f'{location}: expected a unique "id", which `official_file` needs, found {found}. '
                "Give each question one, or leave `official_file` out."
            )
        self._ids.add(question_id)

    def add(self, question_id: str, answer: str) -> None:
        pair = json.dumps({question_id: answer}, ensure_ascii=False).encode("utf-8")
        # Without the bracket at its end.
        self._file.truncate(max(0, self._size - 1))
        self._file.write(b",\n" + pair[1:] if self._size else pair)
        self._file.flush()
        self._size = self._file.tell()
