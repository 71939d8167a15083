import os
import shutil
from pathlib import Path
from typing import Any, Callable, Dict, Sequence, TypeVar

from elmo_plugin.elmo.store.rows import RowFile, Store
from elmo_plugin.util.atomic_write import UNFINISHED, atomic_write, check_output, resumable_file

T = TypeVar("T")


class ResumableFile(Store):
    """
    A file that is complete or absent, whatever stops its writer. Until `finish` writes it, its rows
    are in the folder `PATH.unfinished`. `path` may be a symbolic link to the file, but no pipe or
    device. `force` replaces a finished file, and unfinished work with other settings. For the other
    parameters and the errors see `Store`.
    """

    def __init__(
        self,
        path: Path,
        files: Sequence[RowFile],
        settings: Dict[str, Any],
        start: Dict[str, Any],
        force: bool,
    ) -> None:
        self.path = resumable_file(path)
        folder = Path(f"{self.path}{UNFINISHED}")
        # `path`, because the target of a link may lack the suffix.
        self._whole = folder / f"whole{path.suffix}"
        super().__init__(folder, files, settings, start, force)

    def finish(self, write: Callable[[Path], T]) -> T:
        """Writes the file with `write`, whose result it returns, and then removes the rows."""
        with atomic_write(self._whole) as path:
            result = write(path)
        self._publish()
        return result

    def _is_begun(self) -> bool:
        return super()._is_begun() or self._whole.exists()

    def _open(self, settings: Dict[str, Any], force: bool, anew: bool) -> None:
        if self._whole.exists():
            # A process was killed just before its end.
            self._publish()
        check_output(self.path, force)
        super()._open(settings, force, anew)

    def _publish(self) -> None:
        self._remove()
        os.replace(self._whole, self.path)
        for left in self.folder.glob(f"*{UNFINISHED}"):
            # Left by killed processes.
            left.unlink()


class ResumableText:
    """A text file that is written in commits. For parameters and errors see `ResumableFile`."""

    def __init__(self, path: Path, settings: Dict[str, Any], force: bool) -> None:
        lines = RowFile("lines", "u1", 1, "num_bytes")
        self._rows = ResumableFile(Path(path), [lines], settings, {"progress": {}}, force)
        self.folder = self._rows.folder

    @property
    def progress(self) -> Dict[str, Any]:
        """The `progress` of the last commit."""
        return self._rows.state["progress"]

    def commit(self, text: str, progress: Dict[str, Any]) -> None:
        """Appends text, and stores the `progress` from which work can continue after it."""
        self._rows.append("lines", text.encode())
        self._rows.commit(progress=progress)

    def finish(self) -> None:
        """Writes the file and removes its folder of rows."""
        self._rows.finish(lambda path: shutil.copyfile(self.folder / "lines", path))

    def close(self) -> None:
        self._rows.close()
