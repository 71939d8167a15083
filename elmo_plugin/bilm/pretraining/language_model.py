import math
from itertools import chain
from typing import Any, Dict, List, Optional, Sequence, Union

import torch
from torch.nn.functional import embedding

from elmo_plugin.bilm.bilm import Bilm
from elmo_plugin.bilm.options import BilmOptions
from elmo_plugin.bilm.pretraining.softmax import Softmax
from elmo_plugin.modules.recurrent.scan import RecurrentState
from elmo_plugin.util.bfloat16 import autocast_bfloat16
from elmo_plugin.util.distributed import rank_and_world_size, sum_over_processes
from elmo_plugin.util.errors import ConfigurationError, check_dropout
from elmo_plugin.util.tensors import uncompiled


class Perplexity:
    """
    The exponential of the mean negative log-likelihood per prediction. A sentence of `n` words has
    `n + 1` predictions per direction: its words, and `</S>` (forward) or `<S>` (backward). Several
    processes are summed only in a call with `reset`.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self._loss: Dict[str, float] = {}
        self._num_tokens: Dict[str, int] = {}

    def __call__(self, direction: str, loss: Union[float, torch.Tensor], num_tokens: int) -> None:
        """Adds a negative log-likelihood in nats, summed over `num_tokens` predictions."""
        self._loss[direction] = self._loss.get(direction, 0.0) + float(loss)
        self._num_tokens[direction] = self._num_tokens.get(direction, 0) + num_tokens

    def get_metric(self, reset: bool = False) -> Dict[str, float]:
        """`perplexity`, the geometric mean, and `<direction>_perplexity`; NaN before any batch."""
        if reset:
            for name in self._loss:
                self._loss[name] = sum_over_processes(self._loss[name])
                self._num_tokens[name] = sum_over_processes(self._num_tokens[name])
        means = {name: loss / self._num_tokens[name] for name, loss in self._loss.items()}
        mean = sum(means.values()) / len(means) if means else math.nan
        result = {"perplexity": perplexity_of(mean)}
        for name, loss in means.items():
            result[f"{name}_perplexity"] = perplexity_of(loss)
        if reset:
            self.reset()
        return result


def perplexity_of(loss: float) -> float:
    """The perplexity of a mean loss in nats; infinite above 700, near the limit of `math.exp`."""
    return math.inf if loss > 700.0 else math.exp(loss)


class LanguageModel(torch.nn.Module):
    """
    A biLM with a softmax for its training: the forward direction predicts every next word, the
    backward direction every previous word (section 3.1). In evaluation mode it uses the full
    softmax and float32. `examples/train_bilm.py` trains one.

    # Parameters

    options, source
        See `Bilm`.
    words : `Sequence[str]`
        The words to predict: `<S>`, `</S>`, `<UNK>`, then the others, most frequent first.
    counts : `Optional[Sequence[int]]`
        Their counts in the training text, which set the initial bias of the softmax.
    num_samples : `Optional[int]`
        Sampled softmax in training, see `Softmax`; `None` for the full softmax.
    dropout : `float`
        On the input of every recurrent layer and of the softmax.
    mixed_precision : `bool`
        Train in bfloat16, see `autocast_bfloat16`: about twice as fast on processors with it.
    seed : `int`
        Seed of dropout and samples. A resumed run draws the same as an uninterrupted one.
    """

    def __init__(
        self,
        options: BilmOptions,
        words: Sequence[str],
        counts: Optional[Sequence[int]] = None,
        num_samples: Optional[int] = 8192,
        dropout: float = 0.1,
        mixed_precision: bool = False,
        seed: int = 0,
        source: str = "",
        **base: Any,
    ) -> None:
        super().__init__(**base)
        check_dropout(dropout=dropout)
        self.words = list(words)
        self.bilm = Bilm(options_for(options, self.words), source=source)
        self.softmax = Softmax(len(self.words), self.bilm.options.lstm.output_dim, num_samples)
        if counts is not None:
            # From zeros, the first epochs would mostly learn the unigram frequencies.
            frequencies = torch.as_tensor(counts, dtype=torch.float32).clamp_min(0.5)
            with torch.no_grad():
                self.softmax.bias.copy_((frequencies / frequencies.sum()).log())
        self.dropout = dropout
        self.mixed_precision = mixed_precision
        self.seed = seed
        self._num_batches = 0
        self._carried: Dict[str, List[RecurrentState]] = {}
        self._perplexity = Perplexity()

    @uncompiled
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
    ) -> torch.Tensor:
        """
        The loss of a batch of `TextPass` in nats: the mean over directions and predictions. The
        mean over processes is the mean over the whole batch. Raises `ValueError` if not finite.

        `characters` are the distinct words of the batch, shape
        `(num_words, max_characters_per_token)`. For each direction, ids are rows of `characters` in
        packed order and targets are words to predict, both of shape `(num_packed,)`. `batch_sizes`
        is the number of rows at each step. Rows start from zeros or, with `streams`, shape
        `(batch_sizes[0],)`, from the states that these carry. `restart` first sets all
        `num_streams` carried states to zero.
        """
        if restart:
            self._carried = {}
        generator = self._next_generator(characters.device)
        directions = [("forward", forward_ids, forward_targets)]
        if self.bilm.options.bidirectional:
            assert backward_ids is not None and backward_targets is not None
            directions.append(("backward", backward_ids, backward_targets))
        with autocast_bfloat16(characters.device, self.training and self.mixed_precision):
            # In float32 and by `embedding`: the gradient of a word is summed over its positions,
            # and in indexing the order of that sum depends on the number of threads.
            words = self.bilm.character_encoder(characters).to(self.softmax.bias.dtype)
            hidden_states = [
                self._run(name, embedding(ids, words), batch_sizes, streams, num_streams, generator)
                for name, ids, _ in directions
            ]
            losses = self.softmax(hidden_states, [ids for _, _, ids in directions], generator)
        for (name, _, targets), loss in zip(directions, losses):
            self._perplexity(name, loss.detach(), len(targets))
        # Gradients are averaged over processes, whose numbers of tokens differ.
        num_tokens = sum_over_processes(len(forward_targets))
        loss = torch.stack(losses).mean() * (rank_and_world_size()[1] / num_tokens)
        self._check_finite(loss, forward_targets)
        return loss

    def get_metrics(self, reset: bool = False) -> Dict[str, float]:
        """
        The metrics of `Perplexity`; in training with a sampled softmax `sampled_loss`, in nats.
        """
        metrics = self._perplexity.get_metric(reset)
        if self.softmax.is_sampled:
            return {"sampled_loss": math.log(metrics["perplexity"])}
        return metrics

    def training_state(self) -> Dict[str, Any]:
        """The state of a run besides parameters: the number of batches and the carried states."""
        carried = {
            name: [tuple(part.cpu() for part in state) for state in states]
            for name, states in self._carried.items()
        }
        return {"num_batches": self._num_batches, "carried": carried}

    def load_training_state(self, state: Dict[str, Any]) -> None:
        self._num_batches = state["num_batches"]
        device = self.softmax.bias.device
        self._carried = {
            name: [RecurrentState(*(part.to(device) for part in parts)) for parts in states]
            for name, states in state["carried"].items()
        }

    def _run(
        self,
        name: str,
        inputs: torch.Tensor,
        batch_sizes: List[int],
        streams: Optional[torch.Tensor],
        num_streams: int,
        generator: Optional[torch.Generator],
    ) -> torch.Tensor:
        """Runs a direction. With `streams`, it starts from the carried states and updates them."""

        def dropout(values: torch.Tensor) -> torch.Tensor:
            if not self.training or self.dropout == 0.0:
                return values
            kept = torch.empty_like(values).bernoulli_(1.0 - self.dropout, generator=generator)
            return (values * kept).div_(1.0 - self.dropout)

        lstm, initial = self.bilm.lstm, None
        stack = lstm.forward_layers if name == "forward" else lstm.backward_layers
        if streams is not None:
            if name not in self._carried:
                self._carried[name] = self._zeros(num_streams)
            carried = self._carried[name]
            initial = [RecurrentState(*(part[streams] for part in state)) for state in carried]
        outputs, final = lstm.run_stack(stack, inputs, batch_sizes, initial, dropout)
        if streams is not None:
            for part, new in zip(chain(*carried), chain(*final)):
                part[streams] = new.detach().to(part.dtype)
        return dropout(outputs[-1])

    def _zeros(self, num_streams: int) -> List[RecurrentState]:
        lstm, bias = self.bilm.options.lstm, self.softmax.bias
        widths = (lstm.output_dim, lstm.dim)
        return [
            RecurrentState(*(bias.new_zeros(num_streams, width) for width in widths))
            for _ in range(lstm.n_layers)
        ]

    def _next_generator(self, device: torch.device) -> Optional[torch.Generator]:
        if not self.training:
            return None
        self._num_batches += 1
        process_seed = self.seed * 1_000_003 + rank_and_world_size()[0]
        seed = process_seed * 1_000_000_007 + self._num_batches
        return torch.Generator(device).manual_seed(seed % 2**63)

    def _check_finite(self, loss: torch.Tensor, targets: torch.Tensor) -> None:
        if math.isfinite(loss.item()):
            return
        batch = f"batch {self._num_batches}" if self.training else "an evaluation batch"
        words = " ".join(self.words[number] for number in targets[:10].tolist())
        raise ValueError(
            f"elmo-bilm: the loss of {batch} is {loss.item()} (learning rate too high, or no "
            f"gradient clipping?). First forward targets of the batch: {words}."
        )


def options_for(options: BilmOptions, words: List[str]) -> BilmOptions:
    """
    The options to predict these words. Token embeddings are of the same words, as in bilm-tf.
    Raises `ConfigurationError` if they are of other words, or shared with the softmax.
    """
    if options.char_cnn is not None:
        return options
    if options.words is not None and list(options.words) != words:
        raise ConfigurationError(
            f"Expected to predict the {len(options.words)} words of the token embeddings, found "
            f"{len(words)} others. Set `file` of the vocabulary to the vocabulary.txt beside the "
            "options of the biLM."
        )
    if options.source.get("share_embedding_softmax"):
        raise ConfigurationError(
            "`share_embedding_softmax` is true in the biLM options: one matrix for both token "
            "embeddings and softmax is not supported in training. Set it to false."
        )
    return options.with_words(words)
