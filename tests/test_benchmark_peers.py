"""Benchmarks against the models of allennlp-models: that both compute the same, and are scored."""

import json
import os
import shutil
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from allennlp.modules.augmented_lstm import AugmentedLstm
from allennlp.modules.seq2seq_encoders import StackedAlternatingLstmSeq2SeqEncoder

from tests.benchmark_scripts import modules

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures/experiments"
tasks, task_peers, peer_scores = (modules[n] for n in ("tasks", "task_peers", "peer_scores"))
needs_peers = pytest.mark.skipif(
    not task_peers.find_peers(os.environ.get("ELMO_PEERS")), reason="needs allennlp-models"
)
needs_perl = pytest.mark.skipif(not shutil.which("perl"), reason="needs Perl")
WITH_PERL = pytest.param("srl", marks=needs_perl)


def task_with_peer(name):
    return replace(tasks.TASKS[name], without_elmo=FIXTURES / f"{name}.jsonnet", with_elmo=None)


@pytest.fixture
def ours_and_peer(tmp_path):
    """The trainer of our model, the peer, and the function that makes its batches."""

    def build(name, num_instances=20):
        task = task_with_peer(name)
        params = tasks.render(task.without_elmo, "{}", num_instances)
        trainer = tasks.build_trainer(params, tmp_path / "ours", task, num_instances)
        return trainer, *task_peers.PEERS[task.peer or name](trainer.model)

    return build


def same_as_ours(monkeypatch, peer):
    """A peer that is our model."""
    monkeypatch.setitem(
        task_peers.PEERS, peer, lambda ours: task_peers.Peer(deepcopy(ours), lambda batch: batch)
    )


@pytest.mark.parametrize(
    "name, peer, instances, batch_size, predicted",
    [
        ("ner", "crf_tagger", "sentences", 8, [1, 3]),
        ("squad", "bidaf", "questions", 8, [1, 3]),
        ("coref", "coref", "documents", 1, [1]),
    ],
)
def test_memory_training_and_prediction_are_compared(
    monkeypatch, name, peer, instances, batch_size, predicted
):
    same_as_ours(monkeypatch, peer)
    monkeypatch.setattr(tasks, "PREDICTED", 3)
    # So small a model may take no memory that is not there.
    monkeypatch.setattr(tasks, "added_memory", lambda run: run(0) or 1.0)
    task = task_with_peer(name)
    rows = list(tasks.measure_steps(task, num_instances=20 if predicted[1:] else 4, turns=1))
    steps = [f"{name.upper()} training, batch {batch_size}"]
    steps += [f"{name.upper()} prediction, batch {number}" for number in predicted]
    plain, bfloat16 = rows[-2 * len(steps) :: 2], rows[1 - 2 * len(steps) :: 2]
    assert [row.unit for row in rows[: -2 * len(steps)]] == ["MB"] * task.large
    assert [row.name for row in plain] == [f"{step}, against {peer}" for step in steps]
    assert {(row.unit, row.floor) for row in plain} == {(f"{instances}/s", ">= 1x")}
    assert all(row.name.startswith(step) for row, step in zip(bfloat16, steps, strict=True))
    assert {(row.floor, row.aim) for row in bfloat16} == {(None, None)}


def test_without_allennlp_models_their_rows_are_left_out_and_the_cure_is_said(monkeypatch, capsys):
    monkeypatch.setattr(task_peers.util, "find_spec", lambda name: None)
    monkeypatch.setattr("sys.argv", ["tasks.py", "--task", "ner", "--of", "steps"])
    tasks.main()
    (line,) = capsys.readouterr().out.splitlines()
    assert "pip install --no-deps --target FOLDER allennlp-models==2.10.1" in line


@needs_peers
@pytest.mark.parametrize("name", ["ner", "sst", "snli", "squad", WITH_PERL])
def test_a_peer_has_as_many_weights_and_the_same_instances_to_read(name, ours_and_peer):
    trainer, model, convert = ours_and_peer(name)
    if name != "squad":
        sizes = [
            sum(weight.numel() for weight in each.parameters() if weight.dim() > 1)
            for each in (trainer.model, model)
        ]
        # Vectors that ours keeps for words that only prediction meets.
        extra = trainer.model.text_field_embedder.token_embedder_words.extra.numel()
        if name == "srl":
            # Ours also has weights for padding and for the unknown role.
            extra += 2 * trainer.model.encoder.get_output_dim()
        assert sizes[0] - extra == sizes[1]
    else:
        assert model._phrase_layer.get_output_dim() == trainer.model.encoder.get_output_dim()
    for batch in trainer.data_loader:
        theirs = convert(batch)
        if name == "srl":
            for row, each in zip(theirs["tags"].tolist(), theirs["metadata"]):
                roles = [model.vocab.get_token_from_index(tag, "labels") for tag in row]
                assert roles[: len(each["words"])] == each["gold_tags"]
        outputs = model.make_output_human_readable(model(**theirs))
        answers = {"label", "tags", "best_span_str"} & set(outputs)
        assert outputs["loss"] > 0.0 and answers
        assert all(len(outputs[name]) == len(batch["metadata"]) for name in answers)


@needs_peers
def test_the_peer_of_coreference_has_the_same_documents_and_spans_to_read(ours_and_peer):
    trainer, model, convert = ours_and_peer("coref", 8)
    ours = trainer.model
    ours.max_training_sentences = 3
    span_dim = model._mention_feedforward._module.get_input_dim()
    assert sum(ours.mention_scorer.feedforward.input_dims) == span_dim
    for batch in trainer.data_loader:
        (metadata,) = batch["metadata"]
        tokens = sum(metadata["sentences"][:3], [])
        theirs = convert(batch)
        assert theirs["metadata"][0]["original_text"] == tokens
        ids = theirs["text"]["words"]["tokens"][0].tolist()
        words = [ours.vocab.get_token_from_index(index, "tokens") for index in ids]
        assert all(word in ("@@UNKNOWN@@", token.lower()) for word, token in zip(words, tokens))
        mentions = theirs["spans"][0][theirs["span_labels"][0] >= 0].tolist()
        gold = {tuple(row[:2]) for row in batch["gold_mentions"][0].tolist()}
        assert set(map(tuple, mentions)) == {
            (start, end) for start, end in gold if end < len(tokens) and end - start < 10
        }
        outputs = model.make_output_human_readable(model(**theirs))
        assert outputs["loss"].isfinite() and len(outputs["clusters"]) == 1


@needs_peers
@pytest.mark.parametrize("name", ["squad", WITH_PERL, "coref"])
def test_the_fast_computation_of_a_peer_changes_no_result(name, ours_and_peer):
    trainer, model, convert = ours_and_peer(name, 8)
    fast = deepcopy(model)
    modules["fast_peers"].accelerate(fast)
    assert list(fast.state_dict()) == list(model.state_dict())
    for each in (model, fast):
        for module in each.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
            if isinstance(module, AugmentedLstm):
                module.recurrent_dropout_probability = 0.0
    for batch in trainer.data_loader:
        for train in (True, False):
            results = []
            for each in (model.train(train), fast.train(train)):
                each.zero_grad()
                with torch.set_grad_enabled(train):
                    loss = each(**convert(batch))["loss"]
                if train:
                    loss.backward()
                grads = {name: weight.grad for name, weight in each.named_parameters()}
                results.append({"loss": loss.detach(), **grads})
            expected, found = results
            for key, value in expected.items():
                if value is None:
                    assert found[key] is None
                    continue
                # Rounding errors are those of the largest elements.
                tolerance = 1e-5 * value.abs().max().item() + 1e-7
                torch.testing.assert_close(found[key], value, rtol=1e-5, atol=tolerance)


@pytest.mark.parametrize("num_layers", [1, 4])
@pytest.mark.parametrize("train", [True, False])
def test_the_fast_highway_lstm_has_the_recurrent_dropout_of_allennlp(num_layers, train):
    torch.manual_seed(0)
    slow = StackedAlternatingLstmSeq2SeqEncoder(
        12, 10, num_layers, recurrent_dropout_probability=0.4, use_input_projection_bias=False
    )
    fast = modules["fast_peers"].FastHighwayLstm(deepcopy(slow._module))
    lengths = torch.tensor([5, 9, 3, 11, 1, 7])
    mask = torch.arange(11) < lengths.unsqueeze(1)
    inputs, weight = torch.randn(6, 11, 12), torch.randn(6, 11, 10)
    results = []
    for encoder in (slow.train(train), fast.train(train)):
        given = inputs.clone().requires_grad_()
        # The same dropout masks.
        torch.manual_seed(1)
        outputs = encoder(given, mask)
        (outputs * weight).sum().backward()
        results.append([outputs, given.grad, *(each.grad for each in encoder.parameters())])
    for expected, found in zip(*results):
        tolerance = 1e-5 * expected.abs().max().item()
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=tolerance)


def peer_arguments(**changes):
    chosen = {"columns": ["trained vectors"], "fractions": None, "study": "table1"}
    return SimpleNamespace(**{"epochs": 1, "patience": 1, "seeds": [1], **chosen, **changes})


def test_a_peer_is_evaluated_on_all_sentences_and_not_on_phrases():
    (run,) = peer_scores.runs_of("SST", peer_arguments())
    assert run["column"] == "trained vectors"
    run["experiment"]["validation_dataset_reader"]["max_instances"] = 2
    num_sentences = len(Path(run["evaluate"]).read_text().splitlines())
    assert len(list(peer_scores.test_data(run).iter_instances())) == num_sentences > 2


def test_runs_of_a_peer_of_another_study_or_with_other_epochs_or_patience_are_others():
    folders = set()
    for epochs, patience in ((1, 1), (2, 1), (2, 2)):
        (run,) = peer_scores.runs_of("NER", peer_arguments(epochs=epochs, patience=patience))
        for study in ("table1", "table2"):
            identity = peer_scores.identity(run, "crf_tagger", study)
            folders.add(peer_scores.folder_of(identity, Path("scores.json")))
    assert len(folders) == 6


@needs_peers
def test_scores_of_a_peer_are_kept_and_not_made_again(tmp_path, monkeypatch, capsys):
    output = tmp_path / "scores.json"
    command = "peer_scores.py --task ner --seeds 1 --epochs 1 --output".split()
    monkeypatch.setattr("sys.argv", [*command, str(output)])
    peer_scores.main()
    scores = json.loads(output.read_text())["scores"]
    assert [(score["peer"], score["column"]) for score in scores] == [
        ("crf_tagger", "fixed vectors"),
        ("crf_tagger", "trained vectors"),
    ]
    assert all(0 <= score[part] <= 1 for score in scores for part in ("dev", "test"))
    assert all(score["epochs"] == 1 for score in scores)
    before = output.stat().st_mtime_ns
    readme = tmp_path / "README.md"
    readme.write_text("a\n<!-- peers -->\n<!-- /peers -->\nb\n")
    monkeypatch.setattr("sys.argv", [*command, str(output), "--update", str(readme)])
    capsys.readouterr()
    peer_scores.main()
    assert output.stat().st_mtime_ns == before
    printed = capsys.readouterr().out
    assert readme.read_text() == f"a\n<!-- peers -->\n\n{printed}\n<!-- /peers -->\nb\n"
