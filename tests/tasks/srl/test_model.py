from pathlib import Path

import pytest
import torch
from allennlp.common import Params
from allennlp.common.testing import ModelTestCase
from allennlp.data import Vocabulary
from allennlp.data.batch import Batch
from allennlp.models import Model, load_archive

import elmo_plugin  # noqa: F401
from elmo_plugin.tasks.srl import SrlReader

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


def placement(at: str) -> dict:
    return {"type": "elmo-placement", "at": at, "elmo": {"dropout": 0.0}}


@pytest.fixture(scope="module")
def instances():
    reader = SrlReader(
        {
            "words": SrlReader()._token_indexers["words"],
            "elmo": elmo_plugin.bilm.CharacterIndexer(),
        }
    )
    return list(reader.read(FIXTURES / "corpora/srl/train.gold_conll"))


@pytest.fixture(scope="module")
def vocab(instances):
    return Vocabulary.from_instances(instances)


class TestTraining(ModelTestCase):
    @pytest.mark.parametrize("experiment", ["srl", "srl_elmo"])
    def test_trains_saves_loads_and_predicts_the_same(self, experiment):
        # The comparison needs batches in a fixed order.
        param_file = self.TEST_DIR / "experiment.jsonnet"
        param_file.write_text(
            f"(import '{FIXTURES}/experiments/{experiment}.jsonnet')"
            " { data_loader: { batch_size: 16 }, validation_data_loader: { batch_size: 16 } }"
        )
        self.set_up_model(param_file, FIXTURES / "corpora/srl/train.gold_conll")
        self.ensure_model_can_train_save_and_load(
            self.param_file,
            overrides='{"trainer.num_epochs": 1, "trainer.patience": 1}',
        )

    def test_predictions_do_not_depend_on_the_batch(self):
        self.set_up_model(
            FIXTURES / "experiments/srl_elmo.jsonnet",
            FIXTURES / "corpora/srl/dev.gold_conll",
        )
        self.ensure_batch_predictions_are_consistent(keys_to_ignore=["loss"])


@pytest.mark.parametrize(
    "at, encoder_input, projection_input", [("input", 43, 7), ("output", 11, 39), ("both", 43, 39)]
)
def test_widths_follow_the_placement(vocab, at, encoder_input, projection_input):
    model = build(vocab, placement=placement(at))
    assert model.encoder.get_input_dim() == encoder_input
    assert model.role_projection.in_features == projection_input


def test_without_placement_nothing_is_added(vocab):
    model = build(vocab)
    assert model.encoder.get_input_dim() == 11
    assert not [name for name, _ in model.named_parameters() if "elmo" in name]


def test_only_layer_scores_are_penalised(vocab):
    penalty = {"regexes": [["layer_scores", {"type": "l2", "alpha": 0.5}]]}
    model = build(vocab, placement=placement("both"), regularizer=penalty)
    assert model.get_regularization_penalty().item() == 0.0
    with torch.no_grad():
        for mix, scores in zip(model.placement.elmo.mixes, ([1.0, 2.0, 0.0], [0.0, 0.0, 3.0])):
            mix.layer_scores.copy_(torch.tensor(scores))
            mix.gamma.fill_(100.0)
    # Both placements, gamma left out: 0.5 * (1 + 4 + 9).
    assert model.get_regularization_penalty().item() == 7.0


def test_answers_are_legal_and_never_padding_or_the_unknown_role(vocab, instances):
    torch.manual_seed(0)
    model = build(vocab).eval()
    for index in (0, 1):
        with torch.no_grad():
            model.role_projection.bias[index] = 100.0
    batch = Batch(instances[:20])
    batch.index_instances(vocab)
    tensors = batch.as_tensor_dict()
    tensors["tokens"] = {"words": tensors["tokens"]["words"]}
    for tags in model(**tensors)["tags"]:
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
    batch = Batch(instances[:20])
    batch.index_instances(vocab)
    tensors = batch.as_tensor_dict()
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=0.01)
    for _ in range(60):
        optimizer.zero_grad()
        model(**tensors)["loss"].backward()
        optimizer.step()
    model.eval()
    model(**tensors)
    assert model.get_metrics(reset=True)["f1-measure-overall"] == 1.0


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


def test_a_corpus_without_gold_roles_has_no_scores(vocab, tmp_path):
    path = tmp_path / "x.gold_conll"
    path.write_text("x 0 0 Mary NNP (TOP* - - - - * -\nx 0 1 sings VBZ *) sing 02 - - * -\n")
    model = build(vocab).eval()
    model.forward_on_instances([_with_words(instance) for instance in SrlReader().read(path)])
    assert model.get_metrics() == model.get_metrics(reset=True) == {}
