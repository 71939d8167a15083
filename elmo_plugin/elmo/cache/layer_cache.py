import hashlib
import logging
import os
import shutil
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Dict, Iterable, Iterator, List, Optional, Tuple

import numpy

from elmo_plugin.bilm import Bilm, fingerprint

try:
    import lmdb
except ImportError:
    # ELMo works without a cache; `LayerCache.open` warns.
    lmdb = None  # type: ignore[assignment]

logger = logging.getLogger(__name__)

# Must change with the layout or the computation of entries.
_FORMAT = "elmo_plugin layers 3"
# Entries are written in groups of this size.
_MAX_PENDING_BYTES = 16 * 2**20
# Free space to leave on the disk for checkpoints, or a tenth of a smaller disk.
_MIN_FREE_BYTES = 20 * 2**30
# Address space, neither RAM nor disk; the maximum size of the file.
_MAP_SIZE = 2**40

_Entries = Iterator[Tuple[bytes, numpy.ndarray]]


class LayerCache:
    """
    Layers of a frozen biLM on the disk, in half precision, one entry per sentence. An entry takes
    `2 * entry_width` bytes for each token, `<S>` and `</S>`: 5,120 for the published biLM
    (4096/512). Create a cache with `open`, because a process must not open a store twice.

    The store is an LMDB file, which processes of one machine may share; `docs/cache.md` says what
    is safe. Entries are collected in memory and written in groups of 16 MB. If the store cannot be
    read or written, it logs a warning, and layers are computed as without a cache.
    """

    _opened: Dict[Path, "LayerCache"] = {}

    def __init__(self, path: Path, width: int) -> None:
        self.path, self.width = path, width
        path.mkdir(parents=True, exist_ok=True)
        self._environment = lmdb.open(
            os.fspath(path),
            map_size=_MAP_SIZE,
            # The umask decides who else may write.
            mode=0o666,
            max_readers=1024,
            readahead=False,
        )
        # Killed readers would fill the table of readers and prevent the reuse of pages.
        self._environment.reader_check()
        self._readable = self._writable = True
        self._pending: Dict[bytes, numpy.ndarray] = {}
        self._pending_bytes = 0
        # The entries that the last two calls of `prefetch` read.
        self._prefetched: Tuple[Dict[bytes, numpy.ndarray], ...] = ()

    @classmethod
    def open(cls, folder: Path, bilm: Bilm) -> Optional["LayerCache"]:
        """Opens the cache in the sub-folder `bilm_key`; `None`, after a warning, if it cannot."""
        if lmdb is None:
            logger.warning(
                "ELMo's cache needs the package lmdb, which is not installed. Layers are computed "
                "instead. Install it (pip install lmdb), or set `cache` to false."
            )
            return None
        try:
            path = folder.expanduser().resolve() / bilm_key(bilm)
            if path not in cls._opened:
                cls._opened[path] = cache = cls(path, entry_width(bilm))
                num_sentences = cache._environment.stat()["entries"]
                logger.info(f"ELMo's cache {path}: {num_sentences:,} sentences")
            return cls._opened[path]
        # Paths raise `RuntimeError` for an unknown user and for a loop of links.
        except (OSError, RuntimeError, lmdb.Error) as error:
            logger.warning(
                f"ELMo's cache in {folder} cannot be opened ({error}). Layers are computed "
                "instead. Choose a folder in which you may write, delete damaged files, or "
                f"allow {_MAP_SIZE:,} bytes of address space (`ulimit -v`)."
            )
            return None

    @classmethod
    def opened(cls) -> List["LayerCache"]:
        """All caches that this process has open."""
        return list(cls._opened.values())

    @classmethod
    def close_all(cls) -> None:
        """Flushes and closes all caches that this process has open."""
        while cls._opened:
            _, cache = cls._opened.popitem()
            cache.flush()
            cache._environment.close()

    def read(self, keys: Iterable[bytes]) -> _Entries:
        """
        Yields the key (see `sentence_key`) and layers of each known entry: half precision, shape
        `(num_tokens + 2, width)`. Layers must not be changed, and are valid until the next entry.
        """
        on_disk = []
        for key in keys:
            # One `get` per dictionary, because another thread may write the entries meanwhile.
            in_memory = (entries.get(key) for entries in (*self._prefetched, self._pending))
            layers = next((found for found in in_memory if found is not None), None)
            if layers is None:
                on_disk.append(key)
            else:
                yield key, layers
        if on_disk and self._readable:
            yield from self._on_disk(on_disk)

    def prefetch(self, keys: Iterable[bytes]) -> None:
        """Reads the entries of `keys` into memory for the next calls of `read`."""
        prefetched = {key: layers.copy() for key, layers in self.read(keys)}
        # Keeps the entries of the last call, because the model still reads the current batch.
        self._prefetched = (prefetched, *self._prefetched[:1])

    def write(self, entries: Iterable[Tuple[bytes, numpy.ndarray]]) -> None:
        """Writes the entries of one batch, all in the same commit."""
        if not self._writable:
            return
        # A kill must not divide a batch: layers computed again in another batch would differ in
        # their last bits.
        for key, layers in entries:
            if key not in self._pending:
                self._pending[key] = layers.copy()
                self._pending_bytes += layers.nbytes
        if self._pending_bytes >= _MAX_PENDING_BYTES:
            self.flush()

    def flush(self) -> None:
        """Commits the collected entries, so that other processes find them."""
        try:
            if self._pending:
                self._check_free_space()
                with self._environment.begin(write=True) as transaction:
                    for key, layers in self._pending.items():
                        transaction.put(key, layers.tobytes())
        except (OSError, lmdb.Error) as error:
            self._writable = False
            logger.warning(
                f"ELMo's cache {self.path} does not grow any more: {error}. Its entries are still "
                "used; other layers are computed each time. Free some space, or name another "
                "folder in `cache` or ELMO_CACHE."
            )
        self._pending, self._pending_bytes = {}, 0

    def _on_disk(self, keys: List[bytes]) -> _Entries:
        try:
            with self._environment.begin(buffers=True) as transaction:
                for key in keys:
                    entry = transaction.get(key)
                    if entry is not None:
                        yield key, numpy.frombuffer(entry, numpy.float16).reshape(-1, self.width)
        except lmdb.Error as error:
            self._disable()
            logger.warning(
                f"ELMo's cache {self.path} cannot be read any more ({error}). Layers are computed "
                "instead. If this happens again in the next run, delete the folder."
            )

    def _disable(self) -> None:
        self._readable = self._writable = False
        self._pending, self._pending_bytes, self._prefetched = {}, 0, ()

    def _check_free_space(self) -> None:
        disk = shutil.disk_usage(self.path)
        reserve = min(_MIN_FREE_BYTES, disk.total // 10)
        if disk.free - self._pending_bytes < reserve:
            raise OSError(
                f"the disk has {disk.free / 2**20:,.0f} MB free, and {reserve / 2**20:,.0f} MB "
                "must stay free"
            )


def bilm_key(bilm: Bilm) -> str:
    """A hash of the biLM's fingerprint, its initial state, and the layout of an entry."""
    text = f"{_FORMAT} warm_up={bilm.warm_up} {fingerprint(bilm)}"
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def entry_width(bilm: Bilm) -> int:
    """Numbers per token: the token layer once (not doubled), then each LSTM layer."""
    return bilm.options.token_dim + (bilm.num_layers - 1) * bilm.output_dim


def sentence_key(character_ids: numpy.ndarray) -> bytes:
    """A hash of the character ids, shape `(num_tokens, max_characters_per_token)`."""
    return hashlib.blake2b(character_ids.astype(numpy.int32).tobytes(), digest_size=16).digest()


def _disable_in_child() -> None:
    # A forked process must not use the stores of its parent.
    for cache in LayerCache.opened():
        cache._disable()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_disable_in_child)
# Unlike `atexit`, this is also called when a process of a distributed training ends.
Finalize(None, LayerCache.close_all, exitpriority=10)
