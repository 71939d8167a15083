import json
import os
import shutil
from importlib import metadata
from pathlib import Path
from typing import Any, Dict, List, Optional

from elmo_plugin.elmo.dump.formats import format_of
from elmo_plugin.elmo.dump.part_file import PartWriter, read_header
from elmo_plugin.util.atomic_write import UNFINISHED, atomic_write, check_output, resumable_file
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.folder_lock import lock_folder
from elmo_plugin.util.resumable_text import can_continue

# The keys of `DumpFile.progress` that are not settings.
_PROGRESS = ("num_lines", "text_sha256")


class DumpFile:
    """
    The file that `dump_embeddings` writes, and the sentences done so far.

    A kill while this file is written would make it unreadable. Therefore each commit adds a plain
    file to the folder `PATH.unfinished`, and `finish` copies these parts into one file, which needs
    the same disk space again.

    # Parameters

    path : `Path`
        The file to write, or a symbolic link to it, in the format of its suffix; its folder is
        created if needed.
    settings : `Dict[str, Any]`
        Attributes of the file, see `DumpFormat.write`. Unfinished work is continued only if its
        settings are the same.
    force : `bool`
        Replace a finished file, and unfinished work with other settings.

    # Raises

    `ConfigurationError`
        If the file is finished, or a pipe or device; if unfinished work has other settings, is
        damaged, or belongs to a running process; if the folder cannot be created.
    """

    def __init__(self, path: Path, settings: Dict[str, Any], force: bool) -> None:
        self.path = resumable_file(path)
        self.folder = Path(f"{self.path}{UNFINISHED}")
        #: The settings, and `num_lines` and `text_sha256` of the last commit.
        self.progress = {**settings, "num_lines": 0, "text_sha256": ""}
        #: Writes the parts for `commit`.
        self.writer = PartWriter(self.folder, settings)
        self._format = format_of(path)
        self._whole = self.folder / f"whole{self._format.suffix}"
        check_output(self.path, force=True)
        self._lock = lock_folder(self.folder)
        try:
            if self._whole.exists():
                # A run was killed just before its end.
                self._publish()
            if path.exists() and not force:
                raise _exists(path)
            self._continue(force)
        except BaseException:
            self.close()
            raise

    def commit(self, written: Path) -> None:
        """Adds a part from `writer`, of the lines that follow those of the last commit."""
        self.progress, _ = read_header(written)
        os.replace(written, self.folder / f"{self.progress['num_lines']:012}.part")

    def finish(self, input_path: str, sentence_to_index: Optional[Dict[str, str]]) -> int:
        """
        Writes the file and removes the parts. Returns the number of sentences in the file. If this
        raises `OSError`, all commits are kept.
        """
        index = None if sentence_to_index is None else json.dumps(sentence_to_index)
        attributes = {**self.progress, "input": input_path, "complete": True}
        attributes["elmo_plugin_version"] = _version()
        with atomic_write(self._whole) as path:
            num_sentences = self._format.write(path, self._parts(), attributes, index)
        self._publish()
        return num_sentences

    def close(self) -> None:
        """Releases the lock; removes the folder unless it contains unfinished work."""
        if not self._parts() and not self._whole.exists():
            shutil.rmtree(self.folder, ignore_errors=True)
        os.close(self._lock)

    def _publish(self) -> None:
        self._remove_parts()
        os.replace(self._whole, self.path)

    def _continue(self, force: bool) -> None:
        for written in self.folder.glob("*.written*"):
            # Its writer was killed before the commit; a worker may remove the file, too.
            written.unlink(missing_ok=True)
        parts = self._parts()
        if not parts:
            return
        progress, _ = read_header(parts[-1])
        settings = {name: self.progress[name] for name in self.progress if name not in _PROGRESS}
        if can_continue(self.folder, progress, settings, force):
            self.progress = progress
        else:
            self._remove_parts()

    def _parts(self) -> List[Path]:
        return sorted(self.folder.glob("*.part"))

    def _remove_parts(self) -> None:
        # The last part first: if the process is killed here, the others can be continued.
        for part in reversed(self._parts()):
            part.unlink()


def finished_attributes(path: Path) -> Optional[Dict[str, str]]:
    """The attributes of a finished file and `num_datasets`; `None` if there is none."""
    found = format_of(path).read_attributes(path) if path.is_file() else None
    return None if found is None else {name: str(value) for name, value in found.items()}


def _exists(path: Path) -> ConfigurationError:
    found = finished_attributes(path)
    finished = "" if found is None else f" and is finished, with {found['num_lines']} lines"
    return ConfigurationError(f"{path} exists{finished}. Add --force to replace it.")


def _version() -> str:
    try:
        return metadata.version("elmo-plugin")
    except metadata.PackageNotFoundError:
        return "unknown"
