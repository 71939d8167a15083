import os
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from tarfile import TarFile
from tempfile import TemporaryDirectory
from typing import Any, Callable, Iterable, Iterator, List, Sequence

import torch
from spacy.pipeline import Pipe
from spacy.tokens import Doc, Token
from spacy.util import minibatch

from elmo_plugin.util.unpacking import unpack

# For `nlp.pipe(…, n_process=2)`, which forks: PyTorch's thread pool does not work in the
# child, which would wait for it forever.
os.register_at_fork(after_in_child=lambda: torch.set_num_threads(1))


class BatchPipe(Pipe):
    """
    The base of the components: annotates documents in batches, and is stored in the folder or the
    bytes of its pipeline. A subclass defines `annotate`, `to_disk` and `from_disk`.

    # Parameters

    name : `str`
        The name of the component in its pipeline.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, doc: Doc) -> Doc:
        """Annotates a document, see `annotate`."""
        self.annotate([doc])
        return doc

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 64) -> Iterator[Doc]:
        """Annotates a stream of documents, `batch_size` of them at a time."""
        handle_error = self.get_error_handler()
        for docs in minibatch(stream, size=batch_size):
            try:
                self.annotate(docs)
            # The handler is the user's: by default it raises the error.
            except Exception as error:
                handle_error(self.name, self, docs, error)
            else:
                yield from docs

    def annotate(self, docs: Sequence[Doc]) -> None:
        """Changes the documents in place."""
        raise NotImplementedError

    def to_disk(self, path: Any, *, exclude: Any = ()) -> None:
        """Writes all that the component needs into a folder, which can then be moved."""
        raise NotImplementedError

    def from_disk(self, path: Any, *, exclude: Any = ()) -> "BatchPipe":
        """Reads what `to_disk` has written, in place of the files that the settings name."""
        raise NotImplementedError

    def to_bytes(self, *, exclude: Any = ()) -> bytes:
        """The files of `to_disk`, as a tar file."""
        return folder_to_bytes(self.to_disk)

    def from_bytes(self, data: bytes, *, exclude: Any = ()) -> "BatchPipe":
        """Reads what `to_bytes` has returned."""
        with folder_of_bytes(data) as folder:
            return self.from_disk(folder)


def sentences_of(doc: Doc) -> List[List[Token]]:
    """
    The tokens of each sentence, or of the whole document if no component has marked the beginnings
    of sentences; without those of white space alone, which are in no corpus.
    """
    parts = doc.sents if doc.has_annotation("SENT_START") else [doc]
    sentences = [[token for token in part if not token.is_space] for part in parts]
    return [tokens for tokens in sentences if tokens]


def folder_to_bytes(write: Callable[[Path], object]) -> bytes:
    """The files that a function writes into a folder, as a tar file."""
    packed = BytesIO()
    with TemporaryDirectory() as folder:
        write(Path(folder))
        with TarFile(fileobj=packed, mode="w") as archive:
            archive.add(folder, arcname=".")
    return packed.getvalue()


@contextmanager
def folder_of_bytes(data: bytes) -> Iterator[Path]:
    """Yields a temporary folder with the files of `folder_to_bytes`; for errors see `unpack`."""
    with TemporaryDirectory() as folder:
        packed, unpacked = Path(folder, "bytes.tar"), Path(folder, "files")
        packed.write_bytes(data)
        unpacked.mkdir()
        unpack(packed, unpacked, "The bytes of a pipeline")
        packed.unlink()
        yield unpacked
