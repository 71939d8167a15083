import copy
import tempfile
from typing import Any, Callable, Dict

from allennlp.commands.train import TrainModel
from allennlp.common import Params

from elmo_plugin.analysis.studies.study import Run, Study
from elmo_plugin.util.errors import ConfigurationError

__all__ = ["check_experiments"]

_NUM_INSTANCES = 20


def check_experiments(
    study: Study, on_experiment: Callable[[Run], object] = lambda run: None
) -> None:
    """
    Builds what `allennlp train` builds, on the first instances of each corpus, for one run of each
    cell, without training it.

    # Parameters

    study : `Study`
    on_experiment : `Callable[[Run], object]`, optional
        Called before each.

    # Raises

    `ConfigurationError`
        If one cannot be built; names the run.
    """
    cells = {(run.row, run.column): run for run in reversed(study.runs)}
    for run in reversed(cells.values()):
        on_experiment(run)
        try:
            _build(run.experiment)
        except Exception as error:
            # Whatever an experiment names may raise anything.
            message = " ".join(str(error).split()) or repr(error)
            raise ConfigurationError(f"{run.name}: {message}") from error


def _build(experiment: Dict[str, Any]) -> None:
    experiment = copy.deepcopy(experiment)
    # Several processes need no other settings than one.
    experiment.pop("distributed", None)
    for name in ("dataset_reader", "validation_dataset_reader"):
        if name in experiment:
            reader = experiment[name]
            reader["max_instances"] = min(reader.get("max_instances") or _NUM_INSTANCES, _NUM_INSTANCES)
            reader.pop("fraction", None)
    with tempfile.TemporaryDirectory() as folder:
        TrainModel.from_params(params=Params(experiment), serialization_dir=folder, local_rank=0)
