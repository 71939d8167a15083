import logging
import zlib
from gzip import BadGzipFile
from typing import Dict, Iterator, List, Optional, Tuple
from zipfile import BadZipFile

import numpy
import torch
from allennlp.common import Tqdm
from allennlp.data import Vocabulary
from allennlp.modules import TokenEmbedder
from allennlp.modules.token_embedders.embedding import EmbeddingsTextFile
from overrides import overrides
from torch.nn.functional import embedding

from elmo_plugin.util.errors import ConfigurationError

logger = logging.getLogger(__name__)


@TokenEmbedder.register("elmo-word-vectors")
class WordVectors(TokenEmbedder):
    """
    Word vectors that are learned or read from a file, and more of the file for words that only
    prediction meets.

    Of the file, one pass keeps the vectors of the vocabulary's words and, up to a number, those of
    the words that stand first in it, which in GloVe's files are the most frequent. The latter are
    added to the vocabulary, are never trained, and are part of an archive. A word of the
    vocabulary that the file lacks begins at random, with mean and deviation of what was read.

    The first embedder of a namespace decides which words these are; others of the same namespace
    must be of this kind too.

    AllenNLP's `Embedding`, which does the rest of this, knows a word that is new at prediction only
    as the unknown word, or trains all words of the file.

    # Parameters

    vocab : `Vocabulary`
        Given by AllenNLP. Gains the words that are kept for prediction.
    embedding_dim : `int`
        Width of a vector.
    pretrained_file : `Optional[str]`, optional (default = `None`)
        Vectors in the format of GloVe, a word and its numbers a line: text, `.gz`, or an archive
        such as `.zip`, path or URL; a file within a larger archive is `(archive.zip)#file.txt`. A
        first line with the file's size is passed over. Nothing: all vectors are learned.
    trainable : `bool`, optional (default = `True`)
        Whether the vectors of words that training has seen are fine-tuned.
    num_extra_words : `int`, optional (default = `100000`)
        The most words to keep for prediction; memory and archive grow by `4 * embedding_dim`
        bytes each.
    vocab_namespace : `str`, optional (default = `"tokens"`)

    # Raises

    `ConfigurationError`
        If the file does not exist, holds vectors of another width or no word of the vocabulary.
    `ValueError`
        If a line of it holds no vector; with its number.
    """

    def __init__(
        self,
        vocab: Vocabulary,
        embedding_dim: int,
        pretrained_file: Optional[str] = None,
        trainable: bool = True,
        num_extra_words: int = 100_000,
        vocab_namespace: str = "tokens",
    ) -> None:
        super().__init__()
        self._namespace = vocab_namespace
        # A copy: the vocabulary may be about to grow.
        words = dict(vocab.get_token_to_index_vocabulary(vocab_namespace))
        num_before = _num_trained(vocab, vocab_namespace)
        has_grown = num_before is not None
        num_trained = len(words) if num_before is None else num_before
        weight = torch.empty(num_trained, embedding_dim)
        found: Dict[str, numpy.ndarray] = {}
        if pretrained_file:
            most = 0 if has_grown else num_extra_words
            found, extra = _read(pretrained_file, embedding_dim, words, most)
            _fill(weight, found, words, pretrained_file)
            if not has_grown:
                for word in extra:
                    vocab.add_token_to_namespace(word, vocab_namespace)
                vocab.add_token_to_namespace(str(num_trained), vocab_namespace + _NUM_TRAINED)
            found.update(extra)
        else:
            torch.nn.init.xavier_uniform_(weight)
        weight[0] = 0.0
        self.weight = torch.nn.Parameter(weight, requires_grad=trainable)
        # A parameter that never learns, so that archives hold it and optimisers leave it alone.
        self.extra = torch.nn.Parameter(torch.empty(0, embedding_dim), requires_grad=False)
        self._add_rows(vocab.get_index_to_token_vocabulary(vocab_namespace), found)
        logger.info("%d more words are kept for prediction.", len(self.extra))

    @overrides
    def get_output_dim(self) -> int:
        return self.weight.size(1)

    @overrides(check_signature=False)
    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """
        # Parameters

        tokens : `torch.Tensor`
            Shape `(batch_size, num_tokens)`. Ids of words, 0 for padding.

        # Returns

        `torch.Tensor`
            Shape `(batch_size, num_tokens, embedding_dim)`, zero at padding.
        """
        is_extra = tokens >= len(self.weight)
        vectors = embedding(tokens.masked_fill(is_extra, 0), self.weight, padding_idx=0)
        if not is_extra.any():
            return vectors
        return vectors.index_put((is_extra,), self.extra[tokens[is_extra] - len(self.weight)])

    def extend_vocab(
        self,
        extended_vocab: Vocabulary,
        vocab_namespace: Optional[str] = None,
        extension_pretrained_file: Optional[str] = None,
        model_path: Optional[str] = None,
    ) -> None:
        """
        Makes room for the words that a vocabulary has gained, as `allennlp evaluate
        --extend-vocab` asks for; they are not trained. Without a vector in
        `extension_pretrained_file`, they have that of the unknown word.
        """
        names = extended_vocab.get_index_to_token_vocabulary(vocab_namespace or self._namespace)
        num_known = len(self.weight) + len(self.extra)
        words = {names[index]: index for index in range(num_known, len(names))}
        if not words:
            return
        found: Dict[str, numpy.ndarray] = {}
        if extension_pretrained_file:
            found, _ = _read(extension_pretrained_file, self.get_output_dim(), words, 0)
        self._add_rows(names, found)
        logger.info("%s: %d of %d new words have vectors.", model_path, len(found), len(words))

    def _add_rows(self, names: Dict[int, str], vectors: Dict[str, numpy.ndarray]) -> None:
        """Extra rows for all words that have none; that of the unknown word where it must be."""
        num_known = len(self.weight) + len(self.extra)
        if num_known == len(names):
            return
        unknown = self.weight[1].detach().cpu().numpy()
        rows = [vectors.get(names[index], unknown) for index in range(num_known, len(names))]
        new = torch.from_numpy(numpy.stack(rows)).to(self.extra)
        self.extra.data = torch.cat([self.extra.data, new])


# Ends the name of a namespace in which a vocabulary remembers how many words of another are
# trained. When an archive is read or a training goes on, nothing else tells these apart.
_NUM_TRAINED = "_num_trained_tags"


def _num_trained(vocab: Vocabulary, namespace: str) -> Optional[int]:
    """`None` if no words were added for prediction yet."""
    if namespace + _NUM_TRAINED not in vocab.get_namespaces():
        return None
    return int(vocab.get_token_from_index(0, namespace + _NUM_TRAINED))


def _read(
    path: str, dim: int, words: Dict[str, int], num_extra_words: int
) -> Tuple[Dict[str, numpy.ndarray], Dict[str, numpy.ndarray]]:
    """The vectors of `words`, and those of the first `num_extra_words` others."""
    found: Dict[str, numpy.ndarray] = {}
    extra: Dict[str, numpy.ndarray] = {}
    for place, line in _lines(path):
        # A few of GloVe's words hold blanks, so only the first line tells the width.
        is_first = not (found or extra)
        word, *numbers = line.rsplit(" ", -1 if is_first else dim)
        # Of a word that occurs twice, the first vector counts.
        if word in found or word in extra or (word not in words and len(extra) >= num_extra_words):
            continue
        vector = _vector(numbers)
        if vector is None or len(vector) != dim:
            raise ValueError(
                f"{place}: expected a word and the {dim} numbers of its vector, found "
                f"{line[:60]!r}. Is it a file of word vectors, and of this width?"
            )
        (found if word in words else extra)[word] = vector
    return found, extra


def _lines(path: str) -> Iterator[Tuple[str, str]]:
    """`file:line` and text of every line but the header."""
    number = 0
    try:
        with EmbeddingsTextFile(path) as lines:
            number = 1 if lines.num_tokens else 0
            for line in Tqdm.tqdm(lines, desc="word vectors"):
                number += 1
                line = line.rstrip().removeprefix("\ufeff")
                if line:
                    yield f"{path}:{number}", line
    except FileNotFoundError as error:
        raise ConfigurationError(
            f"No such file of word vectors: {path}. Set ELMO_GLOVE to one, or to nothing, and "
            "vectors are learned."
        ) from error
    except (StopIteration, IndexError):
        # The latter is AllenNLP's for an archive without files, which NUL bytes are to `tarfile`.
        raise ValueError(
            f"{path}:1: expected word vectors, found an empty file or archive, or NUL bytes alone. "
            "Copy or download the file again."
        ) from None
    except (EOFError, UnicodeDecodeError, BadGzipFile, zlib.error, BadZipFile) as error:
        raise ValueError(
            f"{path}:{number + 1}: expected UTF-8 text, found {error}. Copy or download the file "
            "again."
        ) from error


def _vector(numbers: List[str]) -> Optional[numpy.ndarray]:
    try:
        vector = numpy.array(numbers, dtype="float32")
    except ValueError:
        return None
    return vector if numpy.isfinite(vector).all() else None


def _fill(
    weight: torch.Tensor, found: Dict[str, numpy.ndarray], words: Dict[str, int], path: str
) -> None:
    """What was found of the words that are trained; random numbers for the others."""
    found = {word: vector for word, vector in found.items() if words[word] < len(weight)}
    logger.info("%s has vectors of %d of %d words.", path, len(found), len(weight))
    if not found:
        raise ConfigurationError(
            f"{path} has no vector for any of the {len(weight):,} words of the corpus. Is it in "
            "another language, or are its words in lower case and those of the reader not?"
        )
    vectors = numpy.stack(list(found.values()))
    weight.normal_(float(vectors.mean()), float(vectors.std()))
    rows = torch.tensor([words[word] for word in found])
    weight[rows] = torch.from_numpy(vectors)
