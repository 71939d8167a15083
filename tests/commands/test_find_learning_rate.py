"""`allennlp find-lr`, as AllenNLP starts it, with this plugin."""

from pathlib import Path
from typing import Any, List, Tuple

import pytest
from allennlp.commands import find_learning_rate

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
