import json
from dataclasses import dataclass
from functools import partial
from typing import Any, Callable, Dict, Optional, Sequence, Tuple

import torch
from torch.nn.functional import pad

from elmo_plugin.bilm.bidirectional_lstm import BidirectionalLstm, BilstmState
from elmo_plugin.bilm.character_encoder import CharacterEncoder
from elmo_plugin.bilm.io.hub import PretrainedFiles
from elmo_plugin.bilm.options import BilmOptions
from elmo_plugin.bilm.token_embeddings import TokenEmbeddings, map_of
from elmo_plugin.bilm.token_layer_table import TokenLayerTable
from elmo_plugin.bilm.vocabulary_file import BEGIN_SENTENCE, END_SENTENCE
from elmo_plugin.modules.linear.int8 import Int8Linear
from elmo_plugin.modules.linear.packed import PackedLinear
from elmo_plugin.modules.recurrent.packing import Packing
from elmo_plugin.modules.recurrent.recurrence import tracks_gradients
from elmo_plugin.modules.recurrent.scan import RecurrentState


@dataclass(frozen=True)
class BilmOutput:
    """
    The layers of a biLM over a batch, the marks `<S>` and `</S>` included.

    # Parameters

    layers : `torch.Tensor`
        Shape `(num_layers, batch_size, num_tokens + 2, output_dim)`. First the token layer, which
        reads no context and is doubled to the width of both directions; 0 at padding.
    mask : `torch.Tensor`
        Shape `(batch_size, num_tokens + 2)`. True on tokens and marks.
    """

    layers: torch.Tensor
    mask: torch.Tensor


class Bilm(PretrainedFiles):
    """
    The bidirectional language model of Peters et al. (2018), sections 3.1 and 3.4, as a reader
    of sentences: characters in, or whole words where the options ask for token embeddings, and
    one vector per token and layer out.

    It is built from options alone; `load_bilm` and `from_pretrained` read one with its weights
    from files, and `save_pretrained` writes them. The same
    parts without a backward direction are a forward-only language model, its layers half as wide.

    # Parameters

    options : `BilmOptions`
        Shape of the model.
    stateful : `bool`, optional (default = `False`)
        By default what a sentence gives depends on that sentence only. When true, the state
        after row `i` of a batch is where row `i` of the next batch starts, as in AllenNLP and
        bilm-tf, so that results depend on what was read before; `reset_state` forgets it.
    warm_up : `bool`, optional (default = `False`)
        Start each sentence from the state after an empty one instead of from zeros. A biLM
        trained on running text has hardly seen a zero state; this keeps results repeatable.
        Costs two tokens per batch.
    source : `str`, optional (default = `""`)
        Where the options came from; kept with the parameters, so that an archive can rebuild
        the model without that file.

    # Raises

    `ValueError`
        If both `stateful` and `warm_up` are asked for.
    """

    boundary_ids: torch.Tensor
    options_json: torch.Tensor

    def __init__(
        self,
        options: BilmOptions,
        stateful: bool = False,
        warm_up: bool = False,
        source: str = "",
    ) -> None:
        super().__init__()
        if stateful and warm_up:
            raise ValueError("A biLM starts from carried state or from a warm-up, not from both.")
        self.options = options
        self.stateful = stateful
        self.warm_up = warm_up
        self.characters = map_of(options)
        # One name for both, which every archive has.
        self.character_encoder = (
            TokenEmbeddings(options) if options.char_cnn is None else CharacterEncoder(options)
        )
        self.lstm = BidirectionalLstm(options)
        self.weights_version = 0  #: Grows when weights may have changed; see `train`.
        self._token_table: Optional[TokenLayerTable] = None
        self._state: Optional[BilstmState] = None
        self.register_buffer(
            "boundary_ids", self.characters.batch_ids([[BEGIN_SENTENCE, END_SENTENCE]])[0], False
        )
        identity = json.dumps({"options_file": source, "options": options.source}, sort_keys=True)
        self.register_buffer(
            "options_json", torch.frombuffer(bytearray(identity.encode()), dtype=torch.uint8)
        )

    @property
    def num_layers(self) -> int:
        """Number of layers, the token layer included."""
        return self.options.num_layers

    @property
    def output_dim(self) -> int:
        """Width of every layer."""
        return self.options.output_dim

    def forward(self, character_ids: torch.Tensor) -> BilmOutput:
        """
        Memory grows with `num_layers * batch_size * num_tokens * output_dim`.

        # Parameters

        character_ids : `torch.Tensor`
            Shape `(batch_size, num_tokens, max_characters_per_token)`, 0 at padding. The last size
            is 1 where the biLM reads token embeddings.

        # Raises

        `ValueError`
            If the ids cannot come from this biLM's characters, padding stands before a token, or
            the layers differ in width.
        """
        self._check_widths()
        if torch.is_grad_enabled() and any(p.requires_grad for p in self.parameters()):
            self.weights_version += 1
        mask = self.checked_mask(character_ids)
        tokens, lengths = self._token_layer(character_ids, mask)
        packing = Packing.from_lengths(lengths, tokens.size(1))
        hidden_layers, final_state = self.lstm(tokens, packing, self._initial_state(len(tokens)))
        if self.stateful:
            self._remember_state(final_state)
        # Shape: (batch_size, num_tokens + 2)
        mask = torch.arange(tokens.size(1), device=lengths.device) < lengths.unsqueeze(1)
        # Shape: (batch_size, num_tokens + 2, output_dim)
        token_layer = (tokens * mask.unsqueeze(-1)).repeat(
            1, 1, 2 if self.options.bidirectional else 1
        )
        return BilmOutput(torch.cat([token_layer.unsqueeze(0), hidden_layers]), mask)

    def checked_mask(self, character_ids: torch.Tensor) -> torch.Tensor:
        """
        Where tokens stand: shape `(batch_size, num_tokens)`. See `forward` for what it raises.
        """
        expected = self.characters
        if character_ids.dim() != 3 or character_ids.size(2) != expected.max_characters_per_token:
            raise ValueError(
                "biLM: expected character ids of shape (batch_size, num_tokens, "
                f"{expected.max_characters_per_token}), found {tuple(character_ids.shape)}. "
                "Give the token indexer the biLM's `options_file`."
            )
        # On a GPU this would wait for the device; an id out of range fails in the embedding.
        if character_ids.numel() and character_ids.device.type == "cpu":
            largest = int(character_ids.max())
            if largest >= expected.n_characters:
                raise ValueError(
                    f"biLM: expected character ids below {expected.n_characters}, found {largest}. "
                    "Give the token indexer the biLM's `options_file`."
                )
        mask = (character_ids > 0).any(dim=2)
        if bool((mask[:, 1:] & ~mask[:, :-1]).any()):
            raise ValueError("biLM: padding stands before a token; pad sentences at their end.")
        return mask

    def precompute(self, words: Sequence[str]) -> None:
        """
        Computes the token layer of these words now, so that reading them later skips the
        character encoder. Not used when gradients are tracked through that encoder; call it again
        after its weights change. Loading a state dict forgets them. Takes `token_dim` numbers per
        word.
        """
        self._token_table = (
            TokenLayerTable(self.character_encoder, self.characters, words) if words else None
        )

    def reset_state(self) -> None:
        """Forgets the state that a stateful biLM carries."""
        self._state = None

    def to_bfloat16(self) -> "Bilm":
        """
        Halves the weights to bfloat16: about twice as fast at the published size, where the
        processor has it; layers differ by less than 1 % from float32.
        """
        return self.to(torch.bfloat16)

    def to_int8(self) -> "Bilm":
        """
        Quantises the weights to int8, with a scale for each row of a matrix. For reading one
        sentence at a time on a CPU with VNNI: at the published size two to three times as fast as
        float32, and about 1.3 times as fast as bfloat16 (`benchmarks/embed.py`). Weights take a
        quarter of float32's memory; layers differ by about 1 %. Large batches, and a biLM so small
        that it stays in the processor's cache, are slower. The weights cannot be trained any more.
        """
        convolutions = getattr(self.character_encoder, "convolutions", None)
        for parent in list(self.modules()):
            for name, layer in list(parent.named_children()):
                # Convolutions have few weights and short rows: little to gain, and much to lose.
                if isinstance(layer, PackedLinear) and parent is not convolutions:
                    setattr(parent, name, Int8Linear.from_linear(layer))
        self._token_table = None
        self.weights_version += 1
        return self.requires_grad_(False)

    def train(self, mode: bool = True) -> "Bilm":
        """To be called (or `eval`) after weights were changed in place, as through their `data`."""
        self.weights_version += 1
        return super().train(mode)

    def _apply(self, fn: Callable, recurse: bool = True) -> "Bilm":
        # Neither is a parameter, so neither would follow to another device or type.
        self._token_table = self._state = None
        self.weights_version += 1
        return super()._apply(fn, recurse)

    def _load_from_state_dict(
        self, state_dict: Dict[str, torch.Tensor], prefix: str, *args: Any
    ) -> None:
        self._token_table = None
        self.weights_version += 1
        name = f"{prefix}options_json"
        if name in state_dict:
            stored = BilmOptions.from_dict(json.loads(bytes(state_dict[name].cpu()))["options"])
            error_messages = args[-1]
            if stored != self.options:
                words = "" if stored.words == self.options.words else " of other words"
                error_messages.append(f"{prefix}: expected {self.options}, found {stored}{words}.")
            # Where the options came from may differ, and its length with it.
            state_dict = {**state_dict, name: self.options_json}
        super()._load_from_state_dict(state_dict, prefix, *args)

    def _token_layer(
        self, character_ids: torch.Tensor, mask: torch.Tensor
    ) -> Tuple[torch.Tensor, torch.Tensor]:
        """
        # Returns

        tokens : `torch.Tensor`
            Shape `(batch_size, num_tokens + 2, token_dim)`; anything at padding.
        lengths : `torch.Tensor`
            Shape `(batch_size,)`. Number of tokens per sentence, both marks included.
        """
        batch_size, num_tokens = mask.size()
        # For each position a row of the encoded words: 0 is <S>, 1 is </S>, then distinct words.
        rows = character_ids.new_zeros(batch_size, num_tokens + 2)
        words = character_ids[mask]
        if len(words):
            words, word_rows = torch.unique(words, dim=0, return_inverse=True)
            rows[:, 1:-1][mask] = word_rows + 2
        lengths = mask.sum(dim=1) + 2
        rows.scatter_(1, lengths.unsqueeze(1) - 1, 1)
        words = torch.cat([self.boundary_ids, words])
        encode = self._token_table or self.character_encoder
        if tracks_gradients(*self.character_encoder.parameters()):
            encode = self.character_encoder
        return encode(words)[rows], lengths

    def _check_widths(self) -> None:
        expected, found = self.options.lstm.output_dim, self.options.token_dim
        if found != expected:
            raise ValueError(
                f"biLM: expected a token layer as wide as an LSTM layer's output ({expected}), "
                f"found {found}. Without `char_cnn.projection`, `char_cnn.filters` must add up to "
                f"{expected}."
            )

    def _initial_state(self, batch_size: int) -> Optional[BilstmState]:
        if self.warm_up:
            return self._warm_state(batch_size)
        return self._state and _map_state(partial(_fit_rows, batch_size), self._state)

    def _warm_state(self, batch_size: int) -> BilstmState:
        tokens = self.character_encoder(self.boundary_ids).unsqueeze(0)
        lengths = torch.full((1,), 2, device=tokens.device)
        _, state = self.lstm(tokens, Packing.from_lengths(lengths, 2))
        return _map_state(lambda part: part.expand(batch_size, -1), state)

    def _remember_state(self, state: BilstmState) -> None:
        """Keeps the state of rows that this batch did not have."""
        self._state = _map_state(_replace_rows, state, self._state or state)


def _map_state(function: Callable[..., torch.Tensor], *states: BilstmState) -> BilstmState:
    return [
        tuple(RecurrentState(*map(function, *sides)) for sides in zip(*pairs))
        for pairs in zip(*states)
    ]


def _fit_rows(batch_size: int, part: torch.Tensor) -> torch.Tensor:
    return pad(part[:batch_size], (0, 0, 0, max(0, batch_size - len(part))))


def _replace_rows(new: torch.Tensor, old: torch.Tensor) -> torch.Tensor:
    return torch.cat([new, old[len(new) :]]).detach()
