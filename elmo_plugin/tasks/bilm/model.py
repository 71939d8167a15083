import logging
from typing import Any, Dict, Optional, Union

import torch
from allennlp.common import FromParams
from allennlp.data import Vocabulary
from allennlp.models import Model
from allennlp.nn import InitializerApplicator
from allennlp.training.metrics import Metric
from overrides import overrides

from elmo_plugin.bilm.files.load import load_weights, read_options
from elmo_plugin.bilm.files.softmax import SOFTMAX_FILE, find_softmax
from elmo_plugin.bilm.pretraining.language_model import LanguageModel, Perplexity
from elmo_plugin.tasks.bilm.vocabulary import softmax_counts, softmax_ids
from elmo_plugin.util.weights import stored_weights

logger = logging.getLogger(__name__)


class InitialWeights(FromParams):
    """
    Initial weights for fine-tuning. `file` is as in `load_weights`; its softmax is read too, if it
    is in the file or in `softmax.hdf5` beside it. For `vocabulary_file` see `find_softmax`.
    """

    def __init__(self, file: str, vocabulary_file: Optional[str] = None) -> None:
        self.file = file
        self.vocabulary_file = vocabulary_file


class PerplexityMetric(Perplexity, Metric):
    """`Perplexity` as a metric of AllenNLP."""


@Model.register("elmo-bilm")
class BilmModel(LanguageModel, Model):
    """
    `LanguageModel` as a model of AllenNLP. Raises `ConfigurationError` if the vocabulary has
    another type than `elmo-bilm`, or `initial_weights` does not fit `options`.

    # Parameters

    options, options_file : `Optional[Dict[str, Any]]`, `Optional[str]`
        Sizes of the biLM: the content of an options.json, or its file. Default: `ELMO_OPTIONS`.
    num_samples, dropout, mixed_precision, seed
        See `LanguageModel`.
    initializer : `Optional[InitializerApplicator]`
        Default: as in bilm-tf.
    initial_weights : `Optional[Union[str, InitialWeights]]`
        Fine-tune these: a file, or `{ file, vocabulary_file }`. A trained model loads without them.
    """

    def __init__(
        self,
        vocab: Vocabulary,
        options: Optional[Dict[str, Any]] = None,
        options_file: Optional[str] = None,
        num_samples: Optional[int] = 8192,
        dropout: float = 0.1,
        mixed_precision: bool = False,
        seed: int = 0,
        initializer: Optional[InitializerApplicator] = None,
        initial_weights: Optional[Union[str, InitialWeights]] = None,
        serialization_dir: Optional[str] = None,
    ) -> None:
        super().__init__(
            read_options(options_file, serialization_dir, options),
            list(softmax_ids(vocab)),
            softmax_counts(vocab),
            num_samples,
            dropout,
            mixed_precision,
            seed,
            source=options_file or "",
            vocab=vocab,
            serialization_dir=serialization_dir,
        )
        # An AllenNLP metric, because checkpoints of the trainer contain the sums of such metrics.
        self._perplexity = PerplexityMetric()
        if initializer is not None:
            initializer(self)
            self.bilm.character_encoder.reset_padding()
        if isinstance(initial_weights, str):
            initial_weights = InitialWeights(initial_weights)
        if initial_weights is not None:
            # Not needed if AllenNLP loads trained weights next.
            if stored_weights(serialization_dir, initial_weights.file) is None:
                start_from(initial_weights, self)

    @overrides(check_signature=False)
    def forward(self, **batch: Any) -> Dict[str, torch.Tensor]:
        """Takes a batch of the data loader `elmo-bilm`; see `LanguageModel.forward`."""
        return {"loss": super().forward(**batch)}


def start_from(initial: InitialWeights, model: LanguageModel) -> None:
    """Copies trained weights. Words that the trained softmax lacks keep random initial weights."""
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
