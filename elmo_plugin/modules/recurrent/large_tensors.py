import numpy
import torch

_LARGE = 4 * 1024 * 1024


def large_empty(like: torch.Tensor, rows: int, columns: int, dtype: torch.dtype) -> torch.Tensor:
    """
    Uninitialised and of shape `(rows, columns)`, on the device of `like`.

    Memory fresh from the system comes page by page: for 40 MB that takes as long as a matrix
    product of that size. NumPy asks for large pages, PyTorch does not.
    """
    num_bytes = rows * columns * dtype.itemsize
    if like.device.type != "cpu" or num_bytes < _LARGE:
        return torch.empty(rows, columns, dtype=dtype, device=like.device)
    # Aligned as PyTorch aligns its own.
    room = torch.from_numpy(numpy.empty(num_bytes + 64, dtype=numpy.uint8))
    start = -room.data_ptr() % 64
    return room[start : start + num_bytes].view(dtype).view(rows, columns)
