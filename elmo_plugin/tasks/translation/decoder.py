from typing import List, NamedTuple, Tuple

import torch
from allennlp.nn.util import masked_softmax, weighted_sum

Cell = Tuple[torch.Tensor, torch.Tensor]


class DecoderState(NamedTuple):
    """The state of a decoder between two words."""

    #: Shape `(batch_size, num_layers, decoder_dim)`. Of the LSTM's layers.
    hidden: torch.Tensor
    cell: torch.Tensor
    #: Shape `(batch_size, decoder_dim)`. The vector from which the last word was predicted.
    attentional: torch.Tensor


class AttentionalDecoder(torch.nn.Module):
    """
    A unidirectional LSTM with attention and input feeding: the decoder of
    [McCann et al. (2017)](https://arxiv.org/abs/1708.00107), section 3, after
    [Luong et al. (2015)](https://aclanthology.org/D15-1166/).

    With the embedding `z` of the previous word, the encoded source `H` and the attentional vector
    `a` of the previous step:

        h = LSTM([z; a], h)
        weights = softmax(H (W1 h + b1))
        a = tanh(W2 [H^T weights; h] + b2)
        p(word) = softmax(W3 a + b3)

    # Parameters

    num_words : `int`
        Size of the target vocabulary, in which id 0 is padding.
    embedding_dim : `int`
        Width of the embeddings of target words.
    decoder_dim : `int`
        Width of each layer of the LSTM and of the attentional vector.
    encoded_dim : `int`
        Width of the encoded source.
    num_layers : `int`
    dropout : `float`
        On the inputs of each layer of the LSTM, and on the attentional vector.
    """

    def __init__(
        self,
        num_words: int,
        embedding_dim: int,
        decoder_dim: int,
        encoded_dim: int,
        num_layers: int,
        dropout: float,
    ) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(num_words, embedding_dim, padding_idx=0)
        widths = [embedding_dim + decoder_dim] + [decoder_dim] * (num_layers - 1)
        self.cells = torch.nn.ModuleList(torch.nn.LSTMCell(width, decoder_dim) for width in widths)
        self.query = torch.nn.Linear(decoder_dim, encoded_dim)
        self.combination = torch.nn.Linear(encoded_dim + decoder_dim, decoder_dim)
        self.output = torch.nn.Linear(decoder_dim, num_words)
        self.dropout = torch.nn.Dropout(dropout)

    def initial_state(self, hidden: torch.Tensor) -> DecoderState:
        """
        # Parameters

        hidden : `torch.Tensor`
            Shape `(batch_size, num_layers, decoder_dim)`. The initial hidden states.
        """
        return DecoderState(hidden, torch.zeros_like(hidden), torch.zeros_like(hidden[:, 0]))

    def forward(
        self,
        word_ids: torch.Tensor,
        state: DecoderState,
        encoded: torch.Tensor,
        mask: torch.Tensor,
    ) -> torch.Tensor:
        """
        # Parameters

        word_ids : `torch.Tensor`
            Shape `(batch_size, num_target_tokens)`. The word that precedes each word to predict.
        state : `DecoderState`
            Before the first word.
        encoded : `torch.Tensor`
            Shape `(batch_size, num_tokens, encoded_dim)`.
        mask : `torch.Tensor`
            Shape `(batch_size, num_tokens)`. True on the source's real tokens.

        # Returns

        `torch.Tensor`
            Shape `(batch_size, num_target_tokens, decoder_dim)`. The attentional vector of each
            step, with dropout; `output` turns it into scores of words.
        """
        vectors: List[torch.Tensor] = []
        for embedded in self.embedding(word_ids).unbind(dim=1):
            state = self.step(embedded, state, encoded, mask)
            vectors.append(state.attentional)
        return torch.stack(vectors, dim=1)

    def step(
        self,
        embedded: torch.Tensor,
        state: DecoderState,
        encoded: torch.Tensor,
        mask: torch.Tensor,
    ) -> DecoderState:
        """
        One step, from the embedding of a word, shape `(batch_size, embedding_dim)`. See `forward`
        for the other arguments.
        """
        # Shape: (batch_size, embedding_dim + decoder_dim)
        inputs = torch.cat([embedded, state.attentional], dim=-1)
        cells: List[Cell] = []
        for cell, *before in zip(self.cells, state.hidden.unbind(dim=1), state.cell.unbind(dim=1)):
            cells.append(cell(self.dropout(inputs), tuple(before)))
            inputs = cells[-1][0]
        # Shape: (batch_size, num_tokens)
        scores = encoded.bmm(self.query(inputs).unsqueeze(2)).squeeze(2)
        weights = masked_softmax(scores, mask, memory_efficient=True)
        # Shape: (batch_size, encoded_dim + decoder_dim)
        combined = torch.cat([weighted_sum(encoded, weights), inputs], dim=-1)
        hidden, cell_states = (torch.stack(part, dim=1) for part in zip(*cells))
        attentional = self.dropout(self.combination(combined).tanh())
        return DecoderState(hidden, cell_states, attentional)
