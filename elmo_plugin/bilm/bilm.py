import hashlib
import json
from typing import Any, Callable, ClassVar, Dict, NamedTuple, Optional, Tuple

import torch
from torch.nn.functional import pad

from elmo_plugin.bilm.bidirectional_lstm import BidirectionalLstm, BilstmState
from elmo_plugin.bilm.characters import map_of
from elmo_plugin.bilm.options import BilmOptions, CharacterTableOptions
from elmo_plugin.bilm.stored_options import (
    STORED_OPTIONS,
    decode_stored_options,
    encode_stored_options,
)
from elmo_plugin.bilm.token_layer import CharacterEncoder, TokenEmbeddings
from elmo_plugin.bilm.vocabulary_file import BEGIN_SENTENCE, END_SENTENCE
from elmo_plugin.modules.recurrent.packing import Packing
from elmo_plugin.modules.recurrent.scan import RecurrentState
from elmo_plugin.util.bfloat16 import warn_of_slow_bilm
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.tensors import distinct_rows, is_exporting, uncompiled

_NOT_TRACED = (
    "biLM: torch.jit.trace and torch.vmap cannot follow its loops. Pass all sentences in one "
    "batch; for another runtime, call `elmo export BILM OUT.onnx` or torch.export.export."
)


class BilmOutput(NamedTuple):
    """The layers of a biLM for a batch, `<S>` and `</S>` included."""

    #: Shape `(num_layers, batch_size, num_tokens + 2, output_dim)`. First the context-free token
    #: layer, concatenated with itself to the width of the others; 0 at padding.
    layers: torch.Tensor
    #: Shape `(batch_size, num_tokens + 2)`. True on tokens, `<S>` and `</S>`.
    mask: torch.Tensor


class Bilm(torch.nn.Module):
    """
    The bidirectional language model of Peters et al. (2018), sections 3.1 and 3.4, without softmax.

    It reads the character ids of a batch of sentences, or word ids if the options have token
    embeddings, and returns one vector per token and layer. If `bidirectional` is false in the
    options, it is a forward-only language model with layers half as wide. The constructor reads no
    weights; `load_bilm` and `from_pretrained` do.

    # Parameters

    stateful : `bool`
        Start row `i` of a batch from the final state of row `i` of the previous batch, as AllenNLP
        and bilm-tf do, until `reset_state`. By default sentences are independent.
    warm_up : `bool`
        Start each sentence from the state after an empty sentence, not from zeros, which a biLM
        trained on continuous text has rarely seen. Costs two tokens per batch. Excludes `stateful`.
    source : `str`
        The options file. Archives store its name and its content, so they do not need the file.
    """

    options_json: torch.Tensor
    # Methods that `bilm/__init__.py` adds, because the model imports nothing from `bilm.files`.
    from_pretrained: ClassVar[Callable[..., "Bilm"]]
    save_pretrained: ClassVar[Callable[..., None]]

    def __init__(
        self,
        options: BilmOptions,
        stateful: bool = False,
        warm_up: bool = False,
        source: str = "",
    ) -> None:
        super().__init__()
        if stateful and warm_up:
            raise ConfigurationError(
                "Expected `stateful` or `warm_up` of a biLM, found both. Unset one."
            )
        self.options = options
        self.stateful = stateful
        self.warm_up = warm_up
        self.characters = map_of(options)
        # One name for both classes: it is part of the parameter names in archives.
        self.character_encoder = (
            TokenEmbeddings(options) if options.char_cnn is None else CharacterEncoder(options)
        )
        self.lstm = BidirectionalLstm(options)
        self.weights_version = 0  #: Increases when weights may have changed; see `train`.
        self._state: Optional[BilstmState] = None
        # On the CPU and no buffer, in which `to_empty` would leave other numbers.
        self.boundary_ids = self.characters.batch_ids([[BEGIN_SENTENCE, END_SENTENCE]])[0]
        self._stored_options = encode_stored_options(options.source, source)
        self.register_buffer(STORED_OPTIONS, self._stored_options.clone())

    @property
    def num_layers(self) -> int:
        """Number of layers, the token layer included."""
        return self.options.num_layers

    @property
    def output_dim(self) -> int:
        """Width of every layer."""
        return self.options.output_dim

    @uncompiled
    def forward(self, character_ids: torch.Tensor) -> BilmOutput:
        """
        Computes the layers of a batch, two tokens longer: each sentence gets `<S>` and `</S>`.

        `character_ids` has shape `(batch_size, num_tokens, max_characters_per_token)`, 0 at
        padding; the last size is 1 for token embeddings, and a table of words beside characters
        adds 1. Raises `ValueError` for another shape, ids that are too large or padding before a
        token. Raises `ConfigurationError` if the token layer and the LSTM layers differ in width.
        """
        self.options.check_widths()
        if torch.is_grad_enabled() and any(p.requires_grad for p in self.parameters()):
            self.weights_version += 1
        mask = self.checked_mask(character_ids)
        tokens, lengths = self._token_layer(character_ids, mask)
        if tokens.dtype == torch.bfloat16:
            warn_of_slow_bilm(tokens.device)
        packing = Packing.from_lengths(lengths, tokens.size(1))
        hidden_layers, final_state = self.lstm(tokens, packing, self._initial_state(tokens.size(0)))
        if self.stateful:
            # If this batch has fewer rows than an earlier one, the other rows keep their state.
            self._state = _map_state(
                lambda new, old: torch.cat([new, old[len(new) :]]).detach(),
                final_state,
                self._state or final_state,
            )
        # Shape: (batch_size, num_tokens + 2)
        mask = torch.arange(tokens.size(1), device=lengths.device) < lengths.unsqueeze(1)
        # Shape: (batch_size, num_tokens + 2, output_dim)
        token_layer = (tokens * mask.unsqueeze(-1)).repeat(1, 1, len(self.lstm.stacks))
        if is_exporting():
            hidden_layers = hidden_layers * mask.unsqueeze(-1)
        return BilmOutput(torch.cat([token_layer.unsqueeze(0), hidden_layers]), mask)

    def checked_mask(self, character_ids: torch.Tensor) -> torch.Tensor:
        """True on tokens: `(batch_size, num_tokens)`. Raises the `ValueError` of `forward`."""
        longest = self.characters.max_characters_per_token
        hint = " Give the token indexer the biLM's `bilm` or `options_file`."
        problem, found = "", tuple(character_ids.shape)
        if torch.jit.is_tracing() or torch._C._functorch.is_batchedtensor(character_ids):
            raise ConfigurationError(_NOT_TRACED)
        if self.stateful and is_exporting():
            raise ConfigurationError("A biLM that is `stateful` cannot be exported. Unset it.")
        if len(found) != 3 or found[2] != longest:
            problem = f"character ids of shape (batch_size, num_tokens, {longest}), found {found}."
            raise ValueError(f"biLM: expected {problem}{hint if len(found) == 3 else ''}")
        mask = (character_ids > 0).any(dim=2)
        if not is_exporting() and character_ids.numel():
            parts = self.characters.parts(character_ids)
            values = [(mask[:, 1:] & ~mask[:, :-1]).any(), *(ids.max() for ids, _ in parts)]
            # In one transfer, because each waits for a GPU.
            has_gap, *largest = torch.stack([value.long() for value in values]).tolist()
            if has_gap:
                problem = "padding at the end of sentences only, found padding before a token."
            for found_id, (_, num_ids) in zip(largest, parts):
                if found_id >= num_ids:
                    problem = f"character ids below {num_ids}, found {found_id}.{hint}"
        if problem:
            raise ValueError(f"biLM: expected {problem}")
        return mask

    def reset_state(self) -> None:
        """Sets the carried state of a stateful biLM to zero."""
        self._state = None

    def train(self, mode: bool = True) -> "Bilm":
        """Also marks weights as changed. Call it, or `eval`, after changes through `.data`."""
        self.weights_version += 1
        return super().train(mode)

    def _apply(self, fn: Callable, recurse: bool = True) -> "Bilm":
        self.weights_version += 1
        # The state is no buffer, so it would keep its device and type.
        self._state = None
        return super()._apply(fn, recurse)

    def _load_from_state_dict(
        self, state_dict: Dict[str, torch.Tensor], prefix: str, *args: Any
    ) -> None:
        self.weights_version += 1
        name = f"{prefix}{STORED_OPTIONS}"
        if name in state_dict:
            stored = BilmOptions.from_dict(decode_stored_options(state_dict[name])["options"])
            error_messages = args[-1]
            if stored != self.options:
                error_messages.append(f"{name}: {self.options.difference(stored)}.")
            # The name of the options file may differ, and with it the length of this buffer.
            options_json = self._stored_options.to(state_dict[name].device)
            state_dict = {**state_dict, name: options_json}
        super()._load_from_state_dict(state_dict, prefix, *args)

    def _token_layer(
        self, character_ids: torch.Tensor, mask: torch.Tensor
    ) -> Tuple[torch.Tensor, torch.Tensor]:
        """The token layer, arbitrary at padding, and the lengths, `<S>` and `</S>` included."""
        batch_size, num_tokens = mask.size()
        lengths = mask.sum(dim=1) + 2
        if is_exporting():
            begin, end = self.boundary_ids.to(character_ids.dtype)
            ids = pad(character_ids, (0, 0, 1, 1))
            position = torch.arange(num_tokens + 2, device=mask.device)
            # Shape: (batch_size, num_tokens + 2, 1)
            is_end = (position == lengths.unsqueeze(1) - 1).unsqueeze(2)
            ids = torch.where(is_end, end, torch.where((position == 0)[:, None], begin, ids))
            words = self.character_encoder(ids.flatten(0, 1))
            return words.unflatten(0, (batch_size, num_tokens + 2)), lengths
        # The row of each position in the encoded words: <S>, </S>, then the distinct words.
        rows = torch.zeros(batch_size, num_tokens + 2, dtype=torch.long, device=mask.device)
        sentences, positions = mask.nonzero(as_tuple=True)
        words = character_ids[sentences, positions].long()
        if len(words):
            words, word_rows = distinct_rows(words)
            rows[sentences, positions + 1] = word_rows + 2
        rows.scatter_(1, lengths.unsqueeze(1) - 1, 1)
        words = torch.cat([self.boundary_ids.to(words.device), words])
        # Shape: (batch_size, num_tokens + 2, token_dim), (batch_size,)
        return self.character_encoder(words)[rows], lengths

    def _initial_state(self, batch_size: int) -> Optional[BilstmState]:
        if self.warm_up:
            words = self.boundary_ids.to(self.options_json.device)
            tokens = self.character_encoder(words).unsqueeze(0)
            lengths = torch.full((1,), 2, device=tokens.device)
            _, state = self.lstm(tokens, Packing.from_lengths(lengths, 2))
            return _map_state(lambda part: part.expand(batch_size, -1), state)
        return self._state and _map_state(
            lambda part: pad(part[:batch_size], (0, 0, 0, max(0, batch_size - len(part)))),
            self._state,
        )


def fingerprint(bilm: Bilm) -> str:
    """A hash of a biLM's options and weights, and of their types: 32 hexadecimal digits."""
    digest = hashlib.blake2b(f"{bilm.options!r}".encode(), digest_size=16)
    # `repr` contains neither the words of token embeddings nor tables.
    digest.update(" ".join(bilm.options.words or ()).encode())
    if isinstance(cnn := bilm.options.char_cnn, CharacterTableOptions):
        digest.update(json.dumps([cnn.characters, cnn.words]).encode())
    for name, value in sorted(bilm.state_dict().items()):
        # This buffer also contains the name of the options file.
        if name != STORED_OPTIONS:
            digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
            digest.update(value.detach().cpu().flatten().view(torch.uint8).numpy())
    return digest.hexdigest()


def weights_type(bilm: Bilm) -> str:
    """The type of the weights: `float32` or `bfloat16`, see `load_bilm`."""
    return str(next(bilm.parameters()).dtype).replace("torch.", "")


def _map_state(function: Callable[..., torch.Tensor], *states: BilstmState) -> BilstmState:
    """Applies a function to the corresponding tensors of states."""
    return [
        tuple(RecurrentState(*map(function, *sides)) for sides in zip(*pairs))
        for pairs in zip(*states)
    ]
