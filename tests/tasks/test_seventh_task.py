"""
A seventh task touches nothing outside its own room: this one, which only this module knows, is
trained, predicted, packed, served, shown and used in spaCy.
"""

import inspect
import json
from pathlib import Path

import pytest
import spacy
import torch
from allennlp.commands.train import train_model
from allennlp.common import Params
from allennlp.data import DatasetReader, Instance, Token
from allennlp.data.fields import LabelField, MetadataField, TextField
from allennlp.models import Model
from allennlp.nn.util import get_text_field_mask
from allennlp.predictors import Predictor
from allennlp.training.metrics import CategoricalAccuracy
from fastapi.testclient import TestClient
from overrides import overrides

import elmo_plugin.integrations.for_spacy  # noqa: F401
from elmo_plugin import load_predictor
from elmo_plugin.commands.pack import pack
from elmo_plugin.serve.app import make_app
from elmo_plugin.serve.served_task import Limits, load_tasks
from elmo_plugin.tasks.model import ClassifierModel
from elmo_plugin.tasks.prediction import MarkedWords, Prediction
from elmo_plugin.tasks.predictor import SentencePredictor
from elmo_plugin.tasks.reader import TaskReader
from tests.html import shown, text_of

PACKAGE = Path(elmo_plugin.__file__).parent


@DatasetReader.register("elmo-length")
class LengthReader(TaskReader):
    def _read(self, file_path):
        for line in self.shard_iterable(Path(file_path).read_text().splitlines()):
            length, *words = line.split()
            yield self.text_to_instance([Token(word) for word in words], length)

    @overrides(check_signature=False)
    def text_to_instance(self, tokens, length=None):
        words = [token.text for token in tokens]
        fields = {"tokens": TextField(tokens), "metadata": MetadataField({"words": words})}
        if length is not None:
            fields["label"] = LabelField(length)
        return Instance(fields)


@Model.register("elmo-length")
class LengthModel(ClassifierModel):
    default_predictor = "elmo-length"
    needed_labels = "lengths"

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.label_names = self.vocab.get_index_to_token_vocabulary("labels")
        self.hidden = torch.nn.Linear(1, 64)
        # Large enough for 8 bits.
        self.more = torch.nn.Linear(64, 64)
        self.output_projection = torch.nn.Linear(64, len(self.label_names))
        self.metric = CategoricalAccuracy()

    @overrides(check_signature=False)
    def forward(self, tokens, metadata, label=None):
        _, embedded = self.embed(tokens)
        lengths = get_text_field_mask(tokens).sum(dim=1, keepdim=True) + 0.0 * embedded.sum()
        hidden = self.more(self.hidden(lengths / 10).relu()).relu()
        return self.outputs(self.output_projection(hidden), label, metadata)


@Predictor.register("elmo-length")
class LengthPredictor(SentencePredictor):
    title = "Length"
    summary = "Whether a sentence is short or long"
    example = {"sentence": "Short."}

    def _described(self, output):
        return {"tokens": output["metadata"]["words"], "length": output["label"]}

    @classmethod
    def draw(cls, prediction):
        words = prediction["tokens"]
        return [MarkedWords(words, [(0, len(words) - 1, prediction["length"])])]


TEXTS = {"short": "So be it", "long": "It was a dark and stormy night in the old house"}


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    folder = tmp_path_factory.mktemp("length")
    corpus = folder / "corpus.txt"
    corpus.write_text("".join(f"{length} {text}\n" for length, text in TEXTS.items()))
    embedder = {"token_embedders": {"words": {"type": "embedding", "embedding_dim": 2}}}
    params = {
        "dataset_reader": {"type": "elmo-length"},
        "train_data_path": str(corpus),
        "model": {"type": "elmo-length", "text_field_embedder": embedder},
        "data_loader": {"batch_size": 2},
        "trainer": {"optimizer": {"type": "adam", "lr": 0.01}, "num_epochs": 50, "cuda_device": -1},
    }
    train_model(Params(params), folder / "out")
    return folder / "out/model.tar.gz"


def lengths(predictor):
    lines = [{"sentence": text} for text in TEXTS.values()]
    return [found["length"] for found in predictor.predict_batch_json(lines)]


def test_it_is_trained_predicted_and_shown_in_notebooks(archive):
    predictor = load_predictor(archive)
    assert lengths(predictor) == list(TEXTS)
    line = predictor.dump_line(predictor.predict("So be it"))
    assert json.loads(line) == {"tokens": ["So", "be", "it"], "length": "short"}
    assert text_of(shown(Prediction(json.loads(line)))) == "So be it short"
    with pytest.raises(ValueError, match='like {"sentence": "Short."}, found'):
        predictor.load_line("[1]")


@pytest.mark.parametrize("int8", [False, True])
def test_it_is_packed(archive, tmp_path, int8):
    pack(archive, tmp_path / "packed.tar.gz", int8=int8)
    assert lengths(load_predictor(tmp_path / "packed.tar.gz")) == list(TEXTS)


def test_it_is_served_with_its_example_on_the_page(archive):
    app = make_app(load_tasks([archive], load_predictor, Limits()))
    with TestClient(app) as client:
        described = client.get("/models").json()["tasks"]["length"]
        assert described["title"] == "Length" and described["layer_weights"] == []
        request = json.dumps(described["example"])
        answer = client.post("/predict/length", content=request)
        assert answer.json() == {"tokens": ["Short", "."], "length": "short"}
        (part,) = client.post("/draw/length", content=request).json()
        drawn = {"words": ["Short", "."], "spans": [[0, 1, "short"]], "title": ""}
        assert part == {**drawn, "spaces": ["", ""]}
        operation = client.get("/openapi.json").json()["paths"]["/predict/length"]["post"]
        assert operation["summary"] == LengthPredictor.summary


def test_it_is_used_in_spacy(archive):
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("elmo_task", config={"archive": str(archive)})
    doc = nlp(". ".join(TEXTS.values()))
    assert [found["length"] for found in doc._.elmo_task] == list(TEXTS)
    assert nlp("")._.elmo_task == []


def test_no_task_is_named_outside_of_the_rooms():
    packing = Path(inspect.getsourcefile(pack))
    for file in (*PACKAGE.glob("serve/*"), packing, PACKAGE / "tasks/prediction.py"):
        if file.is_file():
            text = file.read_text(encoding="utf-8")
            for task in ("coref", "snli", "squad", "srl", "sst", "elmo-ner"):
                assert task not in text, f"{file} names {task}"
