import logging
from typing import Optional

import torch
from allennlp.common import FromParams

from elmo_plugin.bilm.files.load import load_weights
from elmo_plugin.bilm.files.softmax import SOFTMAX_FILE, find_softmax
from elmo_plugin.bilm.pretraining.language_model import LanguageModel

logger = logging.getLogger(__name__)


class InitialWeights(FromParams):
    """
    The initial weights for fine-tuning a language model.

    # Parameters

    file : `str`
        Weight file, archive or folder of a run, see `load_weights`. Its softmax is read too,
        if the file contains it or `softmax.hdf5` is beside it.
    vocabulary_file : `Optional[str]`, optional (default = `None`)
        See `find_softmax`.
    """

    def __init__(self, file: str, vocabulary_file: Optional[str] = None) -> None:
        self.file = file
        self.vocabulary_file = vocabulary_file


def start_from(initial: InitialWeights, model: LanguageModel) -> None:
    """
    Copies trained weights into a language model. Words that the trained softmax lacks keep their
    random initial weights.

    # Raises

    `ConfigurationError`
        If weights or softmax do not fit.
    """
    load_weights(model.bilm, initial.file)
    trained = find_softmax(initial.file, model.bilm.options, initial.vocabulary_file)
    if trained is None:
        logger.warning(
            "%s comes without a softmax, and there is no %s beside it: the softmax starts "
            "untrained, and the first perplexities will be high.",
            initial.file,
            SOFTMAX_FILE,
        )
        return
    rows = {word: row for row, word in enumerate(trained.words)}
    pairs = [(row, rows[word]) for row, word in enumerate(model.words) if word in rows]
    ours, theirs = torch.tensor(pairs).t()
    softmax = model.softmax
    with torch.no_grad():
        softmax.weight[ours] = trained.weight[theirs].to(softmax.weight.dtype)
        softmax.bias[ours] = trained.bias[theirs].to(softmax.bias.dtype)
    logger.info("%d of %d words have a trained softmax", len(pairs), len(softmax.weight))
