from typing import Any, Dict, Optional, Union

import torch
from allennlp.data import Vocabulary
from allennlp.models import Model
from allennlp.nn import InitializerApplicator
from overrides import overrides

from elmo_plugin.bilm.files.load import given_options
from elmo_plugin.bilm.pretraining.language_model import LanguageModel
from elmo_plugin.tasks.bilm.initial_weights import InitialWeights, start_from
from elmo_plugin.tasks.bilm.metric import PerplexityMetric
from elmo_plugin.tasks.bilm.vocabulary import softmax_counts, softmax_ids
from elmo_plugin.util.weights import stored_weights


@Model.register("elmo-bilm")
class BilmModel(LanguageModel, Model):
    """
    `LanguageModel` as a model of AllenNLP.

    # Parameters

    vocab : `Vocabulary`
        Of type `elmo-bilm`: the words to predict.
    options, options_file : `Optional[Dict[str, Any]]`, `Optional[str]`
        Sizes of the biLM: the content of an options.json, or its file; default `ELMO_OPTIONS`.
    num_samples, dropout, mixed_precision, seed
        See `LanguageModel`.
    initializer : `Optional[InitializerApplicator]`, optional (default = `None`)
        Initialises parameters. Default: as in bilm-tf.
    initial_weights : `Optional[Union[str, InitialWeights]]`, optional (default = `None`)
        Fine-tune these weights: a file, or `{ file, vocabulary_file }`, see `InitialWeights`. Not
        needed to load the trained model.
    serialization_dir : `Optional[str]`
        Given by AllenNLP.

    # Raises

    `ConfigurationError`
        If the vocabulary is of another type, or `initial_weights` does not fit `options`.
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
            given_options(options, options_file, serialization_dir, "model"),
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
        """A batch of the data loader `elmo-bilm`; see `LanguageModel.forward`."""
        return {"loss": super().forward(**batch)}
