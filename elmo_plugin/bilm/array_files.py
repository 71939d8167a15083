"""Files of named arrays: HDF5, or safetensors with the same names."""

import io
import os
from os import PathLike
from pathlib import Path
from typing import Callable, Dict, Union

import h5py
import numpy
from allennlp.common.checks import ConfigurationError
from allennlp.common.file_utils import cached_path

DTYPES = ("float32", "float16")


def read_arrays(
    file: Union[str, PathLike], wanted: Callable[[str], bool]
) -> Dict[str, numpy.ndarray]:
    """
    # Parameters

    file : `Union[str, PathLike]`
        Local path, or anything that AllenNLP's `cached_path` understands. HDF5, unless its name
        ends in `.safetensors`.
    wanted : `Callable[[str], bool]`
        Whether to read the array of this name; others cost nothing.

    # Raises

    `FileNotFoundError`
        If there is no such file.

    `ConfigurationError`
        If it cannot be read.
    """
    path = cached_path(file)
    arrays: Dict[str, numpy.ndarray] = {}

    def collect(name: str, item: object) -> None:
        if isinstance(item, h5py.Dataset) and wanted(name):
            arrays[name] = item[...]

    try:
        if str(file).endswith(".safetensors"):
            from safetensors import safe_open

            with safe_open(path, framework="numpy") as opened:
                return {name: opened.get_tensor(name) for name in opened.keys() if wanted(name)}
        with h5py.File(path, "r") as opened:
            opened.visititems(collect)
    # safetensors has an exception of its own that shares no base with h5py's.
    except Exception as error:
        raise ConfigurationError(
            f"biLM weight file {file} cannot be read; it is damaged, cut short, or neither "
            f"HDF5 nor safetensors ({error}). Fetch or copy it again."
        ) from error
    return arrays


def write_arrays(arrays: Dict[str, numpy.ndarray], file: Union[str, PathLike], dtype: str) -> None:
    """
    Writes the arrays so that the file appears under its name only when it is whole. Memory: as
    much again as the arrays.

    # Parameters

    arrays : `Dict[str, numpy.ndarray]`
        What to write, in this order.
    file : `Union[str, PathLike]`
        `.safetensors`, or HDF5 for any other ending.
    dtype : `str`
        `float32`, or `float16` for half the size.

    # Raises

    `ValueError`
        If `dtype` is neither, or if a number is too large for it.

    `OSError`
        If the disk is full, or the file cannot be written for another reason.
    """
    if dtype not in DTYPES:
        raise ValueError(f"Expected `dtype` to be float32 or float16, found {dtype!r}.")
    converted = {name: _convert(name, array, dtype) for name, array in arrays.items()}
    unfinished = Path(f"{file}.unfinished")
    content = _content(converted, Path(file).suffix)
    try:
        unfinished.write_bytes(content)
        os.replace(unfinished, file)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(file)) from error
    finally:
        unfinished.unlink(missing_ok=True)


def _content(arrays: Dict[str, numpy.ndarray], suffix: str) -> Union[bytes, memoryview]:
    if suffix == ".safetensors":
        from safetensors.numpy import save

        return save(arrays)
    # In memory: after a full disk HDF5 cannot be used any more, not even for other files.
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as opened:
        for name, array in arrays.items():
            opened.create_dataset(name, data=array)
    return buffer.getbuffer()


def _convert(name: str, array: numpy.ndarray, dtype: str) -> numpy.ndarray:
    try:
        with numpy.errstate(over="raise"):
            return numpy.ascontiguousarray(array.astype(dtype, copy=False))
    except FloatingPointError:
        raise ValueError(
            f"Expected numbers up to 65504 for {dtype}, found {numpy.abs(array).max():.6g} in "
            f"{name}. Write float32."
        ) from None
