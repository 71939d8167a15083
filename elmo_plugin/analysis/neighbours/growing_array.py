"""Arrays on the disk that grow by rows, in the format of `numpy.save`."""

import os
from pathlib import Path
from typing import Tuple

import numpy
from numpy.lib import format as npy_format


class GrowingArray:
    """
    A file that `numpy.load` reads, also memory-mapped, and to which rows can be appended.

    # Parameters

    path : `Path`
        Created if there are no rows to keep.
    dtype : `str`
        A little-endian type in NumPy's notation, such as `<f2`.
    width : `int`
        Numbers per row.
    num_rows : `int`
        Number of rows to keep; what a killed process wrote after them is removed.

    # Raises

    `ValueError`
        If the file holds fewer rows.
    """

    def __init__(self, path: Path, dtype: str, width: int, num_rows: int) -> None:
        self._dtype, self._width, self.num_rows = dtype, width, num_rows
        self._file = open(path, "r+b" if num_rows else "w+b")
        # The length of a header does not depend on the number of rows.
        self._write_header()
        size = self._file.tell() + num_rows * width * numpy.dtype(dtype).itemsize
        if self._file.seek(0, os.SEEK_END) < size:
            self._file.close()
            raise ValueError(f"{path.name} is too short")
        self._file.seek(size)
        self._file.truncate()

    def append(self, rows: numpy.ndarray) -> None:
        """Shape of the rows: `(number, width)`."""
        self._file.write(numpy.ascontiguousarray(rows, self._dtype).data)
        self.num_rows += len(rows)

    def sync(self) -> None:
        """Writes everything to the disk."""
        self._file.flush()
        os.fsync(self._file.fileno())

    def finish(self) -> None:
        """Writes the number of rows into the header."""
        self._file.seek(0)
        self._write_header()
        self._file.seek(0, os.SEEK_END)
        self.sync()

    def close(self) -> None:
        self._file.close()

    def _write_header(self) -> None:
        shape: Tuple[int, int] = (self.num_rows, self._width)
        header = {"descr": self._dtype, "fortran_order": False, "shape": shape}
        npy_format.write_array_header_1_0(self._file, header)
