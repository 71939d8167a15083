from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Dict, List

from spacy.language import Language
from thinc.util import get_torch_default_device

import elmo_plugin
from elmo_plugin.elmo.token_batches import token_batches
from elmo_plugin.integrations.spacy.pipe import BatchPipe
from elmo_plugin.util.atomic_write import atomic_write
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.resources import shipped_archives
from elmo_plugin.util.weights import save_atomically

_ARCHIVE = "model.tar.gz"
# Maximum number of sentences, or documents, in a batch; see also `token_batches`.
_BATCH_SIZE = 64


class ArchivePipe(BatchPipe):
    """
    The base of the components that predict with the archive of a trained model. They read spaCy's
    tokens, except white space. A document without sentence boundaries is read as one sentence.

    # Parameters

    nlp : `Language`
        The pipeline.
    name : `str`
        The name of the component in its pipeline.
    archive : `str`, optional (default = `""`)
        An archive for `elmo_plugin.load_archive`, read when the first document comes. Empty: the
        trained model of the task that comes with the project.

    # Raises

    `ConfigurationError`
        When the first document comes: if the archive cannot be read, or is of another task, or if
        none comes with the project.
    """

    #: The registered name of its task.
    task: str

    def __init__(self, nlp: Language, name: str, archive: str = "") -> None:
        super().__init__(name)
        self._file = archive
        # AllenNLP's `Archive` and `Predictor`.
        self._archive: Any = None
        self._predictor: Any = None

    def load(self) -> Any:
        """The archive, which is read at the first call."""
        if self._archive is None:
            device = get_torch_default_device()
            number = (device.index or 0) if device.type == "cuda" else -1
            archive = elmo_plugin.load_archive(self._file or self._shipped_file(), number)
            found = archive.model.default_predictor
            if found != self.task:
                raise ConfigurationError(
                    f"{self.name}: expected an archive of {self.task}, found {self._file} of "
                    f"{found or type(archive.model).__name__}. Correct `archive`."
                )
            # Not at the top: AllenNLP takes seconds to import.
            from allennlp.predictors import Predictor

            self._archive = archive
            self._predictor = Predictor.from_archive(archive)
        return self._archive

    def _shipped_file(self) -> str:
        path = shipped_archives().get(self.task.removeprefix("elmo-"))
        if path is None:
            raise ConfigurationError(
                f"{self.name}: no trained model of {self.task} comes with the project. Set "
                "`archive` to one that `allennlp train` wrote."
            )
        return str(path)

    def predict(self, lines: List[Dict[str, Any]], lengths: List[int]) -> List[Dict[str, Any]]:
        """
        The predictions for inputs of the task's predictor, which are read in batches of similar
        length.

        # Parameters

        lines : `List[Dict[str, Any]]`
        lengths : `List[int]`
            The number of tokens of each.
        """
        self.load()
        order = sorted(range(len(lines)), key=lengths.__getitem__)
        predictions: Dict[int, Dict[str, Any]] = {}
        for batch in token_batches([lengths[number] for number in order], _BATCH_SIZE):
            inputs = [lines[number] for number in order[batch]]
            predictions.update(zip(order[batch], self._predictor.predict_batch_json(inputs)))
        return [predictions[number] for number in range(len(lines))]

    def to_disk(self, path: Any, *, exclude: Any = ()) -> None:
        """Writes the trained model as `model.tar.gz`, which `allennlp predict` reads, too."""
        archive = self.load()
        from allennlp.models.archival import archive_model

        with TemporaryDirectory() as folder:
            archive.config.to_file(str(Path(folder, "config.json")))
            archive.model.vocab.save_to_files(str(Path(folder, "vocabulary")))
            save_atomically(archive.model.state_dict(), Path(folder, "best.th"))
            if archive.meta is not None:
                archive.meta.to_file(Path(folder, "meta.json"))
            with atomic_write(Path(path, _ARCHIVE)) as unfinished:
                archive_model(folder, archive_path=unfinished)

    def from_disk(self, path: Any, *, exclude: Any = ()) -> "ArchivePipe":
        """Reads what `to_disk` has written, in place of the archive that the settings name."""
        self._file, self._archive = str(Path(path, _ARCHIVE)), None
        # Loaded now, since the folder may be a temporary one.
        self.load()
        return self
