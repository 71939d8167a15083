"""
Everything that the plugin replaces in AllenNLP. The assignments are at the end, each with a comment
on what AllenNLP does without it. A plugin cannot register another `predict`: AllenNLP builds its
command line before it imports plugins. But it looks up the names replaced here at every call.

Two modules replace functions only while an archive is loaded:

- `archives/load.py`: `archival.extracted_archive`, which unpacks without checks, and
  `nn.util.read_state_dict`, which opens the weights again.
- `archives/configs.py`: `Registrable.resolve_class_name`, which imports any class by its path, and
  `common.util.spacy_download`, which installs spaCy models.

`training/recoverable_trainer.py` replaces methods of single moving averages.
"""

import logging
import os
import re
from argparse import Namespace
from functools import partial, wraps
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import shorten
from typing import Any, Dict, Iterable, Optional, Sequence, Type, Union

import numpy
import torch
from allennlp import commands as allennlp_commands
from allennlp.commands import evaluate as allennlp_evaluate
from allennlp.commands import find_learning_rate as allennlp_find_learning_rate
from allennlp.commands import predict as allennlp_predict
from allennlp.commands import train as allennlp_train
from allennlp.common import FromParams, Params, checks, file_utils, from_params
from allennlp.common import logging as common_logging
from allennlp.data.fields import LabelField
from allennlp.data.token_indexers import TokenCharactersIndexer
from allennlp.models import Model
from allennlp.nn import RegularizerApplicator
from allennlp.predictors import Predictor
from allennlp.training import GradientDescentTrainer, Trainer, gradient_descent_trainer
from allennlp.training import trainer as allennlp_trainer
from allennlp.training import util as training_util
from allennlp.training.metric_tracker import MetricTracker
from torch.distributed import is_torchelastic_launched

from elmo_plugin.archives import load_archive
from elmo_plugin.archives.configs import registered_types_only
from elmo_plugin.archives.load import check_for_gpu
from elmo_plugin.commands import allennlp_settings
from elmo_plugin.commands.allennlp_input import CheckedEvaluator, PredictManager
from elmo_plugin.commands.metrics import format_metrics
from elmo_plugin.console import is_command, quieten
from elmo_plugin.corpora.json_lines import parse_object
from elmo_plugin.environment import note_on_fixtures
from elmo_plugin.tasks.coref.reader import GENRES
from elmo_plugin.training.torchrun import train_under_torchrun
from elmo_plugin.util import errors
from elmo_plugin.util.atomic_write import atomic_write, check_output, unfinished_suffix
from elmo_plugin.util.errors import ConfigurationError, check_one_of
from elmo_plugin.util.files import expanded, local_path

logger = logging.getLogger(__name__)

# The originals, which their replacements call.
_cached_path = file_utils._cached_path.cached_path
_train_model = allennlp_train.train_model
_archive_model = allennlp_train.archive_model
_create_serialization_dir = training_util.create_serialization_dir
_prepare_global_logging = common_logging.prepare_global_logging
_import_package = allennlp_commands.import_module_and_submodules
_find_learning_rate_model = allennlp_find_learning_rate.find_learning_rate_model
_get_predictor = allennlp_predict._get_predictor
_evaluate_from_archive = allennlp_evaluate.evaluate_from_archive
_penalty = RegularizerApplicator.__call__
_construct = GradientDescentTrainer.from_partial_objects.__func__
_restore = GradientDescentTrainer._maybe_restore_checkpoint


@wraps(_cached_path)
def cached_path(name: Union[str, PathLike], *args: Any, **kwargs: Any) -> Path:
    if "://" in str(name) or (kwargs.get("extract_archive") and not expanded(name).is_dir()):
        return _cached_path(name, *args, **kwargs)
    return Path(local_path(name))


@wraps(_train_model)
def train_model(
    params: Params, serialization_dir: Union[str, PathLike], *args: Any, **kwargs: Any
) -> Optional[Model]:
    folder = expanded(serialization_dir)
    allennlp_settings.check_experiment(params.params)
    if note := note_on_fixtures(params.params.get("train_data_path")):
        logger.warning(note)
    if not is_torchelastic_launched():
        return _train_model(params, folder, *args, **kwargs)
    common_logging.FILE_FRIENDLY_LOGGING = kwargs.get("file_friendly_logging", False)
    train_under_torchrun(params, folder, *args, **kwargs)
    return None


@wraps(_create_serialization_dir)
def create_serialization_dir(
    params: Params, serialization_dir: Union[str, PathLike], recover: bool, force: bool
) -> None:
    folder = Path(serialization_dir)
    if folder.exists() and not folder.is_dir():
        raise ConfigurationError(f"{folder} is a file; expected the name of a new folder.")
    if folder.exists() and any(folder.iterdir()) and not (recover or force):
        cure = "Choose a new folder"
        if (folder / "config.json").exists():
            cure += ", or give --recover to continue this run, or --force to delete it"
        raise ConfigurationError(f"{folder} exists and is not empty. {cure}.")
    if recover and (folder / "config.json").exists():
        before, now = Params.from_file(folder / "config.json").as_flat_dict(), params.as_flat_dict()
        # A default of `get` that no setting has.
        names = [n for n in {**before, **now} if before.get(n, ...) != now.get(n, ...)]
        if names:
            raise ConfigurationError(
                f"{folder} was trained with other settings: {', '.join(names[:5])}. Recover "
                "with the same experiment and --overrides, or choose a new folder."
            )
    _create_serialization_dir(params, serialization_dir, recover, force)


@wraps(_prepare_global_logging)
def prepare_global_logging(*args: Any, **kwargs: Any) -> None:
    _prepare_global_logging(*args, **kwargs)
    if is_command("elmo"):
        quieten()


@wraps(_archive_model)
def archive_model(serialization_dir: Union[str, PathLike], *args: Any, **kwargs: Any) -> str:
    archive = Path(serialization_dir, "model.tar.gz")
    logger.info("archiving weights and vocabulary to %s", archive)
    # Written to a folder of its own, because the gzip header contains the file name.
    with (
        atomic_write(archive) as unfinished,
        TemporaryDirectory(unfinished_suffix(), "archive-", serialization_dir) as folder,
    ):
        written = _archive_model(serialization_dir, *args, archive_path=folder, **kwargs)
        os.rename(written, unfinished)
    return str(archive)


@wraps(_find_learning_rate_model)
def find_learning_rate_model(params: Params, *args: Any, **kwargs: Any) -> None:
    params = params.duplicate()
    allennlp_settings.check_experiment(params.params)
    trainer = params.params.get("trainer")
    if trainer is None:
        raise ConfigurationError(
            "Expected an experiment with a `trainer`, whose optimizer is tried, found none."
        )
    if trainer.get("type") == "elmo-recoverable":
        # AllenNLP's trainer ignores `mixed_precision`, and the search writes no checkpoints.
        trainer["type"] = "gradient_descent"
        trainer.pop("checkpointer", None)
    _find_learning_rate_model(params, *args, **kwargs)


def get_predictor(args: Namespace) -> Predictor:
    _check_batch_size(args.batch_size)
    _check_outputs(args.output_file)
    if args.predictor is not None and "." not in args.predictor:
        check_one_of(Predictor.list_available(), predictor=args.predictor)
    if args.predictor_args.strip():
        parse_object(args.predictor_args, "--predictor-args")
    # The limits of the archive's reader are for training.
    allennlp_predict.load_archive = partial(load_archive, every_instance=True)
    args.output_file = args.output_file and str(expanded(args.output_file))
    return _get_predictor(args)


@wraps(_evaluate_from_archive)
def evaluate_from_archive(
    archive_file: Any, *args: Any, batch_size: Optional[int] = None, **kwargs: Any
) -> Dict[str, Any]:
    _check_batch_size(batch_size)
    _check_outputs(kwargs.get("metrics_output_file"), kwargs.get("predictions_output_file"))
    for name in ("metrics_output_file", "predictions_output_file"):
        kwargs[name] = kwargs.get(name) and str(expanded(kwargs[name]))
    # Data loaders and evaluators, too, are constructed from the archive's configuration.
    with registered_types_only(str(archive_file)):
        try:
            metrics = _evaluate_from_archive(archive_file, *args, batch_size=batch_size, **kwargs)
        except AssertionError as error:
            if "datasets being evaluated" not in str(error):
                raise
            raise ConfigurationError(f"{error} Separate them by commas.") from error
    if is_command():
        print(format_metrics(metrics), flush=True)
    return metrics


def padded_characters(
    indexer: TokenCharactersIndexer, tokens: Dict[str, Any], padding_lengths: Dict[str, int]
) -> Dict[str, torch.Tensor]:
    size = padding_lengths["token_characters"], padding_lengths["num_token_characters"]
    padded = numpy.zeros(size, numpy.int64)
    for row, word in zip(padded, tokens["token_characters"]):
        row[: len(word)] = word[: len(row)]
    return {"token_characters": torch.from_numpy(padded)}


@wraps(_penalty)
def penalty(applicator: RegularizerApplicator, module: torch.nn.Module) -> torch.Tensor:
    if not hasattr(applicator, "is_checked"):
        # Frozen parameters are not penalised.
        trained = [n for n, parameter in module.named_parameters() if parameter.requires_grad]
        _check_regexes("regularizer", (regex for regex, _ in applicator._regularizers), trained)
        applicator.is_checked = True
    return _penalty(applicator, module)


@wraps(_construct)
def from_partial_objects(cls: Type[Trainer], **settings: Any) -> Trainer:
    names = [name for name, _ in settings["model"].named_parameters()]
    _check_regexes("no_grad", settings.get("no_grad") or (), names)
    return _construct(cls, **settings)


@wraps(_restore)
def restore_checkpoint(trainer: GradientDescentTrainer) -> None:
    _restore(trainer)
    for parameter, state in trainer.optimizer.state.items():
        for name, value in state.items() if parameter.shape == (1,) else ():
            if name != "step" and isinstance(value, torch.Tensor):
                state[name] = torch.atleast_1d(value)


def _check_batch_size(batch_size: Optional[int]) -> None:
    if batch_size is not None and batch_size < 1:
        raise ConfigurationError(f"Expected --batch-size of at least 1, found {batch_size}.")


def _check_outputs(*outputs: Optional[str]) -> None:
    for path in (path for given in outputs if given for path in given.split(",")):
        check_output(path, force=True)
        if not expanded(path).absolute().parent.is_dir():
            raise ConfigurationError(f"{path} cannot be written: its folder does not exist.")


def _check_regexes(setting: str, regexes: Iterable[str], names: Sequence[str]) -> None:
    for regex in regexes:
        if not any(re.search(regex, name) for name in names):
            theirs = "scalar_parameters" in regex
            raise ConfigurationError(
                f"`{setting}`: {regex!r} matches no parameter and would have no effect."
                f"{' Here they are called layer_scores.' if theirs else ''} The parameters are "
                f"{shorten(', '.join(names), 600, placeholder=' ...')}."
            )


# Handles only its own class. Our core works without AllenNLP, so it cannot import that class.
errors.ConfigurationError.__bases__ = (checks.ConfigurationError,)
# Warns that the namespace should end in "labels"; but such a namespace has no unknown entry.
LabelField._already_warned_namespaces.add(GENRES)

# Makes a folder in the home folder for local files, too, which a user without one cannot.
file_utils._cached_path.cached_path = cached_path

# Its errors about settings name neither setting nor value, or are tracebacks.
Params.from_file = classmethod(allennlp_settings.from_file)
Params.pop_choice = allennlp_settings.pop_choice
Params.assert_empty = allennlp_settings.assert_empty
FromParams.from_params = classmethod(allennlp_settings.construct)
from_params.pop_and_construct_arg = allennlp_settings.pop_and_construct_arg
MetricTracker.combined_score = allennlp_settings.combined_score
# Tells users of --cuda-device to change the configuration.
allennlp_train.check_for_gpu = check_for_gpu
allennlp_trainer.check_for_gpu = check_for_gpu
gradient_descent_trainer.check_for_gpu = check_for_gpu
allennlp_predict.check_for_gpu = check_for_gpu
allennlp_find_learning_rate.check_for_gpu = check_for_gpu
# An --include-package that does not exist is a traceback.
allennlp_commands.import_module_and_submodules = partial(
    allennlp_settings.with_package, _import_package
)

# `train` would train a model in each process of `torchrun`; they train one together.
allennlp_train.train_model = train_model
# Names no way out of a folder that a failed run left, but --recover.
training_util.create_serialization_dir = create_serialization_dir
# Replaces the console's handlers and `sys.excepthook`.
common_logging.prepare_global_logging = prepare_global_logging
# Leaves half an archive after a kill or on a full disk; ours is complete or absent.
allennlp_train.archive_model = archive_model
# `find-lr` refuses every trainer that is not registered as `gradient_descent`.
allennlp_find_learning_rate.find_learning_rate_model = find_learning_rate_model

# `predict` accepts any --batch-size and trusts archives.
allennlp_predict._get_predictor = get_predictor
# Names neither file nor line in errors, and accepts an empty input.
allennlp_predict._PredictManager = PredictManager

# `evaluate` prints no metrics, accepts any --batch-size and constructs any type that an archive
# names.
allennlp_evaluate.evaluate_from_archive = evaluate_from_archive
# Trusts archives, and evaluates only as many instances as their readers were limited to.
allennlp_evaluate.load_archive = partial(load_archive, every_instance=True)
# Accepts data without instances or labels.
allennlp_evaluate.Evaluator = CheckedEvaluator

# Makes a list of each character that pads: a tenth of the time in which NER predicts.
TokenCharactersIndexer.as_padded_tensor_dict = padded_characters

# `regularizer` ignores a regex that matches no parameter.
RegularizerApplicator.__call__ = penalty
# So does `no_grad`.
GradientDescentTrainer.from_partial_objects = classmethod(from_partial_objects)

# `--recover` fails in an optimizer that has seen scalars of an older version, see `load_scalars`.
GradientDescentTrainer._maybe_restore_checkpoint = restore_checkpoint
