"""Benchmarks at sizes that say nothing of speed: that they run, and give the rows they should."""

import math
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from elmo_plugin import BilmOptions
from elmo_plugin.bilm.characters import map_of
from elmo_plugin.util import bfloat16
from tests.benchmark_scripts import MEASURING, make_row, modules

PROJECT = Path(__file__).resolve().parent.parent
TEXT = PROJECT / "fixtures/corpora/lm/small/train.txt"
common, embed, tasks = modules["common"], modules["embed"], modules["tasks"]
scale, pretrain = modules["scale"], modules["pretrain"]
DTYPES = ("float32", "bfloat16")


@pytest.fixture
def run(monkeypatch, capsys):
    """Runs a script with arguments, and returns what it prints."""

    def run(name, *arguments):
        monkeypatch.setattr("sys.argv", [f"{name}.py", *map(str, arguments)])
        modules[name].main()
        return capsys.readouterr().out

    return run


def test_all_floors_and_aims_can_be_evaluated():
    found = [getattr(script, "REQUIREMENTS", {}) for script in modules.values()]
    assert sum(map(len, found)) > 10
    for requirements in found:
        for floor, aim in requirements.values():
            # Others are refused.
            make_row(share_of_limit=0.5, floor=floor, aim=aim)


@pytest.mark.parametrize("name", [*MEASURING, "table", "time_shares"])
def test_help_has_an_example(name, run, capsys):
    with pytest.raises(SystemExit) as stopped:
        run(name, "--help")
    assert stopped.value.code == 0
    assert f"    python benchmarks/{name}.py" in capsys.readouterr().out


# By script: how it is measured, and the names of its rows.
ROWS = {
    "probes": (
        lambda script: script.measure(number=10, turns=1),
        [f"Probe of {kind}, 200 words, 1,024 numbers each" for kind in ("tags", "word senses")],
    ),
    "latency": (
        lambda script: script.measure(TEXT, ["tiny"], 2),
        [
            f"Latency, tiny, {text}, {dtype}, {figure}"
            for dtype in embed.load_pair("tiny").ours
            for text in ("text", "20 tokens")
            for figure in ("median", "95th percentile")
        ],
    ),
    "neighbours": (
        lambda script: script.measure(10_000, 1),
        [f"Neighbours of {words}, 10,000 contexts" for words in ("1 word", "20 words")],
    ),
    "pretrain": (
        lambda script: script.measure(
            TEXT, script.Setting("tiny", batch_size=4, num_samples=20, num_words=60), 1
        ),
        [f"biLM pre-training, tiny, batch 4 x 20, {dtype}" for dtype in DTYPES],
    ),
    "srl_encoder": (
        lambda script: script.measure(
            script.Shape(input_size=6, hidden_size=4, num_layers=2), batch_size=3, turns=1
        ),
        [f"SRL encoder, 2 x 4, batch 3, forward and backward, {dtype}" for dtype in DTYPES],
    ),
    "encoders": (
        lambda script: script.measure(batch_size=3, turns=1, device="cpu"),
        [
            f"{name}, 4 cells, batch 3, training, {dtype}"
            for name in ("elmo-bilstm", "elmo-bigru", "elmo-highway-lstm")
            for dtype in DTYPES
        ],
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_a_script_gives_its_rows(monkeypatch, name):
    monkeypatch.setattr(modules["encoders"], "WIDTH", 4)
    measure, expected = ROWS[name]
    rows = [row for row in measure(modules[name]) if "largest error" not in row.name]
    assert sorted(row.name for row in rows) == sorted(expected)
    assert all(row.ours >= 0.0 for row in rows)


@pytest.mark.parametrize("has_bfloat16", [True, False])
def test_layers_are_compared_with_those_of_allennlp_and_pytorch(monkeypatch, run, has_bfloat16):
    monkeypatch.setattr(bfloat16, "CPU_HAS_BFLOAT16", has_bfloat16)
    printed = run("layers", "--size", "tiny", "--batch-size", 2, "--turns", 1)
    rows = [line for line in printed.splitlines() if "batch 2 x 25" in line]
    assert len(rows) == 4 and all("x" in row and "% " in row for row in rows)


def test_embed_gives_a_row_for_each_size_batch_and_dtype(monkeypatch, tmp_path, run):
    output = tmp_path / "results.json"
    monkeypatch.setattr(embed, "product_rate", lambda dtype, device: 1e9)
    monkeypatch.setattr(embed, "read_bandwidth", lambda device: 1e9)
    arguments = ["--size", "tiny", "--batch-size", 1, 2, "--turns", 1, "--output", output]
    printed = run("embed", TEXT, *arguments)
    rows = {row.name: row for row in common.read_rows(output)}
    assert next(iter(rows)) in printed
    for batch_size in (1, 2):
        for dtype in embed.load_pair("tiny").ours:
            for order in ("", ", similar length") if batch_size > 1 else ("",):
                row = rows.pop(f"biLM inference, tiny, batch {batch_size}{order}, {dtype}")
                assert row.ratio > 0 and row.share_of_limit > 0
    assert rows["biLM inference, tiny, float32: largest error of a layer"].meets("<= 1e-5 relative")
    assert all("largest error" in name for name in rows)


def test_score_has_a_row(monkeypatch, run):
    monkeypatch.delenv("ELMO_OPTIONS")
    monkeypatch.delenv("ELMO_WEIGHTS")
    assert "Surprisal, 50,000 words" in run("score", TEXT, "--sentences", 3, "--turns", 1)


def test_the_needed_arithmetic_is_that_of_the_published_size(monkeypatch):
    options = BilmOptions.from_dict(modules["bilms"].options_of("full"))
    bilm = SimpleNamespace(options=options, characters=map_of(options))
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


def test_the_cache_is_compared_with_other_stores_in_writing_and_reading():
    rows = list(modules["cache_stores"].measure(number=20, turns=1))
    assert [row.unit for row in rows] == ["MB"] + ["MB/s"] * 6
    # Pages of 4 KB, the first of which hold the store's own.
    assert 1.0 < rows[0].ratio < 2.0


def test_scale_compares_the_cost_and_the_memory_of_texts_of_several_sizes(
    monkeypatch, tmp_path, run
):
    def measure_work(name, work, num_tokens, texts, folder):
        folder.mkdir(exist_ok=True)
        return scale.Point(name, num_tokens, 2.0, 1.0, 8.0)

    monkeypatch.setattr(scale, "measure_work", measure_work)
    output, picture = tmp_path / "results.json", tmp_path / "scale.svg"
    options = ["--tokens", 6000, 2000, "--output", output, "--plot", picture]
    run("scale", TEXT, "--part", "neighbours", *options)
    rows = common.read_rows(output)
    assert [(row.name, row.unit, row.peer is not None) for row in rows] == [
        (f"Scale, {name}, {size} tokens{of}", unit, size == "6,000")
        for size in ("2,000", "6,000")
        for name in ("building an index", "a query")
        for of, unit in (("", "µs/token"), (", RAM", "MB"))
    ]
    assert [row.peer for row in rows[4:]] == [row.ours for row in rows[:4]]
    assert {row.share_of_limit for row in rows[::2]} == {0.5}
    drawn = picture.read_text()
    assert "building an index" in drawn and "embedding" not in drawn


@pytest.mark.parametrize("part", ["embed", "cache", "train", "neighbours"])
def test_a_part_of_scale_works_in_this_process_too(part, tmp_path):
    text = tmp_path / scale.WARM_UP_TEXT
    scale.write_text([TEXT], 6000, text)
    (tmp_path / "output").mkdir()
    for work in scale.PARTS[part].values():
        work(text, tmp_path / "output")
    assert any((tmp_path / "output").iterdir())


def test_the_epoch_of_large_pages_trains():
    assert modules["large_pages"].seconds_of_epoch("sst", 8) > 0.0


def test_a_task_is_measured_without_elmo_with_it_and_with_its_cache(tmp_path):
    folder = PROJECT / "fixtures" / "experiments"
    task = tasks.Task("SRL", folder / "srl.jsonnet", folder / "srl_elmo.jsonnet", "predicates")
    rows = list(tasks.measure(task, num_instances=20, num_epochs=2))
    assert [row.name.removeprefix("SRL training epoch, 20 predicates, ELMo ") for row in rows] == [
        "computed",
        "cached, first epoch",
        "cached, later epochs",
    ]
    assert rows[0].peer == rows[1].peer == rows[2].peer
    assert [row.floor for row in rows] == [None, None, "<= 1.25x"]
    with pytest.raises(SystemExit, match="at least 2,000 predicates to train on, found 82"):
        tasks.build_variants(task, tmp_path, 2000)


def test_added_memory_is_what_a_run_takes_at_most():
    assert 40 <= tasks.added_memory(lambda turn: torch.ones(50 * 2**18).sum()) <= 70


def test_the_experiments_of_all_tasks_differ_from_the_published_ones_in_data_and_cache_only():
    for task in tasks.TASKS.values():
        settings = "{ elmo+: { cache: '/some/folder' } }"
        params = tasks.render(task.with_elmo, settings, 7).as_dict(quiet=True)
        published = tasks.Params.from_file(task.with_elmo).as_dict(quiet=True)
        assert params["dataset_reader"].pop("max_instances") == 7
        del published["validation_data_path"]
        published["model"]["placement"]["elmo"]["cache"] = "/some/folder"
        assert params == published


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
