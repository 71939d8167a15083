import logging
from contextlib import nullcontext
from typing import (
    Any,
    Callable,
    Dict,
    Iterable,
    List,
    Mapping,
    Optional,
    Sequence,
    Set,
    Tuple,
    Union,
)

import torch
from allennlp.data import TextFieldTensors, Vocabulary
from allennlp.models import Model
from allennlp.modules import TextFieldEmbedder
from allennlp.modules.conditional_random_field import allowed_transitions
from allennlp.modules.seq2vec_encoders import CnnEncoder
from allennlp.nn import RegularizerApplicator
from allennlp.nn.util import get_text_field_mask
from allennlp.training.metrics import CategoricalAccuracy
from overrides import overrides

from elmo_plugin.elmo.placement import PlacedText, Placement
from elmo_plugin.modules.viterbi import decode
from elmo_plugin.util.bfloat16 import autocast_bfloat16
from elmo_plugin.util.errors import ConfigurationError, check_no_settings, check_one_of
from elmo_plugin.util.quantized import dequantize

logger = logging.getLogger(__name__)

DTYPES = ("float32", "bfloat16")
#: Scores of starts, transitions and ends, see `decode`.
Scores = Tuple[torch.Tensor, torch.Tensor, torch.Tensor]


class InputLayer(torch.nn.Module):
    """
    Returns the vectors of one text, ELMo included, where AllenNLP's interpreters observe and change
    them. Hotflip passes token ids instead: each token is then embedded as a text of its own.
    """

    #: `TaskModel.embed`. Predictors set it, because a model that refers to itself is freed late.
    embed: Callable[[TextFieldTensors], Tuple[Any, torch.Tensor]]

    def forward(self, text: Union[torch.Tensor, TextFieldTensors]) -> torch.Tensor:
        if isinstance(text, torch.Tensor):
            return text
        tokens = {n: {k: ids.transpose(0, 1) for k, ids in i.items()} for n, i in text.items()}
        with torch.no_grad():
            return self.embed(tokens)[1].transpose(0, 1)


class TaskModel(Model):
    """
    Base of the task models. Embeds text, with ELMo where `placement` adds it (default: nowhere),
    and reports the scores of `metric`, which a subclass sets. A model sets the input width of each
    layer that it takes as `Lazy`.

    # Parameters

    regularizer : `Optional[RegularizerApplicator]`
        For the paper's λ: `{regexes: [['layer_scores', {type: 'l2', alpha: 0.001}]]}`.
    dtype : `str`
        `"float32"` or `"bfloat16"`: the type of matrix products in evaluation and prediction, also
        in the biLM unless its layers are cached. A CPU without bfloat16 instructions uses float32.
        For training, set the trainer's `mixed_precision`.
    """

    #: For an error: what a training corpus must have, and where.
    needed_labels: str
    #: Set by the subclass's constructor.
    metric: Any
    #: The metrics that the progress bar shows; all others are reported after the last batch.
    running_metrics: Tuple[str, ...] = ()
    #: Heading of the metric's `table` in the log, if it has one.
    table_heading: str = ""
    #: In the metadata, what dependent instances share, for `elmo-bootstrap`; empty if nothing.
    group_key: str = ""

    def __init__(
        self,
        vocab: Vocabulary,
        text_field_embedder: TextFieldEmbedder,
        placement: Optional[Placement] = None,
        regularizer: Optional[RegularizerApplicator] = None,
        serialization_dir: Optional[str] = None,
        dtype: str = "float32",
        **unknown: Any,
    ) -> None:
        check_no_settings(self, unknown)
        check_one_of(DTYPES, dtype=dtype)
        super().__init__(vocab, regularizer, serialization_dir)
        self._dtype = dtype
        self._trained_labels: Set[str] = set()
        self._new_labels: Set[str] = set()
        self.text_field_embedder = text_field_embedder
        self.placement = placement or Placement()
        self.input_layer = InputLayer()
        self.input_dim = text_field_embedder.get_output_dim() + self.placement.input_dim

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        exact = self._dtype == "float32" or self.training
        with nullcontext() if exact else autocast_bfloat16(next(self.parameters()).device):
            outputs = super().__call__(*args, **kwargs)
        if exact:
            self.require_labels(outputs.get("loss"))
            return outputs
        # NumPy has no bfloat16.
        return {
            name: at_least_float32(value)
            if isinstance(value, torch.Tensor) and value.is_floating_point()
            else value
            for name, value in outputs.items()
        }

    def embed(
        self, tokens: TextFieldTensors, sentences: Optional[torch.Tensor] = None
    ) -> Tuple[PlacedText, torch.Tensor]:
        """
        Returns the text, whose `at_output` adds ELMo to an encoder's output, and its vectors with
        ELMo, shape `(batch_size, num_tokens, input_dim)`. For `sentences` see `Placement.forward`.
        """
        text = self.placement(tokens, sentences)
        vectors = text.at_input(self.embed_words(text.words))
        return text, self.interpreted(vectors, get_text_field_mask(tokens))

    def interpreted(self, vectors: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Shows each text to interpreters, which need gradients outside training."""
        if torch.is_grad_enabled() and not self.training:
            vectors = vectors.clone()
            for row, tokens in enumerate(mask):
                vectors[row, tokens] = self.input_layer(vectors[row, tokens].unsqueeze(0))[0]
        return vectors

    def embed_words(self, words: TextFieldTensors) -> torch.Tensor:
        """
        The vectors of `text_field_embedder`. AllenNLP's `CnnEncoder` runs without autocast, under
        which words shorter than a filter would give -3e38.
        """
        exact = any(isinstance(each, CnnEncoder) for each in self.text_field_embedder.modules())
        device = next(self.parameters()).device.type
        with torch.autocast(device, enabled=False) if exact else nullcontext():
            return self.text_field_embedder(words)

    def _load_from_state_dict(
        self, state_dict: Dict[str, torch.Tensor], prefix: str, *args: Any
    ) -> None:
        # The matrices of packed archives are quantized.
        dequantize(state_dict)
        super()._load_from_state_dict(state_dict, prefix, *args)

    def require_labels(self, labels: Optional[Any]) -> None:
        """Raises a clear error when training lacks labels; AllenNLP would report a missing loss."""
        if self.training and labels is None:
            raise ConfigurationError(
                f"{self.default_predictor}: training needs {self.needed_labels}, but the instances "
                "have none. Set `train_data_path` to a corpus that has them."
            )

    def say_new_labels(self, labels: Iterable[str], known: Iterable[str]) -> None:
        """
        Warns once of each label that training lacks: of those of this run, or else the `known`.
        """
        if self.training:
            self._trained_labels.update(labels)
            return
        for label in sorted(set(labels) - (self._trained_labels or set(known)) - self._new_labels):
            self._new_labels.add(label)
            logger.warning("Training has no example of the label %r", label)

    def score(self, predicted: Sequence[Any], gold: Sequence[Any], *others: Sequence[Any]) -> None:
        """Calls the metric with the instances that have a gold answer, if any do."""
        labelled = [each for each in zip(predicted, gold, *others) if each[1] is not None]
        if labelled:
            self.metric(*map(list, zip(*labelled)))

    @overrides
    def get_metrics(self, reset: bool = False) -> Dict[str, float]:
        """
        Returns `running_metrics`. With `reset`, after the last batch, returns all metrics and logs
        the `table`. Empty in training, where nothing is decoded, and for a corpus without labels.
        """
        if self.training:
            return {}
        table = self.metric.table() if reset and self.table_heading else ""
        metrics = self.metric.get_metric(reset)
        if metrics and table:
            logger.info("%s:\n%s", self.table_heading, table)
        return {n: v for n, v in metrics.items() if reset or n in self.running_metrics}


class ClassifierModel(TaskModel):
    """Base of the models that choose one label. A subclass sets `label_names`, by index."""

    label_names: Union[Sequence[str], Mapping[int, str]]

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.metric = CategoricalAccuracy()

    def outputs(
        self, logits: torch.Tensor, label: Optional[torch.Tensor], metadata: List[Dict[str, Any]]
    ) -> Dict[str, Any]:
        """The result of `forward`; `probabilities` has the shape `(batch_size, num_labels)`."""
        logits = at_least_float32(logits)
        outputs = {"probabilities": logits.softmax(dim=-1), "metadata": metadata}
        if label is not None:
            # A label that the vocabulary lacks has the index -1. It counts as not found.
            known = label >= 0
            outputs["loss"] = logits.sum() * 0.0
            if known.any():
                outputs["loss"] = torch.nn.functional.cross_entropy(logits[known], label[known])
            self.metric(logits, label)
            names = (self.label_names[n] for n in range(len(self.label_names)))
            # A task that is added may keep its label elsewhere.
            self.say_new_labels((each["label"] for each in metadata if "label" in each), names)
        return outputs

    @overrides(check_signature=False)
    def make_output_human_readable(self, output_dict: Dict[str, Any]) -> Dict[str, Any]:
        """Adds `label`, the name of the most probable label."""
        best = output_dict["probabilities"].argmax(dim=-1).tolist()
        return {**output_dict, "label": [self.label_names[index] for index in best]}

    @overrides
    def get_metrics(self, reset: bool = False) -> Dict[str, float]:
        """`accuracy`, also in training; empty for a corpus without labels."""
        return {"accuracy": self.metric.get_metric(reset)} if self.metric.total_count else {}


class TaggerModel(TaskModel):
    """Base of the taggers. A subclass calls `set_tags`, and has `loss` and `metric`."""

    #: The name of each tag by its index.
    tags: Sequence[str]

    def set_tags(self, tags: List[str], scheme: Optional[str]) -> None:
        """
        Sets the tags by index. `scheme`, `BIO` or `BIOUL`, decides which sequences are legal. Tags
        outside it, such as the vocabulary's padding, never are. Without a scheme, all are legal.
        """
        self.tags = tags
        # 0 if legal, else -inf. AllenNLP numbers the tags first, then start and end.
        # On the CPU and no buffers, in which `to_empty` would leave other numbers.
        scores = torch.full(2 * [len(tags) + 2], float("-inf") if scheme else 0.0, device="cpu")
        for row, column in allowed_transitions(scheme, dict(enumerate(tags))) if scheme else ():
            scores[row, column] = 0.0
        self._scores = scores[-2, :-2], scores[:-2, :-2], scores[:-2, -1]

    def outputs(
        self,
        logits: torch.Tensor,
        mask: torch.Tensor,
        tags: Optional[torch.Tensor],
        metadata: List[Dict[str, Any]],
    ) -> Dict[str, Any]:
        """
        Returns `loss` if there are gold `tags`, shape `(batch_size, num_tokens)`. Outside training
        also `tags`, the best legal sequence of each instance, and `metadata`.
        """
        logits = at_least_float32(logits)
        outputs: Dict[str, Any] = {}
        if tags is not None:
            outputs["loss"] = self.loss(logits, mask, tags)
        if not self.training:
            sequences = decode(logits, mask, *self.scores_of_sequences())
            predicted = [[self.tags[index] for index in sequence] for sequence in sequences]
            self.score(predicted, [instance["gold_tags"] for instance in metadata])
            outputs.update(tags=predicted, metadata=metadata)
        return outputs

    def loss(self, logits: torch.Tensor, mask: torch.Tensor, tags: torch.Tensor) -> torch.Tensor:
        """The loss of a batch. `logits` has the shape `(batch_size, num_tokens, num_tags)`."""
        raise NotImplementedError

    def scores_of_sequences(self) -> Scores:
        """The scores that restrict `decode` to legal sequences: 0 if legal, else -inf."""
        return self._scores


def at_least_float32(logits: torch.Tensor) -> torch.Tensor:
    """Converts logits to float32: half precision, as under `torch.autocast`, is too coarse."""
    return logits.to(torch.promote_types(logits.dtype, torch.float32))
