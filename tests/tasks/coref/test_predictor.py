import json

import pytest
import torch
from allennlp.data import Vocabulary
from allennlp.models import Model
from allennlp.predictors import Predictor
from overrides import overrides

from elmo_plugin.tasks.coref import CorefPredictor, CorefReader, CorefScores
from tests.guide import FIXTURES

CORPUS = FIXTURES / "corpora/coref/train.gold_conll"
TEXT = "Her keys!  Anna\nlost her keys."


class Repetitions(Model):
    """Finds the gold clusters; where there are none, words and pairs of words said again."""

    def __init__(self):
        super().__init__(Vocabulary())
        # Predictors ask the first weight where the model is.
        self.weight = torch.nn.Parameter(torch.zeros(()))

    @overrides(check_signature=False)
    def forward(self, sentences, speakers, genre, metadata, gold_mentions=None):
        self.seen = metadata
        return {"clusters": list(map(self._clusters, metadata)), "metadata": metadata}

    def _clusters(self, metadata):
        if metadata["clusters"] is not None:
            return metadata["clusters"]
        found, first = {}, 0
        for words in metadata["sentences"]:
            for width in (2, 1):
                for start in range(len(words) - width + 1):
                    key = " ".join(words[start : start + width]).lower()
                    if key.isalpha() or width == 2:
                        span = (first + start, first + start + width - 1)
                        found.setdefault(key, []).append(span)
            first += len(words)
        return [cluster[::-1] for cluster in found.values() if len(cluster) > 1]


def make(**settings):
    return CorefPredictor(Repetitions(), CorefReader(), **settings)


def test_a_trained_model_finds_clusters_and_scores_them(archive):
    predictor = Predictor.from_archive(archive)
    instances = list(archive.validation_dataset_reader.read(CORPUS))
    archive.model.get_metrics(reset=True)
    outputs = predictor.predict_batch_instance(instances)
    metric = CorefScores()
    for output in outputs:
        sides = [
            [[(m["sentence"], m["start"], m["end"]) for m in cluster] for cluster in output[side]]
            for side in ("clusters", "gold_clusters")
        ]
        metric(*([side] for side in sides), [[]])
    expected = metric.get_metric()
    assert expected["coref_f1"] > 0
    scores = archive.model.get_metrics(reset=True)
    assert scores.pop("mention_recall") > expected.pop("mention_recall")
    assert scores == pytest.approx(expected)


def test_a_text_gets_clusters_with_their_places_and_words():
    assert make().predict(TEXT) == {
        "id": "-",
        "part": 0,
        "sentences": [["Her", "keys", "!"], ["Anna", "lost", "her", "keys", "."]],
        "clusters": [
            [
                {"sentence": 0, "start": 0, "end": 0, "text": "Her", "characters": [0, 3]},
                {"sentence": 1, "start": 2, "end": 2, "text": "her", "characters": [21, 24]},
            ],
            [
                {"sentence": 0, "start": 0, "end": 1, "text": "Her keys", "characters": [0, 8]},
                {"sentence": 1, "start": 2, "end": 3, "text": "her keys", "characters": [21, 29]},
            ],
            [
                {"sentence": 0, "start": 1, "end": 1, "text": "keys", "characters": [4, 8]},
                {"sentence": 1, "start": 3, "end": 3, "text": "keys", "characters": [25, 29]},
            ],
        ],
    }


def test_a_mention_of_a_text_is_written_as_the_text_writes_it():
    (pair, *_) = make().predict("Don't  go! We said\nDon't\n go!")["clusters"][1:]
    assert [mention["text"] for mention in pair] == ["Don't", "Don't"]
    text = "Pa's\n\n\nboat. Pa's boat."
    mentions = [m for cluster in make().predict(text)["clusters"] for m in cluster]
    assert mentions
    for mention in mentions:
        assert text[slice(*mention["characters"])] == mention["text"]


def test_sentences_give_what_their_text_gives():
    raw = make().predict(TEXT)
    sentences = make().predict_json({"sentences": raw["sentences"]})
    for cluster in raw["clusters"]:
        for mention in cluster:
            del mention["characters"]
    assert sentences == raw


def test_speakers_genre_and_name_reach_the_model():
    predictor = make()
    line = {
        "sentences": [["I", "go"], ["No"]],
        "speakers": ["Tom", "-"],
        "genre": "tc",
        "id": "a/b",
    }
    assert predictor.predict_json(line)["id"] == "a/b"
    (metadata,) = predictor._model.seen
    assert metadata["speakers"] == ["Tom", "Tom", "-"]
    assert (metadata["genre"], metadata["document_id"]) == ("tc", "a/b")
    predictor.predict_json({"text": "I go", "id": "nw/town/1"})
    (metadata,) = predictor._model.seen
    assert (metadata["genre"], metadata["speakers"]) == ("nw", ["-", "-"])


def test_a_line_has_its_number_for_a_name():
    predictor = make()
    lines = [{"text": "Yes."}, {"text": "No.", "id": "x"}, {"text": "No.", "id": None}]
    loaded = [predictor.load_line(json.dumps(line)) for line in lines]
    assert [line["id"] for line in loaded] == ["line_1", "x", "line_3"]
    assert [output["id"] for output in predictor.predict_batch_json(loaded)] == [
        "line_1",
        "x",
        "line_3",
    ]


def test_gold_clusters_come_out_as_they_stand_in_the_file():
    predictor = make(output_format="conll")
    instances = list(CorefReader().read(CORPUS))
    outputs = [
        output
        for first in range(0, len(instances), 4)
        for output in predictor.predict_batch_instance(instances[first : first + 4])
    ]
    written = "".join(map(predictor.dump_line, outputs)).splitlines()
    expected = CORPUS.read_text(encoding="utf-8").splitlines()
    assert len(written) == len(expected)
    for ours, line in zip(written, expected):
        ours, line = ours.split(), line.split()
        # All but the speaker.
        assert [*ours[:9], *ours[10:]] == [*line[:9], *line[10:]]
    assert outputs[1]["clusters"] == outputs[1]["gold_clusters"]
    assert [outputs[1]["part"], outputs[2]["part"]] == [0, 1]


@pytest.mark.parametrize("line", ["#begin document (a); part 0", "#begin document (a) "])
def test_the_line_that_begins_a_document_comes_out_as_it_stands_in_the_file(tmp_path, line):
    path = tmp_path / "x.gold_conll"
    path.write_text(f"{line}\na 0 0 8) UH * - - - - * -\n#end document\n")
    predictor = make(output_format="conll")
    written = predictor.dump_line(predictor.predict_instance(*CorefReader().read(path)))
    assert written.splitlines()[0] == line
    assert "\t8)\t" in written


@pytest.mark.parametrize(
    "text, sentences",
    [
        ("A dog ran. It fell!", ["A dog ran .", "It fell !"]),
        ('"Go," he said. "Now."', ['" Go , " he said . "', 'Now . "']),
        ("The News\n\nMr. Reed left\nus.", ["The News", "Mr. Reed left us ."]),
        ("One\r\n\r\nTwo \n \n\n three", ["One", "Two", "three"]),
    ],
)
def test_sentences_end_at_full_stops_and_empty_lines(text, sentences):
    assert list(map(" ".join, make().predict(text)["sentences"])) == sentences
