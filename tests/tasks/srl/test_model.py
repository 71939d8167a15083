from pathlib import Path

import pytest
import torch
from allennlp.common import Params
from allennlp.data import Vocabulary
from allennlp.models import Model, load_archive

from elmo_plugin.bilm.character_indexer import CharacterIndexer
from elmo_plugin.tasks.srl import SrlReader
from tests.tasks.batches import learn, make_batch, placement

FIXTURES = Path(__file__).parents[3] / "fixtures"
ELMO_TOKENS = {"elmo": {"type": "elmo-characters"}}


def build(vocab: Vocabulary, **settings) -> Model:
    """A small model of random weights."""
    return Model.from_params(
        vocab=vocab,
        params=Params(
            {
                "type": "elmo-srl",
                "text_field_embedder": {
                    "token_embedders": {"words": {"type": "embedding", "embedding_dim": 6}}
                },
                "encoder": {"type": "elmo-highway-lstm", "hidden_size": 7, "num_layers": 2},
                "predicate_dim": 5,
                **settings,
            }
        ),
    )


@pytest.fixture(scope="module")
def instances():
    reader = SrlReader(
        token_indexers={
            "words": SrlReader()._token_indexers["words"],
            "elmo": CharacterIndexer(),
        }
    )
    return list(reader.read(FIXTURES / "corpora/srl/train.gold_conll"))


@pytest.mark.parametrize(
    "at, encoder_input, projection_input", [("input", 43, 7), ("output", 11, 39), ("both", 43, 39)]
)
def test_widths_follow_the_placement(vocab, at, encoder_input, projection_input):
    model = build(vocab, placement=placement(at))
    assert model.encoder.get_input_dim() == encoder_input
    assert model.tag_projection.in_features == projection_input


def test_answers_are_legal_and_never_padding_or_the_unknown_role(vocab, instances):
    torch.manual_seed(0)
    model = build(vocab).eval()
    for index in (0, 1):
        with torch.no_grad():
            model.tag_projection.bias[index] = 100.0
    for tags in model(**make_batch(vocab, instances[:20], elmo=False))["tags"]:
        before = "O"
        for tag in tags:
            assert tag == "O" or tag[:2] in ("B-", "I-")
            assert tag[0] != "I" or before[2:] == tag[2:]
            before = tag


def test_a_role_that_training_never_saw_is_scored_but_not_learned_from(vocab, instances, tmp_path):
    path = tmp_path / "x.gold_conll"
    path.write_text(
        "x 0 0 Mary NNP (TOP* - - - - * (ARGM-NEW*) -\nx 0 1 sings VBZ *) sing 02 - - * (V*) -\n"
    )
    unseen = list(SrlReader().read(path))
    model = build(vocab).eval()
    outputs = model.forward_on_instances([_with_words(instance) for instance in unseen])
    assert all(torch.isfinite(torch.as_tensor(output["loss"])) for output in outputs)
    metrics = model.get_metrics(reset=True)
    assert metrics["recall-ARGM-NEW"] == 0.0
    logits = torch.randn(1, 2, len(model.tags), requires_grad=True)
    gold = torch.tensor([[model.unknown_role, model.tags.index("B-V")]])
    model.loss(logits, torch.ones(1, 2, dtype=torch.bool), gold).backward()
    assert not logits.grad[0, 0].any() and logits.grad[0, 1].any()


def test_the_model_can_learn_a_corpus_by_heart(vocab, instances):
    torch.manual_seed(1)
    model = build(
        vocab,
        placement=placement("input"),
        encoder={
            "type": "elmo-highway-lstm",
            "hidden_size": 64,
            "num_layers": 2,
            "recurrent_dropout": 0.0,
        },
    )
    batch = make_batch(vocab, instances[:20])
    assert learn(model, [batch], rate=0.01, num_epochs=60)["f1-measure-overall"] == 1.0


def test_an_archive_predicts_after_its_elmo_files_are_gone(tmp_path):
    import shutil

    from allennlp.commands.train import train_model_from_file

    for name in ("options.json", "weights.hdf5"):
        shutil.copy(FIXTURES / "bilm" / name, tmp_path / name)
    overrides = {
        "trainer.num_epochs": 1,
        "model.placement.elmo.options_file": str(tmp_path / "options.json"),
        "model.placement.elmo.weight_file": str(tmp_path / "weights.hdf5"),
        "dataset_reader.token_indexers.elmo.options_file": str(tmp_path / "options.json"),
        "validation_dataset_reader.token_indexers.elmo.options_file": str(
            tmp_path / "options.json"
        ),
    }
    trained = train_model_from_file(
        FIXTURES / "experiments/srl_elmo.jsonnet", tmp_path / "out", overrides=overrides
    )
    (tmp_path / "options.json").unlink()
    (tmp_path / "weights.hdf5").unlink()
    archive = load_archive(tmp_path / "out/model.tar.gz")
    reader = archive.validation_dataset_reader
    found = list(reader.read(FIXTURES / "corpora/srl/test.gold_conll"))
    for before, after in zip(
        trained.eval().forward_on_instances(found),
        archive.model.eval().forward_on_instances(found),
    ):
        assert before["tags"] == after["tags"]


def _with_words(instance):
    SrlReader().apply_token_indexers(instance)
    return instance
