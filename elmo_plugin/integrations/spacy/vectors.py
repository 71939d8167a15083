from pathlib import Path
from typing import Any, List, Optional, Sequence, Union, cast

import numpy
from spacy.language import Language
from spacy.tokens import Doc, Span, Token
from thinc.api import get_current_ops
from thinc.util import get_torch_default_device

from elmo_plugin.bilm import Bilm, load_bilm
from elmo_plugin.bilm.files.folders import CONFIG_FILE, SAFETENSORS_FILE
from elmo_plugin.elmo.elmo import chosen_layers
from elmo_plugin.elmo.embed import embed_sentences
from elmo_plugin.integrations.spacy.pipe import BatchPipe, sentences_of

Doc.set_extension("elmo", default=None, force=True)


@Language.factory("elmo", assigns=["doc._.elmo", "doc.tensor"])
class ElmoVectors(BatchPipe):
    """
    The component `elmo`: vectors of tokens from a biLM.

    `doc._.elmo` has all layers, an array of shape `(num_layers, num_tokens, dim)`, token layer
    first; `doc.tensor`, of shape `(num_tokens, dim)`, is the mean of the chosen layers. `vector`
    and `similarity` of documents, spans and tokens are those of `doc.tensor`. Tokens of white space
    have vectors of zeros. Each sentence is read by itself; without sentence boundaries, the whole
    document is one sentence.

    # Parameters

    nlp : `Language`
        The pipeline.
    name : `str`
        The name of the component in it.
    options_file, weight_file, dtype
        See `load_bilm`. The files are read when the first document comes.
    layers : `Union[str, List[int]]`, optional (default = `"all"`)
        The layers of `doc.tensor`: `all`, `last`, or numbers; 0 is the token layer.

    # Raises

    `ConfigurationError`
        When the first document comes: if a file is missing, damaged or does not fit, or a setting
        is invalid.
    """

    def __init__(
        self,
        nlp: Language,
        name: str,
        options_file: Optional[str] = None,
        weight_file: Optional[str] = None,
        layers: Union[str, List[int]] = "all",
        dtype: str = "float32",
    ) -> None:
        super().__init__(name)
        self._files = (options_file, weight_file)
        self._layers, self._dtype = layers, dtype
        self._loaded: Optional[Bilm] = None

    @property
    def bilm(self) -> Bilm:
        """The biLM, which is loaded at the first access."""
        return self._loaded or self._load()

    def _load(self) -> Bilm:
        bilm = load_bilm(*self._files, dtype=self._dtype)
        self._loaded = bilm.to(get_torch_default_device())
        return self._loaded

    def annotate(self, docs: Sequence[Doc]) -> None:
        """Sets the vectors of documents."""
        ops, bilm = get_current_ops(), self.bilm
        chosen = chosen_layers(self._layers, bilm.num_layers)
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
        """
        Writes the biLM, in the form of `Bilm.save_pretrained`.

        # Raises

        `ValueError`
            If its `dtype` is int8.
        """
        self.bilm.save_pretrained(path)

    def from_disk(self, path: Any, *, exclude: Any = ()) -> "ElmoVectors":
        """Reads what `to_disk` has written, in place of the files that the settings name."""
        self._files = (str(Path(path, CONFIG_FILE)), str(Path(path, SAFETENSORS_FILE)))
        # Loaded now, because the folder may be a temporary one.
        self._load()
        return self


def _vector(part: Union[Doc, Span, Token]) -> Any:
    if isinstance(part, Token):
        return part.doc.tensor[part.i]
    if isinstance(part, Span):
        rows = part.doc.tensor[part.start : part.end]
    else:
        rows = part.tensor
    return rows.mean(axis=0) if len(rows) else get_current_ops().alloc1f(rows.shape[1])


def _has_vector(part: Union[Doc, Span, Token]) -> bool:
    return bool(_vector(part).any())


def _similarity(part: Union[Doc, Span, Token], other: Any) -> float:
    # A lexeme, too, has a `vector`.
    one, two = _vector(part), other.vector
    norms = float(((one**2).sum() * (two**2).sum()) ** 0.5)
    return float((one * two).sum()) / norms if norms else 0.0
