"""
Files of named arrays: HDF5, or safetensors with the same names, or TensorFlow's checkpoints of a
language model, read by TensorFlow.
"""

import io
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import Any, Callable, Collection, Dict, Iterator, Tuple, Type, Union

import numpy
from safetensors import safe_open
from safetensors.numpy import save

from elmo_plugin.util.atomic_write import atomic_write
from elmo_plugin.util.errors import ConfigurationError, optional_package
from elmo_plugin.util.files import WRITABLE_DTYPES, local_path

#: The suffix of the file that lists the variables of a checkpoint.
CHECKPOINT_SUFFIX = ".index"
_READABLE_DTYPES = ("float16", "float32", "float64")
_SAFETENSORS_TYPES = {"F16": "float16", "F32": "float32", "F64": "float64", "BF16": "bfloat16"}
# The scope of the language model in bilm-tf's training.
_SCOPE = "lm/"
_HDF5_SIGNATURE = b"\x89HDF\r\n\x1a\n"
# Weight files of bilm-tf have five levels of groups.
_MAX_DEPTH = 50

Shape = Tuple[int, ...]


def read_arrays(
    file: Union[str, PathLike], choose: Callable[[Dict[str, Shape]], Collection[str]]
) -> Dict[str, numpy.ndarray]:
    """
    Reads arrays in float32 from an HDF5 or safetensors file, or from a checkpoint that bilm-tf
    wrote in training, given as its `.index` file. `choose` gets the shapes in the file and returns
    the names to read. Raises `FileNotFoundError`, or `ConfigurationError` for a damaged file, an
    array that is not of float16, float32 or float64, or not finite in float32, or a checkpoint if
    TensorFlow is not installed.
    """
    path = local_path(file)
    if Path(path).is_dir():
        raise ConfigurationError(
            f"biLM weight file {file} is a folder without weights.th or best.th. Name a file in it."
        )
    try:
        with _opened(path) as arrays:
            chosen = choose({name: array.shape for name, array in arrays.items()})
            read = {}
            for name in chosen:
                expected, dtype = f"{file}: expected tensor {name}", arrays[name].dtype
                if dtype not in _READABLE_DTYPES:
                    raise ConfigurationError(
                        f"{expected} of type {', '.join(_READABLE_DTYPES)}, found {dtype}. Write "
                        "the weights as one of these."
                    )
                read[name] = _cast(arrays[name].read(), "float32", expected, ConfigurationError)
            return read
    except (ConfigurationError, MemoryError):
        raise
    # The exceptions of safetensors and h5py have no common base class.
    except Exception as error:
        is_checkpoint = path.endswith(CHECKPOINT_SUFFIX)
        wrong = "lacks its .data files" if is_checkpoint else "neither HDF5 nor safetensors"
        raise ConfigurationError(
            f"{file} cannot be read; it is damaged, cut short, or {wrong} ({error}). Fetch or copy "
            "it again."
        ) from error


@dataclass(frozen=True)
class _StoredArray:
    shape: Shape
    dtype: str
    read: Callable[[], numpy.ndarray]


@contextmanager
def _opened(path: str) -> Iterator[Dict[str, _StoredArray]]:
    # The other files of a checkpoint are found by its name.
    if path.endswith(CHECKPOINT_SUFFIX):
        yield _of_checkpoint(path)
        return
    # Names do not tell the format: a downloaded copy has no ending.
    with open(path, "rb") as file:
        is_hdf5 = file.read(len(_HDF5_SIGNATURE)) == _HDF5_SIGNATURE
    if is_hdf5:
        with hdf5_package().File(path, "r") as hdf5:
            yield _of_hdf5(hdf5)
    else:
        with safe_open(path, framework="numpy") as opened:
            yield {name: _of_safetensors(opened, name) for name in opened.keys()}


def hdf5_package() -> Any:
    """h5py, which not every version of Python has; `ConfigurationError` if it is missing."""
    return optional_package("h5py", "HDF5", "h5py, or use safetensors files", ConfigurationError)


def _of_hdf5(file: Any) -> Dict[str, _StoredArray]:
    h5py = hdf5_package()
    arrays: Dict[str, _StoredArray] = {}

    def collect(name: str, item: object) -> None:
        # HDF5 looks up each name from the root: the time grows with the cube of the depth.
        if name.count("/") > _MAX_DEPTH:
            raise ConfigurationError(
                f"{file.filename} is refused: expected weights, found nested groups."
            )
        if isinstance(item, h5py.Dataset) and (item.is_virtual or item.external):
            raise ConfigurationError(
                f"{file.filename} is refused: {name} is an external or virtual dataset, whose "
                "content is in other files. Write its array into this file."
            )
        if isinstance(item, h5py.Dataset):
            # HDF5 has empty arrays without a shape.
            arrays[name] = _StoredArray(item.shape or (), item.dtype.name, lambda: item[...])

    file.visititems(collect)
    return arrays


def _of_safetensors(file: Any, name: str) -> _StoredArray:
    stored = file.get_slice(name)
    dtype = _SAFETENSORS_TYPES.get(stored.get_dtype(), stored.get_dtype())
    return _StoredArray(tuple(stored.get_shape()), dtype, lambda: file.get_tensor(name))


def _of_checkpoint(path: str) -> Dict[str, _StoredArray]:
    """The language model in a checkpoint, without the state of the optimizer and counters."""
    purpose = f"Reading the checkpoint {path}"
    tensorflow = optional_package("tensorflow", purpose, error=ConfigurationError)
    reader = tensorflow.train.load_checkpoint(path.removesuffix(CHECKPOINT_SUFFIX))
    shapes, dtypes = reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map()
    arrays = {
        name.removeprefix(_SCOPE): _StoredArray(
            tuple(shapes[name]), dtypes[name].name, partial(reader.get_tensor, name)
        )
        for name in sorted(shapes)
        # An optimizer's state of a variable is below its name: `lm/softmax/b/Adagrad`.
        if name.startswith(_SCOPE)
        and not any(str(above) in shapes for above in PurePosixPath(name).parents)
    }
    if "softmax/b" in arrays and "embedding" in arrays:
        # bilm-tf can share the matrix (`share_embedding_softmax`).
        arrays.setdefault("softmax/W", arrays["embedding"])
    return arrays


def write_arrays(arrays: Dict[str, numpy.ndarray], file: Union[str, PathLike], dtype: str) -> None:
    """
    Writes arrays as safetensors if the suffix is `.safetensors`, and else as HDF5. Needs memory for
    a second copy. Raises `ValueError` if `dtype` is not in `WRITABLE_DTYPES`, or a number is not
    finite in it, `ConfigurationError` if HDF5 needs h5py, and `OSError` if the file cannot be
    written.
    """
    if dtype not in WRITABLE_DTYPES:
        raise ValueError(f"Expected `dtype` to be float32 or float16, found {dtype!r}.")
    converted = {
        name: _cast(array, dtype, f"Expected tensor {name}", ValueError)
        for name, array in arrays.items()
    }
    with atomic_write(file) as unfinished:
        if Path(file).suffix == ".safetensors":
            unfinished.write_bytes(save(converted))
            return
        # In memory, because HDF5 cannot be used any more after a write to a full disk has failed.
        buffer = io.BytesIO()
        with hdf5_package().File(buffer, "w") as opened:
            for name, array in converted.items():
                opened.create_dataset(name, data=array)
        unfinished.write_bytes(buffer.getbuffer())


def _cast(array: numpy.ndarray, dtype: str, expected: str, error: Type[Exception]) -> numpy.ndarray:
    with numpy.errstate(over="ignore"):
        values = numpy.ascontiguousarray(array.astype(dtype, copy=False))
    is_finite = numpy.isfinite(values)
    if not is_finite.all():
        raise error(
            f"{expected} of finite numbers within {dtype}, found {array[~is_finite][0]} in "
            f"{(~is_finite).sum()} of {array.size} entries. Use another checkpoint if the training "
            "diverged, or float32 in place of float16."
        )
    return values
