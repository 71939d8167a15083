"""Finds the options and the weights of a biLM, checks that they fit, and builds it."""

from os import PathLike
from typing import Any, Callable, Dict, List, Optional, Type, Union

import torch

from elmo_plugin.bilm.bilm import Bilm
from elmo_plugin.bilm.files.find import find_bilm, may_be_elsewhere
from elmo_plugin.bilm.files.trained import read_parameters, stored_options_by_prefix
from elmo_plugin.bilm.options import BilmOptions
from elmo_plugin.bilm.stored_options import STORED_OPTIONS
from elmo_plugin.environment import chosen_bilm, named_files, setting
from elmo_plugin.util.errors import ConfigurationError, check_one_of
from elmo_plugin.util.weights import stored_state

COMPUTE_DTYPES = ("float32", "bfloat16")


def load_bilm(
    bilm: Optional[Union[str, PathLike]] = None,
    weight_file: Optional[Union[str, PathLike]] = None,
    *,
    options_file: Optional[Union[str, PathLike]] = None,
    stateful: bool = False,
    warm_up: bool = False,
    dtype: str = "float32",
    serialization_dir: Optional[str] = None,
) -> Bilm:
    """
    Loads a biLM with its weights, in evaluation mode. Raises `ConfigurationError` if it is not
    found, only one of two files is given, one is damaged or does not fit the other, the biLM is
    forward-only, or its layers differ in width.

    # Parameters

    bilm : `Optional[Union[str, PathLike]]`
        A folder, zip or archive, or an options file with its weights beside it, as a path or URL;
        a name that `elmo models` prints; or a repository `user/name` of the Hugging Face Hub.
        Default: the environment variable `ELMO_BILM`, or the two files in `ELMO_OPTIONS` and
        `ELMO_WEIGHTS`, or the biLM that comes with the package.
    options_file, weight_file : `Optional[Union[str, PathLike]]`
        The two files, in place of `bilm`: local paths or URLs, see `local_path`. The first may also
        be given as `bilm`. `weight_file` may also be a trained model, see `load_weights`.
    stateful, warm_up : `bool`
        See `Bilm`.
    dtype : `str`
        `float32`, or `bfloat16`: about twice as fast at the published size if the processor has
        instructions for it, and else slower, with a warning. Layers in bfloat16 differ by less than
        1 % from float32.
    serialization_dir : `Optional[str]`
        The folder into which AllenNLP has unpacked an archive. The options are read from its
        weights, which AllenNLP loads afterwards. The files are not needed.
    """
    check_one_of(COMPUTE_DTYPES, dtype=dtype)
    if weight_file is not None and options_file is None:
        bilm, options_file = None, bilm
    # For the default biLM, whose path differs between machines, an archive stores an empty path.
    source = str(next((each for each in (bilm, options_file) if each is not None), ""))
    settings: Dict[str, Any] = {"stateful": stateful, "warm_up": warm_up, "source": source}
    files = named_files(bilm, options_file, weight_file)
    archived = _archived_options(files, serialization_dir, source)
    if archived is not None:
        _check_for_elmo(archived, str(files[0]))
        loaded = build(archived, None, **settings)
    else:
        with find_bilm(*chosen_bilm(bilm, options_file, weight_file)) as found:
            _check_for_elmo(found.options, found.source)
            loaded = build(found.options, found.read, **settings)
    if dtype == "bfloat16":
        loaded.to(torch.bfloat16)
    return loaded.eval()


def build(
    options: BilmOptions,
    read: Optional[Callable[[], Dict[str, torch.Tensor]]],
    cls: Type[Bilm] = Bilm,
    **settings: Any,
) -> Bilm:
    """A biLM in evaluation mode. Without `read`, AllenNLP loads the weights afterwards."""
    # Read before the model is built: wrong options could need any amount of memory.
    parameters = None if read is None else read()
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


def read_options(
    options_file: Optional[str] = None,
    serialization_dir: Optional[str] = None,
    options: Optional[Dict[str, Any]] = None,
    bilm: Optional[str] = None,
) -> BilmOptions:
    """
    The options of a biLM: `options`, the content of an options file, or what is stored in an
    unpacked archive, or those of a file or of a `bilm` (see `load_bilm`), by default `ELMO_BILM` or
    `ELMO_OPTIONS`. Raises `ConfigurationError` if more than one of these is given.
    """
    given = {"options": options, "options_file": options_file, "bilm": bilm}
    names = [name for name, value in given.items() if value is not None]
    if len(names) > 1:
        raise ConfigurationError(
            f"biLM: expected one of {', '.join(f'`{name}`' for name in given)}, found "
            f"{' and '.join(f'`{name}`' for name in names)}. Leave out all but one."
        )
    if options is not None:
        return BilmOptions.from_dict(options)
    source = str(given[names[0]]) if names else ""
    files = named_files(bilm, options_file)[:1]
    archived = _archived_options(files, serialization_dir, source)
    if archived is not None:
        return archived
    if options_file is None and (bilm or setting("ELMO_BILM")):
        with find_bilm(*chosen_bilm(bilm)) as found:
            return found.options
    return BilmOptions.from_file(files[0])


def _check_for_elmo(options: BilmOptions, location: str) -> None:
    if not options.bidirectional:
        raise ConfigurationError(
            f"{location}: `bidirectional` is false, but ELMo needs a model of both directions."
        )
    options.check_widths(location)


def _archived_options(
    files: List[Union[str, PathLike]], serialization_dir: Optional[str], source: str
) -> Optional[BilmOptions]:
    """The options stored in an archive, if any; `files` may have changed since it was written."""
    # A name that is no path cannot be missing.
    paths = [file for file in files if not may_be_elsewhere(file)]
    parameters = stored_state(serialization_dir, *paths) or {}
    for stored in stored_options_by_prefix(parameters).values():
        if stored["options_file"] == source:
            return BilmOptions.from_dict(stored["options"], str(files[0]))
    return None
