import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Dict, List, Sequence

import numpy

from elmo_plugin.analysis.neighbours.context_index import (
    CONTEXT_COLUMNS,
    CONTEXTS_FILE,
    INDEX_FILE,
    SENTENCE_COLUMNS,
    SENTENCES_FILE,
    START,
    TEXT_FILE,
    damaged,
    key_of,
    layer_file,
    read_settings,
)
from elmo_plugin.analysis.neighbours.growing_array import GrowingArray
from elmo_plugin.util.atomic_write import UNFINISHED, write_json
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.folder_lock import lock_folder
from elmo_plugin.util.resumable_text import can_continue


class IndexWriter:
    """
    Writes the folder of a `ContextIndex`. A commit appends to the files and then replaces
    `index.json`, which holds their sizes; whatever a killed process appended after its last commit
    is cut off.

    # Parameters

    folder : `Path`
        Created if needed. An index in it is continued if it has the same settings.
    settings : `Dict[str, Any]`
        The head of `index.json`, with `layers` and `dim`.
    force : `bool`
        Begin anew if the folder holds an index.

    # Raises

    `ConfigurationError`
        If the folder holds something else, or an index with other settings or a damaged one; if
        it cannot be created, or another process is writing it.
    """

    def __init__(self, folder: Path, settings: Dict[str, Any], force: bool) -> None:
        self.folder = folder
        #: The content of `index.json` at the last commit.
        self.progress = {**settings, **START}
        _check_folder(folder)
        self._lock = lock_folder(folder)
        self._files = ExitStack()
        self._arrays: List[GrowingArray] = []
        try:
            self._continue(settings, force)
            self._open_files()
        except BaseException:
            self.close()
            raise

    def add(
        self, line: int, words: Sequence[str], positions: Sequence[int], layers: numpy.ndarray
    ) -> None:
        """
        # Parameters

        line : `int`
            Number of the line in the indexed text.
        words : `Sequence[str]`
            The sentence.
        positions : `Sequence[int]`
            Its contexts.
        layers : `numpy.ndarray`
            Shape `(num_layers, num_contexts, dim)`, of length 1.
        """
        if self.progress["complete"]:
            # Of a finished index that is continued with more text.
            self.progress["complete"] = False
            self._write_progress()
        sentence = self._sentences.num_rows
        keys = [key_of([words[position]]) for position in positions]
        contexts = [(sentence, position, key) for position, key in zip(positions, keys)]
        for array, vectors in zip(self._layers, layers):
            array.append(vectors)
        self._contexts.append(numpy.array(contexts, "<i8"))
        self._text.write(f"{' '.join(words)}\n".encode())
        ends = (self._text.tell(), self._contexts.num_rows)
        self._sentences.append(numpy.array([(line, *ends, key_of(words))], "<i8"))

    def commit(self, num_lines: int, text_sha256: str, complete: bool = False) -> None:
        """Writes all that was added, up to this line, so that a killed process can be continued."""
        for array in self._arrays:
            array.finish() if complete else array.sync()
        self._text.flush()
        os.fsync(self._text.fileno())
        self.progress.update(
            num_lines=num_lines,
            num_sentences=self._sentences.num_rows,
            num_contexts=self._contexts.num_rows,
            num_bytes=self._text.tell(),
            text_sha256=text_sha256,
            complete=complete,
        )
        self._write_progress()

    def close(self) -> None:
        try:
            # Writes what is buffered, which may fail again on a full disk.
            self._files.close()
        finally:
            (self.folder / "lock").unlink(missing_ok=True)
            os.close(self._lock)

    def _continue(self, settings: Dict[str, Any], force: bool) -> None:
        if force or not (self.folder / INDEX_FILE).exists():
            self._write_progress()
            return
        found = read_settings(self.folder)
        if can_continue(self.folder, found, settings, force):
            self.progress = found

    def _open_files(self) -> None:
        done = self.progress
        names = [layer_file(layer) for layer in done["layers"]]
        for old in set(self.folder.glob(layer_file("*"))) - {self.folder / name for name in names}:
            old.unlink()
        try:
            self._layers = [
                self._array(name, "<f2", done["dim"], done["num_contexts"]) for name in names
            ]
            self._contexts = self._array(
                CONTEXTS_FILE, "<i8", CONTEXT_COLUMNS, done["num_contexts"]
            )
            self._sentences = self._array(
                SENTENCES_FILE, "<i8", SENTENCE_COLUMNS, done["num_sentences"]
            )
            mode = "r+b" if done["num_bytes"] else "w+b"
            self._text = self._files.enter_context(open(self.folder / TEXT_FILE, mode))
            if self._text.seek(0, os.SEEK_END) < done["num_bytes"]:
                raise ValueError(f"{TEXT_FILE} is too short")
        except (FileNotFoundError, ValueError) as error:
            raise damaged(self.folder, str(error)) from error
        self._text.seek(done["num_bytes"])
        self._text.truncate()

    def _array(self, name: str, dtype: str, width: int, num_rows: int) -> GrowingArray:
        array = GrowingArray(self.folder / name, dtype, width, num_rows)
        self._arrays.append(array)
        self._files.callback(array.close)
        return array

    def _write_progress(self) -> None:
        write_json(self.folder / INDEX_FILE, self.progress)


def _check_folder(folder: Path) -> None:
    if folder.is_dir() and not (folder / INDEX_FILE).exists():
        # What a process leaves if it is killed before it has written the index file.
        unfinished = {path.name for path in folder.glob(f"{INDEX_FILE}.*{UNFINISHED}")}
        others = sorted(set(os.listdir(folder)) - unfinished - {"lock"})
        if others:
            raise ConfigurationError(
                f"{folder} holds other files ({others[0]}); expected a new folder or an index."
            )
