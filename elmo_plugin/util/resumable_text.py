import json
import os
import shutil
from pathlib import Path
from typing import Any, Dict, TextIO

from elmo_plugin.util.atomic_write import UNFINISHED, check_output, resumable_file, write_json
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.folder_lock import lock_folder


class ResumableText:
    """
    A text file that is written in commits: work that was killed continues after the last one. Until
    the end, the lines and the progress are in the folder `PATH.unfinished`.

    # Parameters

    path : `Path`
        The file to write, or a symbolic link to it; its folder is created if needed.
    settings : `Dict[str, Any]`
        What the lines depend on, as strings or numbers. Unfinished work is continued only if its
        settings are the same.
    force : `bool`
        Replace a finished file, and unfinished work with other settings.

    # Raises

    `ConfigurationError`
        If the file is finished, or a pipe or device; if unfinished work has other settings, is
        damaged, or belongs to a running process; if the folder cannot be created.
    """

    def __init__(self, path: Path, settings: Dict[str, Any], force: bool) -> None:
        path = resumable_file(path)
        check_output(path, force)
        self.path, self.folder = path, Path(f"{path}{UNFINISHED}")
        #: The `progress` of the last commit.
        self.progress: Dict[str, Any] = {}
        self._settings = settings
        self._lines, self._state = self.folder / "lines", self.folder / "progress.json"
        self._lock = lock_folder(self.folder)
        try:
            self._file = self._opened(force)
        except BaseException:
            os.close(self._lock)
            raise

    def commit(self, text: str, progress: Dict[str, Any]) -> None:
        """Adds text, and stores the `progress` from which work can continue after it."""
        self._file.write(text)
        self._file.flush()
        os.fsync(self._file.fileno())
        self.progress = progress
        state = {
            "settings": self._settings,
            "progress": progress,
            "num_bytes": self._lines.stat().st_size,
        }
        write_json(self._state, state)

    def finish(self) -> None:
        """Gives the file its name; `close` then removes the folder."""
        self._file.close()
        os.replace(self._lines, self.path)
        self._state.unlink(missing_ok=True)

    def close(self) -> None:
        """Releases the lock; removes the folder unless it contains unfinished work."""
        self._file.close()
        if not self._state.exists():
            shutil.rmtree(self.folder, ignore_errors=True)
        os.close(self._lock)

    def _opened(self, force: bool) -> TextIO:
        num_bytes = 0
        if self._state.exists() and self._lines.exists():
            state = self._read_state()
            if can_continue(self.folder, state["settings"], self._settings, force):
                self.progress, num_bytes = state["progress"], state["num_bytes"]
        if not num_bytes:
            # Before the lines are removed: progress without its lines would count as damage.
            self._state.unlink(missing_ok=True)
        file = open(self._lines, "a", encoding="utf-8", newline="\n")
        file.truncate(num_bytes)
        return file

    def _read_state(self) -> Dict[str, Any]:
        try:
            state = json.loads(self._state.read_text(encoding="utf-8"))
            is_whole = {"settings", "progress"} <= state.keys()
            if is_whole and self._lines.stat().st_size >= state["num_bytes"] >= 0:
                return state
        except (AttributeError, KeyError, TypeError, ValueError):
            pass
        raise ConfigurationError(
            f"{self.folder} is damaged. Delete it and run the same command again."
        )


def can_continue(
    folder: Path, found: Dict[str, Any], expected: Dict[str, Any], force: bool
) -> bool:
    """
    Whether unfinished work in `folder` has the expected settings. If it has others, raises
    `ConfigurationError`, unless `force` is true.
    """
    difference = settings_difference(found, expected)
    if difference and not force:
        raise ConfigurationError(
            f"{folder} was begun with other settings: {difference}. Repeat that command to "
            "continue it, name another output, or add --force to begin anew."
        )
    return not difference


def settings_difference(found: Dict[str, Any], expected: Dict[str, Any]) -> str:
    """Names the settings of unfinished work that are not as expected; empty if there are none."""
    return "; ".join(
        # Long values, such as digests, would not help in the message.
        f"{name} {found.get(name)}, now {value}" if len(str(value)) < 32 else f"another {name}"
        for name, value in expected.items()
        if found.get(name) != value
    )
