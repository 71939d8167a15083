import math
import os
from typing import Any, Dict, List, Optional, Tuple, Union

import torch
from allennlp.common.util import is_distributed
from allennlp.data import Vocabulary
from allennlp.models import Model
from allennlp.nn import InitializerApplicator
from allennlp.nn.util import dist_reduce_sum
from overrides import overrides
from torch.nn.functional import embedding

from elmo_plugin.bilm.bilm import Bilm
from elmo_plugin.bilm.io.pretrained import given_options
from elmo_plugin.bilm.pretraining.perplexity import Perplexity
from elmo_plugin.bilm.pretraining.softmax import Softmax
from elmo_plugin.bilm.pretraining.speed import Speed
from elmo_plugin.bilm.projected_lstm import LstmState
from elmo_plugin.tasks.bilm.initial_weights import InitialWeights, start_from
from elmo_plugin.tasks.bilm.vocabulary import (
    SOFTMAX_NAMESPACE,
    softmax_counts,
    with_vocabulary,
)
from elmo_plugin.util.errors import ConfigurationError


@Model.register("elmo-bilm")
class LanguageModel(Model):
    """
    Trains a biLM: predicts every next word, and every previous word (section 3.1 and equation of
    the jointly maximised log-likelihood), through one softmax for both directions.

    While it trains it reports the loss; when evaluated, per-token perplexities with the full
    softmax. Computation is float32 in evaluation.

    # Parameters

    vocab : `Vocabulary`
        Of type `elmo-bilm`; its words are what is predicted.
    options, options_file : `Optional[Dict[str, Any]]`, `Optional[str]`
        Shape of the model, written out or in a file; default `ELMO_OPTIONS`.
        `bidirectional: false` gives a forward-only language model.
    num_samples : `Optional[int]`, optional (default = `8192`)
        Sampled softmax while training, see `Softmax`; `null` for the full softmax.
    dropout : `float`, optional (default = `0.1`)
        On the input of every recurrent layer and on what predicts.
    mixed_precision : `bool`, optional (default = `False`)
        Products in bfloat16 while training, everything else in float32. About twice as fast where
        the processor has it.
    seed : `int`, optional (default = `0`)
        Of dropout and samples. They depend on it and on the number of batches read, on nothing
        that came between, so that a resumed run draws what an uninterrupted one would have.
    initializer : `Optional[InitializerApplicator]`, optional (default = `None`)
        Draws parameters otherwise than bilm-tf does.
    initial_weights : `Optional[Union[str, InitialWeights]]`, optional (default = `None`)
        Fine-tune what this holds: a weight file, the archive of an `elmo-bilm` model, or a run's
        folder. Its softmax is taken along if it is in there or, as `softmax.hdf5`, beside it; words
        that it lacks start afresh. Not needed any more once the model is trained. Written
        `{ file, vocabulary_file }` where the words of its softmax are not in a `vocabulary.txt`
        beside it.
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
        super().__init__(vocab, serialization_dir=serialization_dir)
        if not 0.0 <= dropout < 1.0:
            raise ConfigurationError(
                f"elmo-bilm: expected dropout from 0 to below 1, got {dropout}."
            )
        parsed = given_options(options, options_file, serialization_dir, "model")
        num_words = vocab.get_vocab_size(SOFTMAX_NAMESPACE)
        if not num_words:
            raise ConfigurationError(
                f"elmo-bilm: expected a vocabulary with words in {SOFTMAX_NAMESPACE}, found none. "
                'Set `vocabulary` to { "type": "elmo-bilm", "text": … }.'
            )
        self.bilm = Bilm(with_vocabulary(parsed, vocab), source=options_file or "")
        self.softmax = Softmax(num_words, self.bilm.options.lstm.output_dim, num_samples)
        counts = softmax_counts(vocab)
        if counts is not None:
            # Starts as the unigram model: rare words, hardly ever sampled, need not be unlearned.
            frequencies = torch.as_tensor(counts, dtype=torch.float32).clamp_min(0.5)
            with torch.no_grad():
                self.softmax.bias.copy_((frequencies / frequencies.sum()).log())
        if initializer is not None:
            initializer(self)
            self.bilm.character_encoder.reset_padding()
        if initial_weights is not None and not _is_trained(serialization_dir):
            if isinstance(initial_weights, str):
                initial_weights = InitialWeights(initial_weights)
            start_from(initial_weights, self.bilm, self.softmax, vocab)
        self.dropout = dropout
        self.mixed_precision = mixed_precision
        self.seed = seed
        self._num_batches = 0
        self._carried: Dict[str, List[LstmState]] = {}
        self._perplexity = Perplexity()
        self._speed = Speed()

    @overrides(check_signature=False)
    def forward(
        self,
        characters: torch.Tensor,
        forward_ids: torch.Tensor,
        forward_targets: torch.Tensor,
        batch_sizes: List[int],
        backward_ids: Optional[torch.Tensor] = None,
        backward_targets: Optional[torch.Tensor] = None,
        streams: Optional[torch.Tensor] = None,
        num_streams: int = 0,
        restart: bool = False,
    ) -> Dict[str, torch.Tensor]:
        """
        What `elmo_plugin.tasks.bilm.data_loader` builds.

        # Parameters

        characters : `torch.Tensor`
            Shape `(num_words, max_characters_per_token)`. The distinct words of the batch.
        forward_ids, backward_ids : `torch.Tensor`
            Shape `(num_packed,)`. Rows of `characters`, in the order in which each direction reads.
        forward_targets, backward_targets : `torch.Tensor`
            Shape `(num_packed,)`. Ids of the words to be predicted.
        batch_sizes : `List[int]`
            Number of sentences or streams at each step, never growing.
        streams : `Optional[torch.Tensor]`
            Shape `(batch_sizes[0],)`. Whose carried state each row continues; without it, rows
            start from zeros.
        num_streams : `int`
            How many carried states there are.
        restart : `bool`
            Whether to forget them first.

        # Returns

        `Dict[str, torch.Tensor]`
            `loss`: mean over directions and predictions, in nats. Of several processes, this one's
            share, so that the mean over processes is the mean over the whole batch.

        # Raises

        `ValueError`
            If the loss is infinite or not a number; says which batch it was.
        """
        if restart:
            self._carried = {}
        generator = self._next_generator(characters.device)
        directions = [("forward", forward_ids, forward_targets)]
        if self.bilm.options.bidirectional:
            directions.append(("backward", backward_ids, backward_targets))
        losses = []
        with torch.autocast(
            characters.device.type,
            dtype=torch.bfloat16,
            enabled=self.training and self.mixed_precision,
        ):
            # The gradient of a word is a sum over its places: in float32, and by `embedding` in
            # one order, which an index would not keep to with several threads.
            words = self.bilm.character_encoder(characters).to(self.softmax.bias.dtype)
            for name, ids, targets in directions:
                initial = self._initial(name, streams, num_streams)
                hidden, final = self._run(
                    name, embedding(ids, words), batch_sizes, initial, generator
                )
                if streams is not None:
                    self._carry(name, streams, final)
                loss = self.softmax(hidden, targets, generator)
                self._perplexity(name, loss.detach(), len(targets))
                losses.append(loss)
        # Gradients are averaged over processes, whose shares of a batch differ by some tokens.
        num_tokens = dist_reduce_sum(len(forward_targets))
        loss = torch.stack(losses).mean() * (self._num_processes / num_tokens)
        if not math.isfinite(loss.item()):
            batch = f"batch {self._num_batches}" if self.training else "a batch of evaluation"
            raise ValueError(
                f"elmo-bilm: the loss of {batch} is {loss.item()} "
                f"(learning rate too high, or no gradient clipping?). {self._name(forward_targets)}"
            )
        if self.training:
            self._speed.count(num_tokens)
        return {"loss": loss}

    @overrides
    def get_metrics(self, reset: bool = False) -> Dict[str, float]:
        """
        `perplexity`, `forward_perplexity` and `backward_perplexity` with the full softmax,
        `sampled_loss` in nats where it is estimated from samples; `tokens_per_second` in training.
        """
        metrics = self._perplexity.get_metric(reset)
        if self.training:
            if self.softmax.is_sampled:
                metrics = {"sampled_loss": math.log(metrics["perplexity"])}
            metrics["tokens_per_second"] = self._speed.per_second(reset)
        return metrics

    def training_state(self) -> Dict[str, Any]:
        """What a resumed run needs besides parameters: batches read and carried states."""
        carried = {
            name: [tuple(part.cpu() for part in state) for state in states]
            for name, states in self._carried.items()
        }
        return {"num_batches": self._num_batches, "carried": carried}

    def load_training_state(self, state: Dict[str, Any]) -> None:
        """Undoes `training_state`."""
        self._num_batches = state["num_batches"]
        device = self.softmax.bias.device
        self._carried = {
            name: [LstmState(*(part.to(device) for part in parts)) for parts in states]
            for name, states in state["carried"].items()
        }

    def _run(
        self,
        name: str,
        inputs: torch.Tensor,
        batch_sizes: List[int],
        initial: Optional[List[LstmState]],
        generator: Optional[torch.Generator],
    ) -> Tuple[torch.Tensor, List[LstmState]]:
        def dropout(values: torch.Tensor) -> torch.Tensor:
            if not self.training or self.dropout == 0.0:
                return values
            kept = torch.empty_like(values).bernoulli_(1.0 - self.dropout, generator=generator)
            return (values * kept).div_(1.0 - self.dropout)

        lstm = self.bilm.lstm
        stack = lstm.forward_layers if name == "forward" else lstm.backward_layers
        outputs, final = lstm.run_stack(stack, inputs, batch_sizes, initial, dropout)
        return dropout(outputs[-1]), final

    def _initial(
        self, name: str, streams: Optional[torch.Tensor], num_streams: int
    ) -> Optional[List[LstmState]]:
        if streams is None:
            return None
        if name not in self._carried:
            lstm, bias = self.bilm.options.lstm, self.softmax.bias
            self._carried[name] = [
                LstmState(
                    bias.new_zeros(num_streams, lstm.output_dim),
                    bias.new_zeros(num_streams, lstm.dim),
                )
                for _ in range(lstm.n_layers)
            ]
        return [LstmState(*(part[streams] for part in state)) for state in self._carried[name]]

    def _carry(self, name: str, streams: torch.Tensor, final: List[LstmState]) -> None:
        for carried, state in zip(self._carried[name], final):
            for part, new in zip(carried, state):
                part[streams] = new.detach().to(part.dtype)

    def _next_generator(self, device: torch.device) -> Optional[torch.Generator]:
        if not self.training:
            return None
        rank = torch.distributed.get_rank() if is_distributed() else 0
        self._num_batches += 1
        seed = (self.seed * 1_000_003 + rank) * 1_000_000_007 + self._num_batches
        return torch.Generator(device).manual_seed(seed % 2**63)

    @property
    def _num_processes(self) -> int:
        return torch.distributed.get_world_size() if is_distributed() else 1

    def _name(self, targets: torch.Tensor) -> str:
        words = [
            self.vocab.get_token_from_index(index, SOFTMAX_NAMESPACE)
            for index in targets[:10].tolist()
        ]
        return f"First words of its sentences: {' '.join(words)}."


def _is_trained(serialization_dir: Optional[str]) -> bool:
    """Whether AllenNLP is about to load trained weights."""
    return serialization_dir is not None and any(
        os.path.exists(os.path.join(serialization_dir, name)) for name in ("weights.th", "best.th")
    )
