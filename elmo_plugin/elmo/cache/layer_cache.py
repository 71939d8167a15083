import logging
import os
import shutil
import struct
import zlib
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Dict, Iterable, Iterator, List, Optional, Tuple

import numpy

from elmo_plugin.bilm import Bilm
from elmo_plugin.elmo.cache.keys import entry_width, identity

try:
    import lmdb
except ImportError:
    # ELMo works without a cache; `LayerCache.open` warns.
    _HAS_LMDB = False
else:
    _HAS_LMDB = True

logger = logging.getLogger(__name__)

# Entries that wait to be written together.
_MAX_PENDING_BYTES = 16 * 2**20
# Left free, or a tenth of a smaller disk: a full one would cost a training its checkpoints.
_MIN_FREE_BYTES = 20 * 2**30
# Address space, not memory and not disk: where the file may grow to.
_MAP_SIZE = 2**40
# LMDB counts pages at the end that a commit gave up unwritten.
_MAX_UNUSED_BYTES = 2**20
_DAMAGE = ("CorruptedError", "PageNotFoundError", "InvalidError", "PanicError")
# Before the layers of an entry: checksum and number of tokens.
_HEADER = struct.Struct("<II")


class LayerCache:
    """
    The layers of sentences that a frozen biLM has read, kept on disk in half precision.

    An entry costs `2 * (token_dim + n_layers * 2 * projection_dim)` bytes for each token and for
    each of the marks `<S>` and `</S>`: 5,120 at the published size (4096/512), 1,280 for 512/128;
    the doubled half of the token layer is left out.

    The store is LMDB: memory-mapped, read by any number of processes while one writes, and whole
    after a kill or a power cut, because a commit appears at once or not at all. Entries wait in
    memory until there are 16 MB of them. Each carries a checksum over its words and its layers; one
    that is damaged counts as missing. When the store cannot be read or written, a warning
    says so and layers are computed as without a cache. It stops growing when 20 GB of the disk,
    or a tenth of a smaller one, are left. Not for network file systems, nor for containers that
    share a folder but not their process numbers: there LMDB's locks do not hold.

    Use `open`; a process has a store open once.

    # Parameters

    path : `Path`
        The folder of one biLM's entries, made if needed.
    width : `int`
        Numbers per token.

    # Raises

    `OSError`, `lmdb.Error`
        If the store cannot be opened.
    """

    _opened: Dict[Path, "LayerCache"] = {}

    def __init__(self, path: Path, width: int) -> None:
        self.path, self.width = path, width
        path.mkdir(parents=True, exist_ok=True)
        data = path / "data.mdb"
        self._environment = lmdb.open(
            os.fspath(path),
            map_size=_MAP_SIZE,
            # Who else may write is the umask's to say.
            mode=0o666,
            max_readers=1024,
            readahead=False,
            readonly=not os.access(data if data.exists() else path, os.W_OK),
        )
        # Readers that were killed would fill the table, and hold pages that could be used again.
        self._environment.reader_check()
        self._writable = not self._environment.flags()["readonly"]
        self._check_length()
        self._readable = True
        self._damaged = 0
        self._pending: Dict[bytes, bytes] = {}
        self._pending_bytes = 0
        # Of the last calls of `prefetch`.
        self._ahead: Tuple[Dict[bytes, numpy.ndarray], ...] = ()
        self._found = self._sought = 0

    @classmethod
    def open(cls, folder: Path, bilm: Bilm) -> Optional["LayerCache"]:
        """
        The cache of one biLM, or `None` after a warning if it cannot be opened.

        # Parameters

        folder : `Path`
            Below it, each biLM has a folder named by its `identity`.
        bilm : `Bilm`
            Frozen and stateless.
        """
        if not _HAS_LMDB:
            logger.warning(
                "ELMo's cache needs the package lmdb, which is not installed. Layers are computed "
                "instead. Install it (pip install lmdb), or set `cache` to false."
            )
            return None
        try:
            path = folder.expanduser().resolve() / identity(bilm)
            if path not in cls._opened:
                cls._opened[path] = cache = cls(path, entry_width(bilm))
                logger.info(f"ELMo's cache {path}: {cache._size()}")
            return cls._opened[path]
        # Of paths, `RuntimeError` says that there is no such user, or a circle of links.
        except (OSError, RuntimeError, lmdb.Error) as error:
            logger.warning(
                f"ELMo's cache in {folder} cannot be opened ({error}). Layers are computed "
                "instead. Name another folder in `cache` or ELMO_CACHE; if the files are damaged, "
                f"delete them; if memory is lacking, `ulimit -v` allows less than {_MAP_SIZE:,} "
                "bytes."
            )
            return None

    @classmethod
    def opened(cls) -> List["LayerCache"]:
        """All that this process has open."""
        return list(cls._opened.values())

    @classmethod
    def close_all(cls) -> None:
        """Reports on all that this process has open, and closes them."""
        while cls._opened:
            _, cache = cls._opened.popitem()
            cache.report()
            cache._environment.close()

    def read(self, keys: Iterable[bytes]) -> Iterator[Tuple[bytes, numpy.ndarray]]:
        """
        # Parameters

        keys : `Iterable[bytes]`
            Which sentences, by `sentence_keys`.

        # Returns

        `Iterator[Tuple[bytes, numpy.ndarray]]`
            Those that are here: shape `(num_tokens + 2, width)`, half precision, not to be
            changed, and not to be used after the next one was asked for.
        """
        keys = list(keys)
        self._sought += len(keys)
        for key, layers in self._entries(keys):
            self._found += 1
            yield key, layers

    def prefetch(self, keys: Iterable[bytes]) -> None:
        """Brings entries into memory, where the next calls of `read` find them; see there."""
        ahead = {key: layers.copy() for key, layers in self._entries(list(keys))}
        # One batch is being read while the next one is prepared.
        self._ahead = (ahead, *self._ahead[:1])

    def write(self, entries: Iterable[Tuple[bytes, numpy.ndarray]]) -> None:
        """
        # Parameters

        entries : `Iterable[Tuple[bytes, numpy.ndarray]]`
            Sentences that were computed together, each with its layers: shape
            `(num_tokens + 2, width)`, half precision. A kill loses all of them or none: computed
            again apart, the last bits of some would differ.
        """
        if not self._writable:
            return
        for key, layers in entries:
            if key not in self._pending:
                payload = layers.tobytes()
                self._pending[key] = _HEADER.pack(_checksum(key, payload), len(layers)) + payload
                self._pending_bytes += len(payload)
        if self._pending_bytes >= _MAX_PENDING_BYTES:
            self.flush()

    def flush(self) -> None:
        """Writes what waits, for other processes to see and for good."""
        if not self._pending:
            return
        try:
            self._check_room()
            with self._environment.begin(write=True) as transaction:
                for key, entry in self._pending.items():
                    transaction.put(key, entry)
        except (OSError, lmdb.Error) as error:
            self._stop_writing(str(error))
            return
        self._pending, self._pending_bytes = {}, 0

    def report(self) -> None:
        """Writes what waits, and logs how much was found since the last report."""
        self.flush()
        if self._sought:
            logger.info(
                f"ELMo's cache: {self._found:,} of {self._sought:,} sentences found "
                f"({self._found / self._sought:.1%}); {self._size()}"
            )
        self._found = self._sought = 0

    def _entries(self, keys: List[bytes]) -> Iterator[Tuple[bytes, numpy.ndarray]]:
        others = []
        for key in keys:
            layers = next((ahead[key] for ahead in self._ahead if key in ahead), None)
            # Another thread may write what waits in between.
            waiting = self._pending.get(key)
            if layers is None and waiting is not None:
                layers = self._decoded(key, waiting)
            if layers is None:
                others.append(key)
            else:
                yield key, layers
        if others and self._readable:
            yield from self._on_disk(others)

    def _on_disk(self, keys: List[bytes]) -> Iterator[Tuple[bytes, numpy.ndarray]]:
        try:
            with self._environment.begin(buffers=True) as transaction:
                for key in keys:
                    entry = transaction.get(key)
                    layers = None if entry is None else self._decoded(key, entry)
                    if layers is not None:
                        yield key, layers
        except lmdb.Error as error:
            self._give_up()
            is_damaged = type(error).__name__ in _DAMAGE
            cure = "delete the folder to begin anew" if is_damaged else "start again"
            logger.warning(
                f"ELMo's cache {self.path} cannot be read any more ({error}). Layers are computed "
                f"instead; {cure}."
            )

    def _give_up(self) -> None:
        self._readable = self._writable = False
        self._pending, self._pending_bytes, self._ahead = {}, 0, ()

    def _decoded(self, key: bytes, entry: memoryview) -> Optional[numpy.ndarray]:
        if len(entry) >= _HEADER.size:
            checksum, num_rows = _HEADER.unpack_from(entry)
            payload = memoryview(entry)[_HEADER.size :]
            if len(payload) == num_rows * self.width * 2 and checksum == _checksum(key, payload):
                return numpy.frombuffer(payload, numpy.float16).reshape(num_rows, self.width)
        self._damaged += 1
        if self._damaged == 1:
            logger.warning(
                f"ELMo's cache {self.path} holds a damaged entry, which is computed anew and "
                "written again. If the disk is failing, delete the folder."
            )
        return None

    def _check_room(self) -> None:
        disk = shutil.disk_usage(self.path)
        to_keep = min(_MIN_FREE_BYTES, disk.total // 10)
        if disk.free - self._pending_bytes < to_keep:
            raise OSError(
                f"{disk.free / 2**20:,.0f} MB of its disk are free, of which "
                f"{to_keep / 2**20:,.0f} are left to others"
            )

    def _stop_writing(self, reason: str) -> None:
        self._writable = False
        self._pending, self._pending_bytes = {}, 0
        logger.warning(
            f"ELMo's cache {self.path} does not grow any more: {reason}. What it holds is still "
            "used, other layers are computed each time. Make room, or name another folder in "
            "`cache` or ELMO_CACHE."
        )

    def _check_length(self) -> None:
        # Reading what a file that was cut short has lost would kill the process.
        needed = (self._environment.info()["last_pgno"] + 1) * self._environment.stat()["psize"]
        found = os.path.getsize(self.path / "data.mdb")
        if needed > found + _MAX_UNUSED_BYTES:
            raise OSError(f"{found:,} bytes of {needed:,} are left of data.mdb")
        if needed > found and self._writable:
            # Pages at the end may never have been used. Never shortens the file, whatever another
            # process writes meanwhile.
            with open(self.path / "data.mdb", "r+b") as file:
                os.posix_fallocate(file.fileno(), 0, needed)

    def _size(self) -> str:
        pages = self._environment.info()["last_pgno"] + 1
        size = pages * self._environment.stat()["psize"] / 2**20
        return f"{self._environment.stat()['entries']:,} sentences, {size:,.0f} MB on disk"


def _checksum(key: bytes, payload: memoryview) -> int:
    # The words count too: an entry under another key is no good.
    return zlib.crc32(payload, zlib.crc32(key))


def _forget_in_child() -> None:
    # A child inherits the store, but may not use it.
    for cache in LayerCache.opened():
        cache._give_up()


os.register_at_fork(after_in_child=_forget_in_child)
# Unlike `atexit`, also at the end of the processes of a distributed training.
Finalize(None, LayerCache.close_all, exitpriority=10)
