import logging
import os
from typing import Optional

import torch
from allennlp.data import Vocabulary

from elmo_plugin.bilm.archives import TrainedModel, is_archive
from elmo_plugin.bilm.bilm import Bilm
from elmo_plugin.bilm.pretrained import read_weights_into
from elmo_plugin.bilm.pretraining.softmax import Softmax
from elmo_plugin.bilm.pretraining.vocabulary import softmax_ids
from elmo_plugin.bilm.softmax_files import (
    SOFTMAX_FILE,
    SoftmaxWeights,
    read_softmax,
    softmax_of,
)

logger = logging.getLogger(__name__)


def start_from(path: str, bilm: Bilm, softmax: Softmax, vocab: Vocabulary) -> None:
    """
    Puts trained weights into a language model that is to be trained on.

    # Parameters

    path : `str`
        Weight file, archive or folder of a run, see `read_weights_into`.
    bilm, softmax : `Bilm`, `Softmax`
        Take the weights. Words that the trained softmax lacks keep theirs.
    vocab : `Vocabulary`
        Says which row of `softmax` is which word.

    # Raises

    `ConfigurationError`
        If weights or softmax do not fit.
    """
    read_weights_into(bilm, path)
    trained = _softmax_of(path, bilm)
    if trained is None:
        logger.warning(
            "%s comes without a softmax, and there is no %s beside it: the softmax starts from "
            "nothing, and perplexities say little before it has been trained.",
            path,
            SOFTMAX_FILE,
        )
        return
    rows = {word: row for row, word in enumerate(trained.words)}
    pairs = [(row, rows[word]) for word, row in softmax_ids(vocab).items() if word in rows]
    ours, theirs = torch.tensor(pairs).t()
    with torch.no_grad():
        softmax.weight[ours] = trained.weight[theirs].to(softmax.weight.dtype)
        softmax.bias[ours] = trained.bias[theirs].to(softmax.bias.dtype)
    logger.info("%d of %d words have a trained softmax", len(pairs), len(softmax.weight))


def _softmax_of(path: str, bilm: Bilm) -> Optional[SoftmaxWeights]:
    if is_archive(path):
        softmax = softmax_of(TrainedModel.read(path))
        if softmax is not None:
            softmax.check_fit(bilm.options, path)
        return softmax
    beside = os.path.join(os.path.dirname(path), SOFTMAX_FILE)
    return read_softmax(beside, bilm.options) if os.path.exists(beside) else None
