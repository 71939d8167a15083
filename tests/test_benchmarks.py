"""Benchmarks at sizes that say nothing of speed: that they run, and give the rows they should."""

import json
import math
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

from elmo_plugin import BilmOptions
from elmo_plugin.bilm import CharacterMap
from elmo_plugin.util import bfloat16
from tests.benchmark_scripts import FOLDER, MEASURING, make_row, modules

PROJECT = Path(__file__).resolve().parent.parent
TEXT = PROJECT / "fixtures/corpora/lm/small/train.txt"
common, embed, tasks = modules["common"], modules["embed"], modules["tasks"]
scale = modules["scale"]
task_peers = modules["task_peers"]
needs_peers = pytest.mark.skipif(
    not task_peers.find_peers(os.environ.get("ELMO_PEERS")), reason="needs allennlp-models"
)


def test_all_floors_and_aims_can_be_evaluated():
    requirements = [
        *embed.REQUIREMENTS.values(),
        *modules["layers"].REQUIREMENTS.values(),
        *modules["pretrain"].REQUIREMENTS.values(),
        *modules["srl_encoder"].REQUIREMENTS.values(),
        (modules["neighbours"].FLOOR, None),
        (modules["encoders"].FLOOR, None),
        (tasks.FLOOR, tasks.AIM),
        (tasks.STEPS_FLOOR, tasks.STEPS_AIM),
        (modules["probes"].FLOOR, None),
    ]
    for floor, aim in requirements:
        row = make_row(share_of_limit=0.5, floor=floor, aim=aim)
        # What reaches its aim has reached its floor, unless they are of different figures.
        best = make_row(ours=1e9 if (aim or floor).startswith(">=") else 1e-9, share_of_limit=1.0)
        assert row.floor is None or best.meets(row.floor)
        assert row.aim is None or best.meets(row.aim)


@pytest.mark.parametrize("name", [*MEASURING, "table", "time_shares"])
def test_help_has_an_example(name, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", [f"{name}.py", "--help"])
    with pytest.raises(SystemExit) as stopped:
        modules[name].main()
    assert stopped.value.code == 0
    assert f"    python benchmarks/{name}.py" in capsys.readouterr().out


@pytest.mark.parametrize("has_bfloat16", [True, False])
def test_layers_are_compared_with_those_of_allennlp_and_pytorch(monkeypatch, capsys, has_bfloat16):
    monkeypatch.setattr(bfloat16, "CPU_HAS_BFLOAT16", has_bfloat16)
    arguments = ["--size", "tiny", "--batch-size", "2", "--turns", "1"]
    monkeypatch.setattr("sys.argv", ["layers.py", *arguments])
    modules["layers"].main()
    rows = [line for line in capsys.readouterr().out.splitlines() if "batch 2 x 25" in line]
    assert len(rows) == 4 and all("x" in row and "% " in row for row in rows)


def test_a_probe_is_compared_with_reading_its_vectors_and_the_solver():
    rows = list(modules["probes"].measure(number=10, turns=1))
    assert [row.name for row in rows] == [
        "Probe of tags, 200 words, 1,024 numbers each",
        "Probe of word senses, 200 words, 1,024 numbers each",
    ]
    assert {(row.unit, row.floor) for row in rows} == {("s", "<= 2x")}


def test_embed_gives_a_row_for_each_size_batch_and_dtype(monkeypatch, tmp_path, capsys):
    output = tmp_path / "results.json"
    arguments = ["--size", "tiny", "--batch-size", "1", "2", "--turns", "1"]
    monkeypatch.setattr("sys.argv", ["embed.py", str(TEXT), *arguments, "--output", str(output)])
    monkeypatch.setattr(embed, "product_rate", lambda dtype, device: 1e9)
    monkeypatch.setattr(embed, "read_bandwidth", lambda device: 1e9)
    embed.main()
    rows = {row.name: row for row in common.read_rows(output)}
    for batch_size in (1, 2):
        for dtype in embed.load_pair("tiny").ours:
            for order in ("", ", similar length") if batch_size > 1 else ("",):
                row = rows.pop(f"biLM inference, tiny, batch {batch_size}{order}, {dtype}")
                assert row.ratio > 0 and row.share_of_limit > 0
    assert rows["biLM inference, tiny, float32: largest error of a layer"].meets("<= 1e-5 relative")
    assert all("largest error" in name for name in rows)
    assert all(name in capsys.readouterr().out for name in list(rows)[:1])


def test_batches_of_like_length_are_spread_over_the_turns():
    sentences = [["word"] * length for length in (5, 1, 8, 2, 7, 3, 6, 4)]
    found = embed.of_like_length(sentences, batch_size=2, per_turn=4)
    assert [len(words) for words in found] == [1, 2, 5, 6, 3, 4, 7, 8]


def test_workers_are_compared_by_the_second_half_of_a_text(monkeypatch, tmp_path):
    workers = modules["workers"]
    fastest = {
        "1 workers": (14.0, 24.0),
        "2 workers": (10.0, 15.0),
        "side by side": (5.0, 9.0),
        "1 tasks": (20.0, 40.0),
        "2 tasks": (20.0, 30.0),
    }

    def turns_of(runs, turns):
        assert list(runs) == [f"{size} {name}" for size in ("half", "whole") for name in fastest]
        return {
            f"{size} {name}": [seconds + 1.0, seconds]
            for name, both in fastest.items()
            for size, seconds in zip(("half", "whole"), both)
        }

    monkeypatch.setattr(workers, "by_turns", turns_of)
    monkeypatch.setattr(workers, "find_spec", lambda name: True)
    rows = list(workers.measure([["word"] * 10] * 4, 2, tmp_path))
    assert [(row.ours, row.peer) for row in rows] == [(4.0, 2.0), (2.0, 1.0)]
    assert [row.share_of_limit for row in rows] == [0.8, 0.4]
    lines = (tmp_path / "whole/text").read_text().splitlines()
    assert lines == 4 * [" ".join(10 * ["word"])]


def test_score_has_a_row(monkeypatch, capsys):
    monkeypatch.delenv("ELMO_OPTIONS")
    monkeypatch.delenv("ELMO_WEIGHTS")
    arguments = ["score.py", str(TEXT), "--sentences", "3", "--turns", "1"]
    monkeypatch.setattr("sys.argv", arguments)
    modules["score"].main()
    assert "Surprisal, 50,000 words" in capsys.readouterr().out


def test_the_needed_arithmetic_is_that_of_the_published_size(monkeypatch):
    options = BilmOptions.from_dict(modules["bilms"].options_of("full"))
    bilm = SimpleNamespace(options=options, characters=CharacterMap.from_options(options))
    monkeypatch.setattr(embed, "product_rate", lambda dtype, device: 1.0)
    monkeypatch.setattr(embed, "read_bandwidth", lambda device: math.inf)
    sentence = [f"word{number}" for number in range(48)]

    def operations(*sentences):
        batch = bilm.characters.batch_ids([list(words) for words in sentences])
        return embed.needed_seconds(bilm, [batch], "float32")

    # Both directions, two layers, each 4 gates of 4096 x (512 + 512) and 4096 x 512; times 2.
    lstm = 50 * 2 * 2 * 2 * (4 * 4096 * 1024 + 4096 * 512)
    # Per word two highways of 2 x 2048 x 2048, the projection, and the filters at each character.
    filters = sum(width * number for width, number in options.char_cnn.filters) * 16
    num_characters = sum(len(word) + 2 for word in sentence)
    highways = 48 * 2 * (2 * 2 * 2048 * 2048 + 2048 * 512)
    expected = lstm + highways + 2 * num_characters * filters
    assert operations(sentence) == pytest.approx(expected, rel=1e-6)
    # A word that comes again is not encoded again.
    assert operations(sentence, sentence) == pytest.approx(expected + lstm, rel=1e-6)


def test_latency_gives_median_and_percentile_of_both_inputs():
    rows = list(modules["latency"].measure(TEXT, ["tiny"], 2))
    names = [row.name for row in rows if "float32" in row.name]
    assert names == [
        "Latency, tiny, text, float32, median",
        "Latency, tiny, text, float32, 95th percentile",
        "Latency, tiny, 20 tokens, float32, median",
        "Latency, tiny, 20 tokens, float32, 95th percentile",
        "Latency, tiny, float32: largest error of a layer",
    ]
    assert {row.unit for row in rows} == {"ms/sentence", "relative"}
    assert modules["latency"].percentile_95([float(value) for value in range(101)]) == 95.0


def test_neighbours_are_measured_against_a_product():
    rows = list(modules["neighbours"].measure(10_000, 1))
    assert [row.name for row in rows] == [
        "Neighbours of 1 word, 10,000 contexts",
        "Neighbours of 20 words, 10,000 contexts",
    ]
    assert all(row.ratio > 0 and row.unit == "s" for row in rows)


def test_pretraining_gives_a_row_for_each_dtype():
    setting = modules["pretrain"].Setting("tiny", batch_size=4, num_samples=20, num_words=60)
    rows = list(modules["pretrain"].measure(TEXT, setting, 1))
    assert [row.name for row in rows] == [
        "biLM pre-training, tiny, batch 4 x 20, float32",
        "biLM pre-training, tiny, batch 4 x 20, bfloat16",
    ]
    assert all(row.ratio and row.share_of_limit for row in rows)
    assert rows[0].peer == rows[1].peer


def test_pretraining_says_what_text_it_needs():
    message = "expected 2 batches of 128 x 20 tokens and more than 8,192 different words, found"
    with pytest.raises(SystemExit, match=message):
        list(modules["pretrain"].measure(TEXT, modules["pretrain"].Setting(), 1))


def test_the_srl_encoder_gives_a_row_for_each_dtype():
    shape = modules["srl_encoder"].Shape(input_size=6, hidden_size=4, num_layers=2)
    rows = list(modules["srl_encoder"].measure(shape, batch_size=3, turns=1))
    assert [row.name for row in rows] == [
        f"SRL encoder, 2 x 4, batch 3, forward and backward, {dtype}"
        for dtype in ("float32", "bfloat16")
    ]


def test_encoders_are_compared_with_those_of_allennlp(monkeypatch):
    monkeypatch.setattr(modules["encoders"], "WIDTH", 4)
    rows = list(modules["encoders"].measure(batch_size=3, turns=1, device="cpu"))
    assert [row.name for row in rows] == [
        f"{name}, 4 cells, batch 3, training, {dtype}"
        for name in ("elmo-bilstm", "elmo-bigru", "elmo-highway-lstm")
        for dtype in ("float32", "bfloat16")
    ]
    assert all(row.peer > 0 for row in rows)


def test_the_cache_is_compared_with_other_stores_in_writing_and_reading():
    rows = list(modules["cache_stores"].measure(number=20, turns=1))
    assert [row.unit for row in rows] == ["MB"] + ["MB/s"] * 6
    # Pages of 4 KB, the first of which hold the store's own.
    assert 1.0 < rows[0].ratio < 2.0


def test_memory_is_that_of_the_reading_alone(monkeypatch):
    # Where the processes find the script.
    monkeypatch.syspath_prepend(FOLDER)
    rows = list(modules["memory"].measure("tiny", num_tokens=200))
    assert [row.peer is not None for row in rows] == [True, False, False]
    # Ten times the tokens; interpreter, torch and AllenNLP take hundreds.
    assert 0.0 < rows[0].ours < rows[1].ours < 100.0


def test_scale_compares_the_cost_and_the_memory_of_texts_of_several_sizes(monkeypatch, tmp_path):
    # Where the processes find the script.
    monkeypatch.syspath_prepend(FOLDER)
    output, picture = tmp_path / "results.json", tmp_path / "scale.svg"
    arguments = [str(TEXT), "--part", "neighbours", "--tokens", "6000", "2000"]
    options = ["--output", str(output), "--plot", str(picture)]
    monkeypatch.setattr("sys.argv", ["scale.py", *arguments, *options])
    scale.main()
    rows = common.read_rows(output)
    assert [(row.name, row.unit, row.peer is not None) for row in rows] == [
        (f"Scale, {name}, {size} tokens{of}", unit, size == "6,000")
        for size in ("2,000", "6,000")
        for name in ("building an index", "a query")
        for of, unit in (("", "µs/token"), (", RAM", "MB"))
    ]
    assert [row.peer for row in rows[4:]] == [row.ours for row in rows[:4]]
    assert all(0.0 < row.share_of_limit <= 1.0 for row in rows[::2])
    drawn = picture.read_text()
    assert "building an index" in drawn and "embedding" not in drawn


@pytest.mark.parametrize("part", ["embed", "cache", "train"])
def test_a_part_of_scale_works_in_this_process_too(part, tmp_path):
    text = tmp_path / scale.WARM_UP_TEXT
    scale.write_text([TEXT], 6000, text)
    (tmp_path / "output").mkdir()
    for work in scale.PARTS[part].values():
        work(text, tmp_path / "output")
    expected = {"embed": "vectors.hdf5", "cache": "data.mdb", "train": "metrics_epoch_0.json"}
    assert (tmp_path / "output" / expected[part]).exists()


def test_the_texts_of_scale_have_exactly_so_many_tokens_and_repeat(tmp_path):
    short, empty, output = (tmp_path / name for name in ("short", "empty", "output"))
    short.write_text("a b c\n\nd e\n")
    empty.write_text("\n")
    scale.write_text([empty, short], 9, output)
    assert output.read_text() == "a b c\nd e\na b c\nd\n"
    with pytest.raises(SystemExit, match="empty: expected a text, found no word"):
        scale.write_text([empty], 9, output)


def test_startup_compares_a_folder_with_the_plugin_to_one_without(monkeypatch):
    startup, calls = modules["startup"], []

    def run_allennlp(folder, arguments, turn=None):
        plugins = folder / ".allennlp_plugins"
        calls.append((plugins.exists() and plugins.read_text(), tuple(arguments)))
        return "train  test-install"

    monkeypatch.setattr(startup, "run_allennlp", run_allennlp)
    whole, added = startup.measure(1)
    assert set(calls) == {(False, ("--help",)), ("elmo_plugin.plugin\n", ("elmo", "--help"))}
    assert added.ours == pytest.approx(whole.ours - whole.peer)
    assert added.floor == "<= 0.3 s"
    monkeypatch.setattr(startup, "run_allennlp", lambda *_: "  elmo   write vectors")
    with pytest.raises(SystemExit, match="loads the plugin in an empty folder"):
        list(startup.measure(1))


def test_large_pages_are_measured_in_processes_with_and_without_them(monkeypatch):
    large_pages, variables = modules["large_pages"], []

    def finished(arguments, env, **_):
        assert arguments[2:] == ["--seconds", "coref", "--instances", "50"]
        variables.append((env.get("GLIBC_TUNABLES"), env["OMP_NUM_THREADS"]))
        return SimpleNamespace(stdout=f"a line of a library\n{len(variables)}.5\n")

    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.hugetlb=2")
    monkeypatch.setattr(large_pages.subprocess, "run", finished)
    (row,) = large_pages.measure("coref", 300, turns=3)
    assert variables == 3 * [("glibc.malloc.hugetlb=1", "1"), (None, "1")]
    assert (row.ours, row.peer, row.unit) == (3.5, 4.5, "s")


def test_the_epoch_of_large_pages_trains():
    assert modules["large_pages"].seconds_of_epoch("sst", 8) > 0.0


@pytest.fixture
def small_task():
    folder = PROJECT / "fixtures" / "experiments"
    return tasks.Task("SRL", folder / "srl.jsonnet", folder / "srl_elmo.jsonnet", "predicates")


def test_a_task_is_measured_without_elmo_with_it_and_with_its_cache(small_task):
    rows = list(tasks.measure(small_task, num_instances=20, num_epochs=2))
    assert [row.name.removeprefix("SRL training epoch, 20 predicates, ELMo ") for row in rows] == [
        "computed",
        "cached, first epoch",
        "cached, later epochs",
    ]
    assert rows[0].peer == rows[1].peer == rows[2].peer
    assert [row.floor for row in rows] == [None, None, "<= 1.25x"]


def test_a_task_says_what_it_needs(small_task, tmp_path):
    with pytest.raises(SystemExit, match="at least 2,000 predicates to train on, found 82"):
        tasks.build_variants(small_task, tmp_path, 2000)


def task_with_peer(name):
    task = tasks.TASKS[name]
    fixture = PROJECT / "fixtures" / "experiments" / f"{name}.jsonnet"
    return replace(task, without_elmo=fixture, with_elmo=None)


@pytest.mark.parametrize(
    "name, peer, instances",
    [("ner", "crf_tagger", "sentences"), ("squad", "bidaf", "questions")],
)
def test_training_and_prediction_are_compared_at_one_and_at_many_instances(
    monkeypatch, name, peer, instances
):
    monkeypatch.setitem(
        tasks.PEERS, peer, lambda ours: task_peers.Peer(deepcopy(ours), lambda batch: batch)
    )
    monkeypatch.setattr(tasks, "PREDICTED", 3)
    # So small a model may take no memory that is not there.
    monkeypatch.setattr(tasks, "added_memory", lambda run: run(0) or 1.0)
    task = task_with_peer(name)
    rows = list(tasks.measure_steps(task, num_instances=20, turns=1))
    memory, steps = rows[:-6], rows[-6:]
    assert [row.unit for row in memory] == ["MB"] * task.large
    assert [row.name.removesuffix(f", against {peer}") for row in steps] == [
        f"{name.upper()} training, batch 8",
        f"{name.upper()} training, batch 8, mixed precision",
        f"{name.upper()} prediction, batch 1",
        f"{name.upper()} prediction, batch 1, bfloat16",
        f"{name.upper()} prediction, batch 3",
        f"{name.upper()} prediction, batch 3, bfloat16",
    ]
    expected = {(f"{instances}/s", ">= 1x", ">= 2x")}
    assert {(row.unit, row.floor, row.aim) for row in steps[::2]} == expected
    assert {(row.floor, row.aim) for row in steps[1::2]} == {(None, None)}


def test_documents_are_read_one_by_one_and_memory_is_measured(monkeypatch):
    monkeypatch.setitem(
        tasks.PEERS, "coref", lambda ours: task_peers.Peer(deepcopy(ours), lambda batch: batch)
    )
    # As above.
    monkeypatch.setattr(tasks, "added_memory", lambda run: run(0) or 1.0)
    rows = tasks.measure_steps(task_with_peer("coref"), num_instances=4, turns=1)
    assert [(row.name, row.unit, row.floor) for row in rows] == [
        ("COREF training, memory of a step, against coref", "MB", "<= 1x"),
        ("COREF training, batch 1, against coref", "documents/s", ">= 1x"),
        ("COREF training, batch 1, mixed precision, against coref", "documents/s", None),
        ("COREF prediction, batch 1, against coref", "documents/s", ">= 1x"),
        ("COREF prediction, batch 1, bfloat16, against coref", "documents/s", None),
    ]


def test_added_memory_is_what_a_run_takes_at_most():
    assert 40 <= tasks.added_memory(lambda turn: torch.ones(50 * 2**18).sum()) <= 70


def test_without_allennlp_models_their_rows_are_left_out_and_the_cure_is_said(monkeypatch, capsys):
    monkeypatch.setattr(task_peers.util, "find_spec", lambda name: None)
    monkeypatch.setattr("sys.argv", ["tasks.py", "--task", "ner", "--of", "steps"])
    tasks.main()
    (line,) = capsys.readouterr().out.splitlines()
    assert "pip install --no-deps --target FOLDER allennlp-models==2.10.1" in line


@needs_peers
@pytest.mark.parametrize("name", ["ner", "sst", "snli"])
def test_a_peer_has_as_many_weights_and_the_same_instances_to_read(name, tmp_path):
    task = task_with_peer(name)
    params = tasks.render(task.without_elmo, "{}", 20)
    trainer = tasks.build_trainer(params, tmp_path / "ours", task, 20)
    model, convert = tasks.PEERS[task.peer](trainer.model)
    sizes = [
        sum(weight.numel() for weight in each.parameters() if weight.dim() > 1)
        for each in (trainer.model, model)
    ]
    # Vectors that ours keeps for words that only prediction meets.
    extra = trainer.model.text_field_embedder.token_embedder_words.extra.numel()
    assert sizes[0] - extra == sizes[1]
    for batch in trainer.data_loader:
        outputs = model.make_output_human_readable(model(**convert(batch)))
        assert outputs["loss"] > 0.0
        assert len(batch["metadata"]) == len(outputs["label" if "label" in outputs else "tags"])


@needs_peers
def test_the_peer_of_question_answering_has_the_same_questions_to_read(tmp_path):
    task = task_with_peer("squad")
    trainer = tasks.build_trainer(
        tasks.render(task.without_elmo, "{}", 20), tmp_path / "ours", task, 20
    )
    model, convert = tasks.PEERS[task.peer](trainer.model)
    assert model._phrase_layer.get_output_dim() == trainer.model.encoder.get_output_dim()
    for batch in trainer.data_loader:
        outputs = model.make_output_human_readable(model(**convert(batch)))
        assert outputs["loss"] > 0.0 and len(outputs["best_span_str"]) == len(batch["metadata"])


@needs_peers
@pytest.mark.skipif(not shutil.which("perl"), reason="needs Perl")
def test_the_peer_of_role_labelling_has_the_same_weights_and_roles_and_is_scored(tmp_path):
    task = task_with_peer("srl")
    params = tasks.render(task.without_elmo, "{}", 20)
    trainer = tasks.build_trainer(params, tmp_path / "ours", task, 20)
    ours = trainer.model
    model, convert = task_peers.PEERS["srl"](ours)
    hidden_dim = ours.encoder.get_output_dim()
    sizes = [sum(weight.numel() for weight in each.parameters()) for each in (ours, model)]
    extra = ours.text_field_embedder.token_embedder_words.extra.numel()
    # Ours also has weights and biases for padding and for the unknown role.
    assert sizes[0] - extra - 2 * (hidden_dim + 1) == sizes[1]
    for batch in trainer.data_loader:
        theirs = convert(batch)
        for row, each in zip(theirs["tags"].tolist(), theirs["metadata"]):
            roles = [model.vocab.get_token_from_index(tag, "labels") for tag in row]
            assert roles[: len(each["words"])] == each["gold_tags"]
            assert theirs["verb_indicator"].sum() == len(batch["metadata"])
        outputs = model.eval()(**theirs)
        assert outputs["loss"] > 0.0
        decoded = model.make_output_human_readable(outputs)["tags"]
        assert [len(tags) for tags in decoded] == [len(each["words"]) for each in batch["metadata"]]
    assert 0.0 <= model.get_metrics()["f1-measure-overall"] <= 1.0


@needs_peers
def test_the_peer_of_coreference_has_the_same_documents_and_spans_to_read(tmp_path):
    task = task_with_peer("coref")
    trainer = tasks.build_trainer(
        tasks.render(task.without_elmo, "{}", 8), tmp_path / "ours", task, 8
    )
    ours = trainer.model
    model, convert = tasks.PEERS[task.peer](ours)
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
@pytest.mark.parametrize(
    "name",
    [
        "squad",
        pytest.param(
            "srl", marks=pytest.mark.skipif(not shutil.which("perl"), reason="needs Perl")
        ),
        "coref",
    ],
)
def test_the_fast_computation_of_a_peer_changes_no_result(name, tmp_path):
    task = task_with_peer(name)
    params = tasks.render(task.without_elmo, "{}", 8)
    trainer = tasks.build_trainer(params, tmp_path / "ours", task, 8)
    model, convert = task_peers.PEERS[task.peer or name](trainer.model)
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


def test_the_experiments_of_all_tasks_differ_from_the_published_ones_in_data_and_cache_only():
    for task in tasks.TASKS.values():
        for experiment in (task.without_elmo, task.with_elmo):
            params = tasks.render(experiment, "{}", 7).as_dict(quiet=True)
            published = tasks.Params.from_file(experiment).as_dict(quiet=True)
            assert params["dataset_reader"].pop("max_instances") == 7
            del published["validation_data_path"]
            assert params == published
        settings = "{ elmo+: { cache: '/some/folder' } }"
        params = tasks.render(task.with_elmo, settings, 7).as_dict(quiet=True)
        assert params["model"]["placement"]["elmo"]["cache"] == "/some/folder"


@pytest.mark.parametrize(
    "name, kind",
    [
        ("aten::addmm", "products"),
        ("aten::mkldnn_convolution", "products"),
        ("aten::_int_mm", "products"),
        ("aten::sigmoid_", "elementwise"),
        ("aten::add", "elementwise"),
        ("aten::index_select", "moving"),
        ("aten::copy_", "moving"),
        ("aten::_pack_padded_sequence", "moving"),
        ("part: LSTMs", "the rest"),
        ("autograd::engine::evaluate_function: AddmmBackward0", "the rest"),
    ],
)
def test_an_operation_has_a_kind(name, kind):
    assert modules["time_shares"].kind_of(name) == kind


def test_the_backward_pass_counts_to_the_part_whose_gradient_it_computes():
    shares = modules["time_shares"]
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 64))
    shares.mark(model[0], "first")
    shares.mark(model[2], "second")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    activities = [shares.ProfilerActivity.CPU]
    with shares.profile(activities=activities) as profiler, shares.record_function("part: other"):
        for batch in shares.MarkedData([torch.randn(8, 64), torch.randn(8, 64)]):
            model(batch).sum().backward()
            optimizer.step()
    found = shares.shares_of(list(profiler.events()))
    assert sum(found.values()) == pytest.approx(1.0)
    assert {part for part, kind in found if kind == "products"} == {"first", "second"}
    assert {part for part, _ in found} == {"first", "second", "optimiser", "data", "other"}


def peer_arguments(fractions=None):
    chosen = {"columns": ["trained vectors"], "fractions": fractions, "study": "table1"}
    return SimpleNamespace(epochs=1, patience=1, seeds=[1], **chosen)


def test_a_peer_is_trained_on_the_smallest_share_of_the_data_or_on_those_chosen():
    runs_of = modules["peer_scores"].runs_of
    assert [run["fraction"] for run in runs_of("SNLI", peer_arguments())] == [0.2]
    assert [run["fraction"] for run in runs_of("SNLI", peer_arguments([0.2, 1]))] == [0.2, 1]


def test_a_peer_is_trained_for_baselines_and_not_for_models_with_elmo():
    arguments = peer_arguments()
    arguments.columns = None
    runs_of = modules["peer_scores"].runs_of
    assert {run["column"] for run in runs_of("SQuAD", arguments)} == {
        "fixed vectors",
        "trained vectors",
    }
    arguments.study = "table2"
    assert [run["column"] for run in runs_of("SQuAD", arguments)] == ["baseline"]


def test_a_peer_is_evaluated_on_all_sentences_and_not_on_phrases():
    peer_scores = modules["peer_scores"]
    (run,) = peer_scores.runs_of("SST", peer_arguments())
    assert run["column"] == "trained vectors"
    run["experiment"]["validation_dataset_reader"]["max_instances"] = 2
    num_sentences = len(Path(run["evaluate"]).read_text().splitlines())
    assert len(list(peer_scores.test_data(run).iter_instances())) == num_sentences > 2


def test_a_killed_run_of_a_peer_continues_and_has_the_same_scores(tmp_path, monkeypatch):
    peer_scores = modules["peer_scores"]
    monkeypatch.setitem(
        task_peers.PEERS, "crf_tagger", lambda ours: task_peers.Peer(deepcopy(ours), lambda x: x)
    )
    arguments = peer_arguments()
    arguments.epochs, arguments.columns = 3, ["fixed vectors"]

    def measure(folder):
        (run,) = peer_scores.runs_of("NER", arguments)
        return peer_scores.measure(run, "crf_tagger", folder)

    calls = []
    forward, stop_at = peer_scores.PeerModel.forward, math.inf

    def counting(self, **batch):
        calls.append(batch)
        if len(calls) == stop_at:
            raise KeyboardInterrupt
        return forward(self, **batch)

    monkeypatch.setattr(peer_scores.PeerModel, "forward", counting)
    whole = measure(tmp_path / "whole")
    # Before the last validation and the evaluation on test.
    num_calls, stop_at = len(calls), len(calls) - 2
    calls.clear()
    with pytest.raises(KeyboardInterrupt):
        measure(tmp_path / "killed")
    calls.clear()
    stop_at = math.inf
    assert measure(tmp_path / "killed") == whole
    assert len(calls) < num_calls


def test_runs_of_a_peer_of_another_study_or_with_other_epochs_or_patience_are_others():
    peer_scores = modules["peer_scores"]
    folders = set()
    for epochs, patience in ((1, 1), (2, 1), (2, 2)):
        arguments = peer_arguments()
        arguments.epochs, arguments.patience = epochs, patience
        (run,) = peer_scores.runs_of("NER", arguments)
        for study in ("table1", "table2"):
            identity = peer_scores.identity(run, "crf_tagger", study)
            folders.add(peer_scores.folder_of(identity, Path("scores.json")))
    assert len(folders) == 6


@needs_peers
def test_scores_of_a_peer_are_kept_and_not_made_again(tmp_path, monkeypatch, capsys):
    output = tmp_path / "scores.json"
    command = "peer_scores.py --task ner --seeds 1 --epochs 1 --output".split()
    monkeypatch.setattr("sys.argv", [*command, str(output)])
    modules["peer_scores"].main()
    scores = json.loads(output.read_text())
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
    modules["peer_scores"].main()
    assert output.stat().st_mtime_ns == before
    printed = capsys.readouterr().out
    assert readme.read_text() == f"a\n<!-- peers -->\n\n{printed}\n<!-- /peers -->\nb\n"
