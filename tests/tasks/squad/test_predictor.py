import json

import pytest
import torch
from allennlp.commands.predict import _PredictManager
from allennlp.data import Vocabulary
from allennlp.models import Model
from allennlp.predictors import Predictor

from elmo_plugin.corpora.squad import read_paragraphs
from elmo_plugin.tasks.squad import SquadReader
from elmo_plugin.tasks.squad.metric import SquadScores
from elmo_plugin.tasks.squad.predictor import SquadPredictor
from tests.guide import FIXTURES

DEV = FIXTURES / "corpora/squad/dev-v1.1.json"
LINES = FIXTURES / "predict/squad.jsonl"
PASSAGE = "The café, “Lune”,  opened in 1920. 🎈 It's closed."


class Counting(Model):
    """Answers with the second and third words, the last, and nothing more."""

    def __init__(self) -> None:
        super().__init__(Vocabulary.empty())
        self.weight = torch.nn.Parameter(torch.zeros(()))

    def forward(self, question, passage, metadata, answer_span=None, passage_sentences=None):
        lengths = [len(one["token_offsets"]) for one in metadata]
        return {
            "best_spans": torch.tensor(
                [[[1, 2], [size - 1, size - 1], [-1, -1]] for size in lengths]
            ),
            "best_span_probabilities": torch.tensor([[0.75, 0.25, 0.0]] * len(metadata)),
            "metadata": metadata,
        }


@pytest.fixture
def make():
    return lambda **settings: SquadPredictor(Counting(), SquadReader(), **settings)


def predict(predictor, tmp_path, file, has_dataset_reader=False, batch_size=3):
    """What the sub-command writes."""
    out = tmp_path / "out.jsonl"
    _PredictManager(predictor, str(file), str(out), batch_size, False, has_dataset_reader).run()
    return [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]


def test_answers_stand_where_they_are_said_to_in_the_text_as_it_was(make):
    first = {"answer": "café,", "start": 4, "end": 9, "probability": 0.75}
    last = {"answer": ".", "start": 48, "end": 49, "probability": 0.25}
    assert make().predict("When?", PASSAGE) == {**first, "n_best": [first, last]}


def test_what_is_written_scores_as_the_model_says(archive, tmp_path):
    archive.model.get_metrics(reset=True)
    lines = predict(Predictor.from_archive(archive), tmp_path, DEV, True, batch_size=8)
    answers = {line["id"]: line["answer"] for line in lines}
    metric = SquadScores()
    for paragraph in read_paragraphs(DEV):
        for question in paragraph.questions:
            golds = [answer.text for answer in question.answers]
            metric([answers[question.question_id]], [golds])
    scores = archive.model.get_metrics(reset=True)
    assert {name: scores[name] for name in ("em", "f1")} == metric.get_metric()
