"""Loads archives of trained models, untrusted or shipped."""

import logging
import shutil
import tempfile
import textwrap
from contextlib import ExitStack, contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, Dict, Iterator, Optional, Tuple, Union
from unittest.mock import patch

import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError as AllenNlpError
from allennlp.models import Archive, archival
from allennlp.nn import util as nn_util
from allennlp.predictors import Predictor

from elmo_plugin.archives.configs import check_config, registered_types_only, without_limits
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.files import shipped_archives
from elmo_plugin.util.unpacking import read_config, unpack, unpacked
from elmo_plugin.util.weights import each_state_once, read_state, read_trained_state

logger = logging.getLogger(__name__)


def load_archive(
    archive_file: Union[str, PathLike],
    cuda_device: int = -1,
    overrides: Union[str, Dict[str, Any]] = "",
    weights_file: Optional[str] = None,
    every_instance: bool = False,
) -> Archive:
    """
    AllenNLP's `load_archive` for untrusted archives. It executes no code in an archive, writes only
    into a temporary folder, and refuses damaged archives.

    It constructs only registered types: those of AllenNLP, this plugin, and packages that were
    imported before. They may read files and URLs named in config.json, and ELMo's `cache` writes to
    a folder named there. Archives named there are checked in the same way.

    `archive_file` is a `model.tar.gz` or the folder of a training run, a path or URL.
    `every_instance` lifts the limits of its readers and data loaders (`max_instances`,
    `batches_per_epoch`, `drop_last`) that `overrides` does not set. The other parameters are
    AllenNLP's. Raises `ConfigurationError` if the archive does not exist, is damaged, inconsistent
    or not safe to load, holds no trained model, or lacks a setting in `overrides`.
    """
    check_for_gpu(cuda_device)
    location = str(archive_file)
    with unpacked(archive_file) as folder, each_state_once():
        config = _checked_parts(folder, location, weights_file)
        overrides, overridden = _overridden(folder, config, overrides, every_instance, location)
        check_config(overridden.as_dict(quiet=True), location)
        with (
            registered_types_only(location),
            # AllenNLP also opens the archives that are named there, for example by `from_archive`.
            patch.object(archival, "extracted_archive", _extracted_archive),
            patch.object(nn_util, "read_state_dict", _read_state_dict),
        ):
            try:
                return archival.load_archive(folder, cuda_device, overrides, weights_file)
            except (ConfigurationError, AllenNlpError) as error:
                raise ConfigurationError(f"{location}: {error}") from error
            except (MemoryError, torch.OutOfMemoryError):
                raise
            # A damaged part can cause any exception.
            except Exception as error:
                reason = textwrap.shorten(str(error), 300, placeholder=" ...")
                weights = f" with {weights_file}" if weights_file else ""
                raise ConfigurationError(
                    f"{location} cannot be loaded{weights}: its weights, config.json, meta.json "
                    "and vocabulary, with the overrides, do not describe a model "
                    f"({type(error).__name__}: {reason}). Correct the overrides, or copy the "
                    "archive again."
                ) from error


def check_for_gpu(device: Any) -> None:
    """Raises `ConfigurationError` if a device, or one of a list, is a GPU that is not here."""
    num_gpus = torch.cuda.device_count()
    for each in device if isinstance(device, list) else [device]:
        index = each.index if isinstance(each, torch.device) else each
        if index is not None and index >= num_gpus:
            raise ConfigurationError(
                f"There is no GPU {index}: PyTorch finds {num_gpus}. To compute on the CPU, leave "
                "out --device (--cuda-device), or set `cuda_device` to -1."
            )


def load_predictor(
    archive_file: Union[str, PathLike],
    cuda_device: int = -1,
    overrides: Union[str, Dict[str, Any]] = "",
) -> Predictor:
    """The predictor of an untrusted archive; its `config` has the settings. See `load_archive`."""
    archive = load_archive(archive_file, cuda_device, overrides)
    predictor: Any = Predictor.from_archive(archive)
    predictor.config = archive.config.as_dict(quiet=True)
    return predictor


def load_task(
    name: str, cuda_device: int = -1, overrides: Union[str, Dict[str, Any]] = ""
) -> Predictor:
    """
    A trained model that comes with the package, to predict with. `name` is a folder in
    `pretrained/tasks`, which has its model card. For the rest see `load_archive`; `overrides` may
    be `{"model.dtype": "bfloat16"}`.

    # Examples

        predictor = elmo_plugin.load_task("ner")
        print(predictor.predict_json({"sentence": "Ada Lovelace lived in London."})["entities"])
    """
    archives = shipped_archives()
    if name not in archives:
        raise ConfigurationError(
            f"Expected the name of a task ({', '.join(archives)}), found {name!r}. For a "
            "model of your own, use elmo_plugin.load_predictor."
        )
    return load_predictor(archives[name], cuda_device, overrides)


def _overridden(
    folder: Path,
    config: Dict[str, Any],
    overrides: Union[str, Dict[str, Any]],
    every_instance: bool,
    location: str,
) -> Tuple[Union[str, Dict[str, Any]], Params]:
    """The overrides, with those that lift limits, and the configuration that results."""
    limits: Dict[str, Any] = {}
    try:
        if every_instance:
            overrides, limits = without_limits(config, overrides)
        overridden = Params.from_file(folder / archival.CONFIG_NAME, overrides)
    except (AttributeError, RuntimeError, TypeError, ValueError, ConfigurationError) as error:
        reason = str(error).partition("\n")[0]
        raise ConfigurationError(
            f"{location}: expected `overrides` of single settings, such as {{'model.dropout': 0.1}}"
            f", and a config.json without a repeated setting, found {overrides!r:.300}: {reason}"
        ) from error
    for setting, value in limits.items():
        logger.info(
            f"{location} was trained with {setting} = {value!r}; this limit is lifted, to read "
            "whole files. To keep it, set it in --overrides."
        )
    return overrides, overridden


@contextmanager
def _extracted_archive(path: str, cleanup: bool = True) -> Iterator[str]:
    """Replaces AllenNLP's function, which unpacks archives without checks."""
    folder = tempfile.mkdtemp()
    with ExitStack() as on_exit:
        on_exit.callback(shutil.rmtree, folder, ignore_errors=True)
        unpack(path, folder, path)
        check_config(_checked_parts(Path(folder), path, None), path)
        yield folder
        if not cleanup:
            on_exit.pop_all()


def _read_state_dict(path: Union[str, PathLike], cuda_device: int) -> Dict[str, Any]:
    """Replaces AllenNLP's function, which opens the weights again; the model copies the tensors."""
    return read_state(path, str(path))


def _checked_parts(folder: Path, location: str, weights_file: Optional[str]) -> Dict[str, Any]:
    """Checks the parts of a trained model. Returns its configuration, read as JSON, not jsonnet."""
    config = read_config(folder, location)
    has_parts = all(isinstance(config.get(part), dict) for part in ("dataset_reader", "model"))
    # If `vocabulary` were a file, AllenNLP would unpack it as an archive.
    if not has_parts or not (folder / "vocabulary").is_dir():
        raise ConfigurationError(
            f"{location} holds no trained model: expected a config.json with 'dataset_reader' and "
            "'model', and a folder 'vocabulary'."
        )
    if weights_file is None:
        read_trained_state(folder, location)
    else:
        read_state(weights_file, weights_file)
    return config
