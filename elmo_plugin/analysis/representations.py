"""Word vectors to compare layer by layer: a biLM, a random biLM, CoVe, static vectors."""

import hashlib
import os
from typing import Collection, Iterable, Iterator, List, Protocol, Sequence, Tuple, Union

import numpy
import torch

from elmo_plugin.bilm import Bilm, BilmOptions, fingerprint
from elmo_plugin.elmo.cove import embed_with_cove
from elmo_plugin.elmo.embed import embed_sentences
from elmo_plugin.modules.cove_files import CoveEncoder
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.word_vectors import parse_vectors, vector_lines

# Names in tables.
BILM, RANDOM_BILM = "biLM", "random biLM"


class Representation(Protocol):
    """Embeds words. The vectors of a sentence do not depend on other sentences."""

    #: The name in tables, such as `biLM`.
    name: str
    #: The names of its layers.
    layers: List[str]
    #: Width of every layer.
    dim: int
    #: A hash of all that determines the vectors; equal hashes share cached vectors.
    fingerprint: str

    def embed(self, sentences: Iterable[Sequence[str]]) -> Iterator[numpy.ndarray]:
        """Yields a float32 array per sentence, in order: shape `(num_layers, num_tokens, dim)`."""


def _hash(start: str, arrays: Iterable[Tuple[str, numpy.ndarray]]) -> str:
    digest = hashlib.blake2b(start.encode(), digest_size=16)
    for name, array in arrays:
        digest.update(name.encode() + array.tobytes())
    return digest.hexdigest()


class BilmLayers:
    """The layers of a biLM that is not stateful. RAM is bounded as in `embed_sentences`."""

    def __init__(self, bilm: Bilm, name: str = BILM) -> None:
        self.name = name
        self.layers = ["token layer", *(f"layer {n}" for n in range(1, bilm.num_layers))]
        self.dim = bilm.output_dim
        self.fingerprint = f"{fingerprint(bilm)} warm_up={bilm.warm_up}"
        self._bilm = bilm

    def embed(self, sentences: Iterable[Sequence[str]]) -> Iterator[numpy.ndarray]:
        for layers in embed_sentences(self._bilm, sentences):
            yield layers.float().numpy()


class StaticVectors:
    """
    One fixed vector per word form: the word's own, else its lower-case form's, else zeros. RAM
    grows with `words`, all words to embed. Raises `ValueError` if the file has none of them, or is
    damaged.
    """

    def __init__(self, path: Union[str, os.PathLike], words: Collection[str]) -> None:
        found, _ = parse_vectors(vector_lines(os.fspath(path)), {*words, *map(str.lower, words)})
        #: By word, even if the file has only its lower-case form.
        self.vectors = {
            word: found[form]
            for word in words
            for form in (word if word in found else word.lower(),)
            if form in found
        }
        if not self.vectors:
            raise ValueError(f"{path}: expected vectors of the words of the text, found none.")
        self.dim = len(next(iter(self.vectors.values())))
        self.name = "static vectors"
        self.layers = [os.path.basename(os.fspath(path))]
        self.fingerprint = _hash("", sorted(self.vectors.items()))

    def embed(self, sentences: Iterable[Sequence[str]]) -> Iterator[numpy.ndarray]:
        unknown = numpy.zeros(self.dim, dtype=numpy.float32)
        for words in sentences:
            rows = [self.vectors.get(word, unknown) for word in words]
            # Shape: (1, num_tokens, dim)
            yield numpy.array(rows, dtype=numpy.float32).reshape(1, len(words), self.dim)


class CoveLayers:
    """Both layers of CoVe on static vectors. `ConfigurationError` if these have another width."""

    def __init__(self, encoder: CoveEncoder, static: StaticVectors) -> None:
        if encoder.input_dim != static.dim:
            raise ConfigurationError(
                f"The encoder of CoVe reads word vectors {encoder.input_dim} wide, and those of "
                f"{static.layers[0]} are {static.dim} wide. Use those with which it was trained."
            )
        self.name = "CoVe"
        self.layers = ["layer 1", "layer 2"]
        self.dim = encoder.output_dim
        parameters = ((n, p.cpu().numpy()) for n, p in encoder.state_dict().items())
        self.fingerprint = _hash(static.fingerprint, parameters)
        self._encoder, self._vectors = encoder, static.vectors

    def embed(self, sentences: Iterable[Sequence[str]]) -> Iterator[numpy.ndarray]:
        for layers in embed_with_cove(self._encoder, self._vectors, sentences):
            yield layers.numpy()


def random_bilm(options: BilmOptions, seed: int) -> Bilm:
    """A biLM with random weights from a seed: a baseline that isolates the effect of training."""
    # PyTorch's global generator keeps its state.
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        return Bilm(options).eval()
