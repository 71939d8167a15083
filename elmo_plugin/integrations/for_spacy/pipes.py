import os
from contextlib import contextmanager
from functools import cached_property
from io import BytesIO
from pathlib import Path
from tarfile import TarFile
from tempfile import TemporaryDirectory
from traceback import walk_stack
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Union, cast

import numpy
import torch
from spacy.language import Language
from spacy.pipeline import Pipe
from spacy.tokens import Doc, Span, Token
from spacy.util import minibatch
from thinc.api import get_current_ops
from thinc.util import get_torch_default_device

from elmo_plugin.bilm import Bilm, load_bilm
from elmo_plugin.elmo.elmo import chosen_layers
from elmo_plugin.elmo.embed import embed_sentences
from elmo_plugin.util.unpacking import unpack

# `nlp.pipe(…, n_process=2)` forks. PyTorch's thread pool does not work in the child, which would
# wait for it forever.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: torch.set_num_threads(1))

Doc.set_extension("elmo", default=None, force=True)


class BatchPipe(Pipe):
    """
    The base of our spaCy components: annotates documents in batches.

    A subclass defines `annotate`, which changes documents in place; `to_disk`, which writes all
    that it needs into a folder; and `from_disk`, which reads this folder instead of the files in
    its settings.
    """

    annotate: Callable[[Sequence[Doc]], None]
    to_disk: Callable[..., None]
    from_disk: Callable[..., "BatchPipe"]

    def __init__(self, name: str) -> None:
        self.name = name

    def check(self, load: Callable[[], Any]) -> None:
        """
        Calls a function that reads the files in the settings, so that `add_pipe` raises its errors.
        A pipeline that spaCy builds from a config reads them later: those of a stored pipeline, if
        they still exist, are not the ones that it needs.
        """
        of_config = Language.from_config.__func__.__code__  # type: ignore[attr-defined]
        if all(frame.f_code is not of_config for frame, _ in walk_stack(None)):
            load()

    def __call__(self, doc: Doc) -> Doc:
        self.annotate([doc])
        return doc

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 64) -> Iterator[Doc]:
        handle_error = self.get_error_handler()
        for docs in minibatch(stream, size=batch_size):
            try:
                self.annotate(docs)
            # The user's handler decides; by default it raises the error.
            except Exception as error:
                handle_error(self.name, self, docs, error)
            else:
                yield from docs

    def to_bytes(self, *, exclude: Any = ()) -> bytes:
        """Returns the files of `to_disk` as a tar file."""
        return folder_to_bytes(self.to_disk)

    def from_bytes(self, data: bytes, *, exclude: Any = ()) -> "BatchPipe":
        with folder_of_bytes(data) as folder:
            return self.from_disk(folder)


@Language.factory("elmo", assigns=["doc._.elmo", "doc.tensor"])
class ElmoVectors(BatchPipe):
    """
    The component `elmo`: token vectors from a biLM.

    `doc._.elmo` holds all layers, shape `(num_layers, num_tokens, dim)`, token layer first.
    `doc.tensor`, shape `(num_tokens, dim)`, is the mean of `layers`. `vector` and `similarity` of
    documents, spans and tokens use it. White-space tokens have vectors of zeros. Each sentence is
    read separately; without sentence boundaries, the document is one sentence. A wrong file or
    setting raises a `ConfigurationError` in `add_pipe`.

    # Parameters

    bilm, options_file, weight_file, dtype
        See `load_bilm`. `add_pipe` reads the files; see also `BatchPipe.check`.
    layers : `Union[str, List[int]]`
        `all`, `last`, or numbers; 0 is the token layer.
    """

    def __init__(
        self,
        nlp: Language,
        name: str,
        options_file: Optional[str] = None,
        weight_file: Optional[str] = None,
        layers: Union[str, List[int]] = "all",
        dtype: str = "float32",
        bilm: Optional[str] = None,
    ) -> None:
        super().__init__(name)
        self._source: Dict[str, Any] = {"options_file": options_file, "weight_file": weight_file}
        self._source["bilm"] = bilm
        self._layers, self._dtype = layers, dtype
        self.check(self._chosen)

    def _chosen(self) -> List[int]:
        return chosen_layers(self._layers, self.bilm.num_layers)

    @cached_property
    def bilm(self) -> Bilm:
        """The biLM, loaded at the first access."""
        return load_bilm(**self._source, dtype=self._dtype).to(get_torch_default_device())

    def annotate(self, docs: Sequence[Doc]) -> None:
        ops, bilm = get_current_ops(), self.bilm
        chosen = self._chosen()
        sentences = [sentences_of(doc) for doc in docs]
        words = ([token.text for token in each] for of_doc in sentences for each in of_doc)
        embedded = embed_sentences(bilm, words)
        for doc, of_doc in zip(docs, sentences):
            layers = numpy.zeros((bilm.num_layers, len(doc), bilm.output_dim), dtype="float32")
            for tokens in of_doc:
                layers[:, [token.i for token in tokens]] = next(embedded).float().numpy()
            doc._.elmo = layers
            doc.tensor = cast(Any, ops.asarray(layers[chosen].mean(axis=0)))
            for hooks in (doc.user_hooks, doc.user_span_hooks, doc.user_token_hooks):
                hooks.update(vector=_vector, has_vector=_has_vector, similarity=_similarity)

    def to_disk(self, path: Any, *, exclude: Any = ()) -> None:
        """Calls `Bilm.save_pretrained`."""
        self.bilm.save_pretrained(path)

    def from_disk(self, path: Any, *, exclude: Any = ()) -> "ElmoVectors":
        self._source = {"bilm": str(path)}
        self.__dict__.pop("bilm", None)
        # Loaded now, because the folder may be temporary.
        _ = self.bilm
        return self


def _vector(part: Union[Doc, Span, Token]) -> Any:
    if isinstance(part, Token):
        return part.doc.tensor[part.i]
    rows = part.tensor if isinstance(part, Doc) else part.doc.tensor[part.start : part.end]
    return rows.mean(axis=0) if len(rows) else get_current_ops().alloc1f(rows.shape[1])


def _has_vector(part: Union[Doc, Span, Token]) -> bool:
    return bool(_vector(part).any())


def _similarity(part: Union[Doc, Span, Token], other: Any) -> float:
    # `other` may also be a lexeme.
    one, two = _vector(part), other.vector
    norms = float(((one**2).sum() * (two**2).sum()) ** 0.5)
    return float((one * two).sum()) / norms if norms else 0.0


def sentences_of(doc: Doc) -> List[List[Token]]:
    """The tokens of each sentence, without white space; without boundaries, of the document."""
    parts = doc.sents if doc.has_annotation("SENT_START") else [doc]
    sentences = [[token for token in part if not token.is_space] for part in parts]
    return [tokens for tokens in sentences if tokens]


def folder_to_bytes(write: Callable[[Path], object]) -> bytes:
    """Returns the files that `write` puts into a folder, as a tar file."""
    packed = BytesIO()
    with TemporaryDirectory() as folder:
        write(Path(folder))
        with TarFile(fileobj=packed, mode="w") as archive:
            archive.add(folder, arcname=".")
    return packed.getvalue()


@contextmanager
def folder_of_bytes(data: bytes) -> Iterator[Path]:
    """Unpacks the result of `folder_to_bytes` into a temporary folder. For errors see `unpack`."""
    with TemporaryDirectory() as folder:
        packed, unpacked = Path(folder, "bytes.tar"), Path(folder, "files")
        packed.write_bytes(data)
        unpacked.mkdir()
        unpack(packed, unpacked, "The bytes of a pipeline")
        packed.unlink()
        yield unpacked
