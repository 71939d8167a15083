"""`allennlp find-lr`, as AllenNLP starts it, with this plugin."""

from pathlib import Path
from typing import Any, List, Tuple

import pytest
from allennlp.commands import find_learning_rate

from elmo_plugin.util.errors import ConfigurationError
from tests.commands.running import run

EXPERIMENTS = Path(__file__).parent.parent.parent / "fixtures/experiments"


@pytest.mark.parametrize("task", ["ner", "sst"])
def test_a_learning_rate_is_searched_for_a_task_with_our_trainer(tmp_path, monkeypatch, task):
    plotted: List[Tuple[Any, ...]] = []
    monkeypatch.setattr(find_learning_rate, "_save_plot", lambda *values: plotted.append(values))
    run("find-lr", EXPERIMENTS / f"{task}.jsonnet", "-s", tmp_path / "run", "--num-batches", 11)
    ((rates, losses, _),) = plotted
    assert rates[0] == pytest.approx(1e-5) and len(rates) == len(losses) == 12
    assert all(loss > 0 for loss in losses)


def test_an_experiment_without_a_trainer_is_refused(tmp_path):
    (tmp_path / "x.jsonnet").write_text("{}")
    with pytest.raises(ConfigurationError, match="Expected an experiment with a `trainer`"):
        run("find-lr", tmp_path / "x.jsonnet", "-s", tmp_path / "run")
