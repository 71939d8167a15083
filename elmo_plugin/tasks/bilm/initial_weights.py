import logging
import os
from typing import Optional

import torch
from allennlp.common import FromParams

from elmo_plugin.bilm.io.archives import TrainedModel, is_archive
from elmo_plugin.bilm.io.pretrained import read_weights_into
from elmo_plugin.bilm.io.softmax_files import (
    SOFTMAX_FILE,
    SoftmaxWeights,
    has_softmax,
    read_softmax,
    softmax_of,
)
from elmo_plugin.bilm.options import BilmOptions
from elmo_plugin.bilm.pretraining.language_model import LanguageModel

logger = logging.getLogger(__name__)


class InitialWeights(FromParams):
    """
    The initial weights for fine-tuning a language model.

    # Parameters

    file : `str`
        Weight file, archive or folder of a run, see `read_weights_into`. Its softmax is read too,
        if the file contains it or `softmax.hdf5` is beside it.
    vocabulary_file : `Optional[str]`, optional (default = `None`)
        See `read_softmax`.
    """

    def __init__(self, file: str, vocabulary_file: Optional[str] = None) -> None:
        self.file = file
        self.vocabulary_file = vocabulary_file


def start_from(initial: InitialWeights, model: LanguageModel) -> None:
    """
    Copies trained weights into a language model. Words that are not in the trained softmax keep
    their weights.

    # Raises

    `ConfigurationError`
        If weights or softmax do not fit.
    """
    read_weights_into(model.bilm, initial.file)
    trained = _softmax_of(initial, model.bilm.options)
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


def _softmax_of(initial: InitialWeights, options: BilmOptions) -> Optional[SoftmaxWeights]:
    if is_archive(initial.file):
        softmax = softmax_of(TrainedModel.read(initial.file))
        if softmax is not None:
            softmax.check_fit(options, initial.file)
        return softmax
    softmax_file = initial.file
    if not has_softmax(softmax_file):
        softmax_file = os.path.join(os.path.dirname(initial.file), SOFTMAX_FILE)
        if not os.path.exists(softmax_file):
            return None
    return read_softmax(softmax_file, options, initial.vocabulary_file)
