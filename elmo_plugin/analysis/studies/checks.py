import copy
import io
import logging
import tempfile
from contextlib import redirect_stderr
from typing import Any, Callable, Dict, Sequence

import torch
from allennlp.commands.train import TrainModel
from allennlp.common import Params
from allennlp.common.util import prepare_environment
from allennlp.training.metrics import Metric

from elmo_plugin.analysis.studies.study import Run
from elmo_plugin.util.errors import ConfigurationError

_NUM_INSTANCES = 20


def check_experiments(
    runs: Sequence[Run], on_experiment: Callable[[Run], object] = lambda run: None
) -> None:
    """
    Builds one run of each cell and fraction on its first instances, as `allennlp train` would, and
    calls `on_experiment` before each. Raises `ConfigurationError` with the run's name if that
    fails.
    """
    # Each run's log will have the messages and progress bars.
    disabled = logging.root.manager.disable
    for run in {(run.row, run.column, run.fraction): run for run in runs}.values():
        on_experiment(run)
        logging.disable(logging.WARNING)
        try:
            with redirect_stderr(io.StringIO()):
                _build(run)
        except Exception as error:
            # The classes named in an experiment may raise any exception.
            message = " ".join(str(error).split()) or repr(error)
            raise ConfigurationError(f"{run.name}: {message}") from error
        finally:
            logging.disable(disabled)
    # PyTorch would keep GPU memory of these models while child processes train.
    torch.cuda.empty_cache()


def _build(run: Run) -> None:
    experiment = copy.deepcopy(run.experiment)
    # One process shows the same errors as several.
    experiment.pop("distributed", None)
    for name in ("dataset_reader", "validation_dataset_reader"):
        if name in experiment:
            experiment[name] = _limited(experiment[name])
    with tempfile.TemporaryDirectory() as folder:
        params = Params(experiment)
        # Also removes the seeds, which `TrainModel` does not accept.
        prepare_environment(params)
        built = TrainModel.from_params(params=params, serialization_dir=folder, local_rank=0)
    if run.evaluate and not isinstance(getattr(built.model, "metric", None), Metric):
        raise ConfigurationError(
            f"{type(built.model).__name__}: expected an attribute `metric`, with which elmo-study "
            "evaluates a file, found none."
        )


def _limited(reader: Any) -> Dict[str, Any]:
    """Limits a dataset reader to the first instances."""
    reader = {"type": reader} if isinstance(reader, str) else reader
    limit = reader.get("max_instances") or _NUM_INSTANCES
    return {**reader, "max_instances": min(limit, _NUM_INSTANCES)}
