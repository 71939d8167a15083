from typing import List, NamedTuple, Optional

import torch
from allennlp.common import Lazy, Registrable
from allennlp.data import TextFieldTensors
from allennlp.modules import TokenEmbedder
from overrides import overrides

from elmo_plugin.elmo.elmo import Elmo
from elmo_plugin.util.errors import ConfigurationError, check_one_of


@TokenEmbedder.register("elmo-token-embedder")
class ElmoTokenEmbedder(Elmo, TokenEmbedder):
    """
    `Elmo`, with all its parameters, as a token embedder of any AllenNLP model.

    `optimizer: {parameter_groups: [[['bilm'], {lr: 1e-5}]]}` sets the learning rate of a
    `trainable` biLM. `regularizer: {regexes: [['layer_scores', {type: 'l2', alpha: 0.001}]]}` sets
    the paper's λ.
    """


class PlacedText(NamedTuple):
    """The result of a `Placement`."""

    #: The input of the task's own text field embedder.
    words: TextFieldTensors
    #: Shape `(batch_size, num_tokens, dim)`. ELMo vectors for the task's input and output.
    input_vectors: Optional[torch.Tensor] = None
    output_vectors: Optional[torch.Tensor] = None

    def at_input(self, embedded: torch.Tensor) -> torch.Tensor:
        """`[x; ELMo]`: shape `(batch_size, num_tokens, embedded_dim + input_dim)`."""
        return _join(embedded, self.input_vectors)

    def at_output(self, encoded: torch.Tensor) -> torch.Tensor:
        """`[h; ELMo]`: shape `(batch_size, num_tokens, encoded_dim + output_dim)`."""
        return _join(encoded, self.output_vectors)


class Placement(torch.nn.Module, Registrable):
    """
    Where a task model uses ELMo (sections 3.3 and 5.2): at its input, its output, both, or not at
    all. The model concatenates vectors of the widths `input_dim` and `output_dim`; the rest of the
    model is the same without ELMo:

        text = self.placement(tokens)
        embedded = text.at_input(self.text_field_embedder(text.words))
        encoded = text.at_output(self.encoder(embedded, mask))

    All texts of a model (question and passage, premise and hypothesis) share the scalar mixes.
    Input and output have separate ones. This class itself, `elmo-none`, is the baseline without
    vectors.
    """

    default_implementation = "elmo-none"

    #: Widths of `input_vectors` and `output_vectors`.
    input_dim: int = 0
    output_dim: int = 0

    def forward(
        self, tokens: TextFieldTensors, sentences: Optional[torch.Tensor] = None
    ) -> PlacedText:
        """
        Computes the ELMo vectors of a text field. `sentences`, shape `(batch_size, num_tokens)`,
        numbers the sentence of each token in ascending order, with any value at padding. By
        default, a text is one sentence.
        """
        return PlacedText(tokens)


Placement.register("elmo-none")(Placement)


@Placement.register("elmo-placement")
class ElmoPlacement(Placement):
    """
    ELMo at a task's input, output or both, from one forward pass of the biLM.

    # Parameters

    elmo : `Lazy[ElmoTokenEmbedder]`
        All parameters of `Elmo` except `num_mixes`.
    at : `str`
        `input`, `output` or `both`.
    indexer : `str`
        The token indexer of the character ids, which only ELMo uses.
    """

    def __init__(
        self, elmo: Lazy[ElmoTokenEmbedder], at: str = "input", indexer: str = "elmo"
    ) -> None:
        super().__init__()
        check_one_of(("input", "output", "both"), at=at)
        positions = ["input", "output"] if at == "both" else [at]
        self.elmo = elmo.construct(num_mixes=len(positions))
        self.elmo.mix_names = [f"elmo_{position}" for position in positions]
        self.at = at
        self.indexer = indexer
        dim = self.elmo.get_output_dim()
        self.input_dim = 0 if at == "output" else dim
        self.output_dim = 0 if at == "input" else dim

    @overrides(check_signature=False)
    def forward(
        self, tokens: TextFieldTensors, sentences: Optional[torch.Tensor] = None
    ) -> PlacedText:
        if self.indexer not in tokens:
            raise ConfigurationError(
                f"ELMo reads the token indexer {self.indexer!r}, but the text has only "
                f"{sorted(tokens)}. Add `{self.indexer}: {{type: 'elmo-characters'}}` to the "
                "reader's `token_indexers`."
            )
        words = {name: value for name, value in tokens.items() if name != self.indexer}
        if sentences is None:
            mixed = self.elmo.representations(**tokens[self.indexer])
        else:
            mixed = self._representations_of(sentences, **tokens[self.indexer])
        return PlacedText(
            words,
            input_vectors=None if self.at == "output" else mixed[0],
            output_vectors=None if self.at == "input" else mixed[-1],
        )

    def _representations_of(
        self, sentences: torch.Tensor, elmo_tokens: torch.Tensor
    ) -> List[torch.Tensor]:
        """Like `Elmo.representations`, but the biLM reads each sentence separately."""
        # Shape: (batch_size, num_tokens)
        mask = (elmo_tokens > 0).any(dim=-1)
        if not mask.any():
            return self.elmo.representations(elmo_tokens)
        texts = torch.arange(len(mask), device=mask.device).unsqueeze(1).expand_as(mask)
        # Shape: (num_real_tokens,)
        _, rows, lengths = torch.stack([texts[mask], sentences[mask]]).unique_consecutive(
            dim=1, return_inverse=True, return_counts=True
        )
        columns = torch.arange(len(rows), device=rows.device) - (lengths.cumsum(0) - lengths)[rows]
        # Memory grows with the number of sentences times the length of the longest one.
        # Shape: (num_sentences, longest, num_characters)
        ids = elmo_tokens.new_zeros(len(lengths), int(lengths.max()), elmo_tokens.size(-1))
        ids[rows, columns] = elmo_tokens[mask]
        mixed = []
        for vectors in self.elmo.representations(ids):
            mixed.append(vectors.new_zeros(*mask.shape, vectors.size(-1)))
            mixed[-1][mask] = vectors[rows, columns]
        return mixed


def _join(vectors: torch.Tensor, elmo: Optional[torch.Tensor]) -> torch.Tensor:
    return vectors if elmo is None else torch.cat([vectors, elmo], dim=-1)
