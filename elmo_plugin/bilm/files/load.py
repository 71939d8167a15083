"""Finds the options and the weights of a biLM, checks that they fit, and builds it."""

from os import PathLike
from typing import Any, Dict, List, Optional, Type, Union

import torch

from elmo_plugin.bilm.bilm import Bilm
from elmo_plugin.bilm.files.layout import read_weights
from elmo_plugin.bilm.files.many_langs import is_many_langs, many_langs_options, read_many_langs
from elmo_plugin.bilm.files.trained import TrainedModel, is_archive, stored_options_by_prefix
from elmo_plugin.bilm.options import BilmOptions
from elmo_plugin.bilm.stored_options import STORED_OPTIONS
from elmo_plugin.environment import bilm_files, setting
from elmo_plugin.util.errors import ConfigurationError, check_one_of
from elmo_plugin.util.weights import stored_state

COMPUTE_DTYPES = ("float32", "bfloat16", "int8")


def load_bilm(
    options_file: Optional[Union[str, PathLike]] = None,
    weight_file: Optional[Union[str, PathLike]] = None,
    *,
    stateful: bool = False,
    warm_up: bool = False,
    dtype: str = "float32",
    serialization_dir: Optional[str] = None,
) -> Bilm:
    """
    Loads a biLM with its weights, in evaluation mode. Raises `ConfigurationError` if only one file
    is given, one is missing, damaged or does not fit the other, the biLM is forward-only, or its
    layers differ in width.

    # Parameters

    options_file, weight_file : `Optional[Union[str, PathLike]]`
        Local paths or URLs, see `local_path`. Default: the environment variables `ELMO_OPTIONS` and
        `ELMO_WEIGHTS`, or the biLM that comes with the package. `weight_file` may also be a trained
        model, see `load_weights`. A folder of ELMoForManyLangs as `options_file` needs no other.
    stateful, warm_up : `bool`
        See `Bilm`.
    dtype : `str`
        `float32`, `int8` (see `Bilm.to_int8`), or `bfloat16`: about twice as fast at the published
        size if the processor has instructions for it, and else slower, with a warning. Layers in
        bfloat16 differ by less than 1 % from float32.
    serialization_dir : `Optional[str]`
        The folder into which AllenNLP has unpacked an archive. The options are read from its
        weights, which AllenNLP loads afterwards. The two files are not needed.
    """
    check_one_of(COMPUTE_DTYPES, dtype=dtype)
    if options_file and not weight_file and is_many_langs(options_file):
        weight_file = options_file
    # For the default biLM, whose path differs between machines, an archive stores an empty path.
    source = "" if options_file is None else str(options_file)
    files = [options_file or setting("ELMO_OPTIONS"), weight_file or setting("ELMO_WEIGHTS")]
    archived = _archived_options(files, serialization_dir, source)
    options_file, weight_file = files if archived else bilm_files(options_file, weight_file)
    options = archived or _options_from(options_file)
    if not options.bidirectional:
        raise ConfigurationError(
            f"{options_file}: `bidirectional` is false, but ELMo needs a model of both directions."
        )
    options.check_widths(str(options_file))
    settings: Dict[str, Any] = {"stateful": stateful, "warm_up": warm_up, "source": source}
    bilm = build(options, None if archived else weight_file, **settings)
    if dtype == "bfloat16":
        bilm.to(torch.bfloat16)
    elif dtype == "int8":
        bilm.to_int8()
    return bilm.eval()


def build(
    options: BilmOptions,
    weight_file: Optional[Union[str, PathLike]],
    cls: Type[Bilm] = Bilm,
    **settings: Any,
) -> Bilm:
    """A biLM in evaluation mode. Without `weight_file`, AllenNLP loads the weights afterwards."""
    # Read before the model is built: wrong options could need any amount of memory.
    parameters = None if weight_file is None else read_parameters(options, weight_file)
    bilm = cls(options, **settings)
    if parameters is not None:
        bilm.load_state_dict({STORED_OPTIONS: bilm.options_json, **parameters})
    return bilm.eval()


def load_weights(bilm: Bilm, weight_file: Union[str, PathLike]) -> None:
    """
    Loads the weights of a biLM from a path or URL: HDF5, safetensors, or a trained AllenNLP model
    that contains one biLM (a `model.tar.gz` or serialization directory). Nothing in it is executed.
    Raises `ConfigurationError` if it is missing, damaged, not finite, or does not fit the options.
    """
    parameters = read_parameters(bilm.options, weight_file)
    bilm.load_state_dict({STORED_OPTIONS: bilm.options_json, **parameters})


def read_parameters(
    options: BilmOptions, weight_file: Union[str, PathLike]
) -> Dict[str, torch.Tensor]:
    """The parameters of a biLM from a file of any kind, see `load_weights`."""
    if is_many_langs(weight_file):
        found, parameters = read_many_langs(weight_file)
        if found != options:
            raise ConfigurationError(
                f"{weight_file} does not fit the options: {options.difference(found)}."
            )
        return parameters
    if is_archive(weight_file):
        return TrainedModel.read(weight_file).parameters_of(options)
    return read_weights(options, weight_file)


def read_options(
    options_file: Optional[Union[str, PathLike]] = None,
    serialization_dir: Optional[str] = None,
    options: Optional[Dict[str, Any]] = None,
) -> BilmOptions:
    """
    The options of a biLM: `options`, the content of an options file, or what is stored in an
    unpacked archive, or a file, by default `ELMO_OPTIONS`. Raises `ConfigurationError` if `options`
    and `options_file` are given.
    """
    if options is not None:
        if options_file is not None:
            raise ConfigurationError(
                "biLM: expected `options` or `options_file`, found both. Leave one of them out."
            )
        return BilmOptions.from_dict(options)
    source = "" if options_file is None else str(options_file)
    options_file = setting("ELMO_OPTIONS") if options_file is None else options_file
    archived = _archived_options([options_file], serialization_dir, source)
    return archived or _options_from(options_file)


def _options_from(options_file: Union[str, PathLike]) -> BilmOptions:
    if is_many_langs(options_file):
        return many_langs_options(options_file)
    return BilmOptions.from_file(options_file)


def _archived_options(
    files: List[Union[str, PathLike]], serialization_dir: Optional[str], source: str
) -> Optional[BilmOptions]:
    """The options stored in an archive, if any; `files` may have changed since it was written."""
    parameters = stored_state(serialization_dir, *files) or {}
    for stored in stored_options_by_prefix(parameters).values():
        if stored["options_file"] == source:
            return BilmOptions.from_dict(stored["options"], str(files[0]))
    return None
