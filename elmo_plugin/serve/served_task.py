import os
from typing import Any, Callable, Dict, Iterable, List, Sequence, Union

from elmo_plugin.analysis.layer_weights import stored_layer_weights
from elmo_plugin.bilm.files.trained import TrainedModel
from elmo_plugin.elmo import Elmo
from elmo_plugin.serve.requests import EXAMPLES, Limits
from elmo_plugin.serve.worker import Outcome, model_failed
from elmo_plugin.util.errors import ConfigurationError

_PREFIX = "elmo-"


class ServedTask:
    """
    Answers requests with the predictor of a trained model: the lines of JSON that `allennlp
    predict` reads and writes.

    # Parameters

    name : `str`
        The name of the task.
    predictor : `Any`
        A `TaskPredictor` with the output format `json`.
    layer_weights : `List[Dict[str, Any]]`
        How the model mixes the layers of its biLM: `at`, `weights` and `gamma` of each mix.
    limits : `Limits`
    """

    def __init__(
        self, name: str, predictor: Any, layer_weights: List[Dict[str, Any]], limits: Limits
    ) -> None:
        self.name = name
        self.layer_weights = layer_weights
        self._predictor = predictor
        self._limits = limits

    def warm_up(self, batch_size: int) -> None:
        """
        Answers the example alone and in a batch, so that kernels are compiled beforehand, and a
        model that cannot answer is noticed.
        """
        for size in (1, batch_size):
            outputs = self._predictor.predict_batch_json([EXAMPLES[self.name]] * size)
            self._predictor.dump_line(outputs[0])

    def answer(self, requests: Sequence[str]) -> List[Outcome]:
        """For each request its answer, or an error."""
        read = [self._read(request) for request in requests]
        outcomes = iter(self._predict([line for line in read if not isinstance(line, Exception)]))
        return [line if isinstance(line, Exception) else next(outcomes) for line in read]

    def _read(self, request: str) -> Union[Dict[str, Any], Exception]:
        try:
            line = self._predictor.load_request(request)
            self._limits.check_words(self._predictor.texts(line))
            return line
        except Exception as error:
            return error

    def _predict(self, lines: List[Dict[str, Any]]) -> List[Outcome]:
        if not lines:
            return []
        try:
            outputs = self._predictor.predict_batch_json(lines)
            return [self._predictor.dump_line(output) for output in outputs]
        except Exception as error:
            if len(lines) == 1:
                return [model_failed(error)]
            # At least one line fails: answer each by itself, so that the others are answered.
            return [outcome for line in lines for outcome in self._predict([line])]


def load_tasks(
    archives: Iterable[Union[str, os.PathLike]],
    load_predictor: Callable[[Union[str, os.PathLike]], Any],
    limits: Limits,
) -> Dict[str, ServedTask]:
    """
    Loads a trained model of each task, without its cache of layers.

    # Parameters

    archives : `Iterable[Union[str, os.PathLike]]`
        A `model.tar.gz` or the folder of a training run of each task.
    load_predictor : `Callable`
        See `elmo_plugin.load_predictor`.
    limits : `Limits`

    # Raises

    `ConfigurationError`
        If an archive cannot be loaded, is of no known task, or of the same task as another one.
    """
    tasks: Dict[str, ServedTask] = {}
    archive_of: Dict[str, str] = {}
    for archive in archives:
        predictor = load_predictor(archive)
        name = str(predictor.config["model"]["type"])
        task = name.removeprefix(_PREFIX)
        if task not in EXAMPLES or not name.startswith(_PREFIX):
            raise ConfigurationError(
                f"{archive}: expected a model of one of the tasks {', '.join(EXAMPLES)}, found "
                f"{name!r}. Leave it out."
            )
        if task in tasks:
            raise ConfigurationError(
                f"{archive} and {archive_of[task]} are both of the task {task}: name one of them."
            )
        for module in predictor._model.modules():
            if isinstance(module, Elmo):
                # Requests must not be stored on the disk.
                module.leave_cache()
        state = predictor._model.state_dict()
        weights = [
            {"at": mix.at, "weights": mix.weights, "gamma": mix.gamma}
            for mix in stored_layer_weights(TrainedModel(state, str(archive), predictor.config))
        ]
        archive_of[task], tasks[task] = str(archive), ServedTask(task, predictor, weights, limits)
    return {name: tasks[name] for name in EXAMPLES if name in tasks}
