import logging
from itertools import chain
from typing import Any, Dict, Iterator, List, Optional, Tuple

import numpy
import torch
from allennlp.common import Tqdm
from allennlp.data import Token, Vocabulary
from allennlp.data.token_indexers import SingleIdTokenIndexer, TokenIndexer
from allennlp.modules import TokenEmbedder
from overrides import overrides
from torch.nn.functional import embedding

from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.tensors import is_exporting
from elmo_plugin.util.word_vectors import (
    NUM_TRAINED,
    Vectors,
    other_cases,
    parse_vectors,
    vector_lines,
)

logger = logging.getLogger(__name__)


@TokenIndexer.register("elmo-words")
class WordIndexer(SingleIdTokenIndexer):
    """
    AllenNLP's `single_id`, but a word outside of the vocabulary has the id of its lower case, or of
    its title case: for `WordVectors` with `case_fallback`, whose vocabulary has the file's words.
    """

    @overrides
    def tokens_to_indices(
        self, tokens: List[Token], vocabulary: Vocabulary
    ) -> Dict[str, List[int]]:
        known = vocabulary.get_token_to_index_vocabulary(self.namespace)
        words = [self._get_feature_value(token) for token in tokens]
        found = [
            next((form for form in (word, *other_cases(word)) if form in known), word)
            for word in words
        ]
        return super().tokens_to_indices(list(map(Token, found)), vocabulary)


@TokenEmbedder.register("elmo-word-vectors")
class WordVectors(TokenEmbedder):
    """
    Word vectors, pretrained or random, with extra pretrained vectors for words that the training
    data lacks.

    - Vectors of vocabulary words are trained, unless `trainable` is false. Those that the file
      lacks start as zeros, or at random with the mean and the standard deviation of the vectors
      found.
    - The first `num_extra_words` other words of the file (in GloVe's the most frequent) join the
      vocabulary. Their vectors are not trained, but are in the archive, so that prediction uses
      them.
    - Words that later extend the vocabulary of a trained model get the unknown word's vector.

    The first embedder of a namespace adds the extra words. Further ones add none, and must be of
    this class too. Extra vectors do not slow down the optimizer: with AllenNLP's `Embedding` and
    `min_pretrained_embeddings`, 100,000 of them make a step of Adam take 7 times as long.

    Raises a `ConfigurationError` if the file does not exist or contains no word of the vocabulary,
    and a `ValueError` that names the line if a line is not a word and a vector of this width.

    # Parameters

    pretrained_file : `Optional[str]`
        Vectors in GloVe's format, one word and its numbers per line: text or gzip; path or URL. A
        first line with the number of words and the width is skipped. Without a file, all vectors
        start at random.
    num_extra_words : `int`
        Maximum number of extra words. Each takes `4 * embedding_dim` bytes of memory and archive.
    zero_unknown : `bool`
        Whether words that the file lacks get zeros, as the encoder of CoVe expects.
    case_fallback : `bool`
        Whether words that the file lacks start with the vector of their lower case, or of their
        title case (`LONDON`: `London`). The indexer `elmo-words` does it for words that are new at
        prediction time.
    """

    def __init__(
        self,
        vocab: Vocabulary,
        embedding_dim: int,
        pretrained_file: Optional[str] = None,
        trainable: bool = True,
        num_extra_words: int = 100_000,
        vocab_namespace: str = "tokens",
        zero_unknown: bool = False,
        case_fallback: bool = False,
    ) -> None:
        super().__init__()
        self._namespace = vocab_namespace
        # A copy, because words are added below.
        words = dict(vocab.get_token_to_index_vocabulary(vocab_namespace))
        # True for an archive, a recovered run, and a second embedder of the namespace.
        is_extended = vocab_namespace + NUM_TRAINED in vocab.get_namespaces()
        num_trained = len(words)
        if is_extended:
            num_trained = int(vocab.get_token_from_index(0, vocab_namespace + NUM_TRAINED))
        weight = torch.empty(num_trained, embedding_dim)
        vectors: Vectors = {}
        if pretrained_file:
            max_others = 0 if is_extended else num_extra_words
            forms = {word: other_cases(word) if case_fallback else () for word in words}
            wanted = {*words, *chain.from_iterable(forms.values())}
            found, others = parse_vectors(
                _lines(pretrained_file), wanted, embedding_dim, max_others
            )
            if not is_extended:
                others = {word: found[word] for word in found if word not in words} | others
            vectors = {word: found[word] for word in found if word in words}
            for word, cases in forms.items():
                form = next(filter(found.__contains__, cases), None)
                if word not in found and form is not None:
                    vectors[word] = found[form]
            _initialise(weight, vectors, words, pretrained_file, zero_unknown)
            for word in others:
                vocab.add_token_to_namespace(word, vocab_namespace)
            vectors.update(others)
        else:
            torch.nn.init.xavier_uniform_(weight)
        if not is_extended:
            vocab.add_token_to_namespace(str(len(words)), vocab_namespace + NUM_TRAINED)
        weight[0] = 0.0
        self.weight = torch.nn.Parameter(weight, requires_grad=trainable)
        # A parameter, to be in the state dict, but without gradients, to stay out of the optimizer.
        self.extra = torch.nn.Parameter(torch.empty(0, embedding_dim), requires_grad=False)
        self._add_rows(vocab.get_index_to_token_vocabulary(vocab_namespace), vectors)
        logger.info("%d words outside of the training data have vectors.", len(self.extra))

    @overrides
    def get_output_dim(self) -> int:
        return self.weight.size(1)

    @overrides(check_signature=False)
    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Maps word ids `(batch_size, num_tokens)` to `(…, embedding_dim)`, both 0 at padding."""
        if is_exporting():
            return embedding(tokens, torch.cat([self.weight, self.extra]))
        is_extra = tokens >= len(self.weight)
        vectors = embedding(tokens.masked_fill(is_extra, 0), self.weight, padding_idx=0)
        if not is_extra.any():
            return vectors
        return vectors.index_put((is_extra,), self.extra[tokens[is_extra] - len(self.weight)])

    def extend_vocab(self, extended_vocab: Vocabulary, *args: Any, **kwargs: Any) -> None:
        """Called by AllenNLP after it has added words to the vocabulary of a trained model."""
        self._add_rows(extended_vocab.get_index_to_token_vocabulary(self._namespace), {})

    def _add_rows(self, names: Dict[int, str], vectors: Vectors) -> None:
        """Extends `extra` to all words of the vocabulary."""
        num_known = len(self.weight) + len(self.extra)
        if num_known < len(names):
            unknown = self.weight[1].detach().cpu().numpy()
            rows = [vectors.get(names[index], unknown) for index in range(num_known, len(names))]
            new = torch.from_numpy(numpy.stack(rows)).to(self.extra)
            self.extra.data = torch.cat([self.extra.data, new])


def _lines(path: str) -> Iterator[Tuple[str, str]]:
    try:
        yield from Tqdm.tqdm(vector_lines(path), desc="word vectors")
    except FileNotFoundError as error:
        raise ConfigurationError(
            f"No such file of word vectors: {path}. Set ELMO_GLOVE to an existing file, or to the "
            "empty string to train all vectors."
        ) from error


def _initialise(
    weight: torch.Tensor, vectors: Vectors, words: Dict[str, int], path: str, zero_unknown: bool
) -> None:
    """Fills the rows of trained words with their vectors, or with random numbers or zeros."""
    vectors = {word: vector for word, vector in vectors.items() if words[word] < len(weight)}
    logger.info("%s contains %d of %d words.", path, len(vectors), len(weight))
    if not vectors:
        raise ConfigurationError(
            f"{path} has no vector for any of the {len(weight):,} words of the corpus. Is it in "
            "another language, or are its words in lower case and those of the reader not?"
        )
    if len(vectors) < len(weight) / 10:
        logger.warning(
            f"{path} has vectors for only {len(vectors)} of the {len(weight)} words of the corpus. "
            "To use another file, set the variable that names it, such as ELMO_GLOVE."
        )
    pretrained = numpy.stack(list(vectors.values()))
    if zero_unknown:
        weight.zero_()
    else:
        weight.normal_(float(pretrained.mean()), float(pretrained.std()))
    weight[torch.tensor([words[word] for word in vectors])] = torch.from_numpy(pretrained)
