import shutil

import torch
from allennlp.commands.train import train_model_from_file
from allennlp.models import load_archive

from tests.tasks.small import FIXTURES, build, make_batch


def test_answers_are_legal_and_never_padding_or_the_unknown_role(vocab, instances):
    torch.manual_seed(0)
    model = build("srl", vocab).eval()
    for index in (0, 1):
        with torch.no_grad():
            model.tag_projection.bias[index] = 100.0
    for tags in model(**make_batch(vocab, instances[:20], elmo=False))["tags"]:
        before = "O"
        for tag in tags:
            assert tag == "O" or tag[:2] in ("B-", "I-")
            assert tag[0] != "I" or before[2:] == tag[2:]
            before = tag


def test_a_role_that_training_never_saw_is_scored_but_not_learned_from(vocab, reader, tmp_path):
    path = tmp_path / "x.gold_conll"
    path.write_text(
        "x 0 0 Mary NNP (TOP* - - - - * (ARGM-NEW*) -\nx 0 1 sings VBZ *) sing 02 - - * (V*) -\n"
    )
    model = build("srl", vocab).eval()
    assert model(**make_batch(vocab, list(reader.read(path)), elmo=False))["loss"].isfinite()
    metrics = model.get_metrics(reset=True)
    assert metrics["recall-ARGM-NEW"] == 0.0
    logits = torch.randn(1, 2, len(model.tags), requires_grad=True)
    gold = torch.tensor([[model.unknown_role, model.tags.index("B-V")]])
    model.loss(logits, torch.ones(1, 2, dtype=torch.bool), gold).backward()
    assert not logits.grad[0, 0].any() and logits.grad[0, 1].any()


def test_an_archive_predicts_after_its_elmo_files_are_gone(tmp_path):
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
