"""Parts of the models of allennlp-models in task_peers.py, in the sizes of ours."""

from copy import deepcopy
from typing import List, Sequence

import torch
from allennlp.data import TextFieldTensors, Vocabulary
from allennlp.models import Model
from allennlp.modules import FeedForward, Seq2SeqEncoder, TextFieldEmbedder
from allennlp.modules.seq2seq_encoders import LstmSeq2SeqEncoder
from allennlp.modules.seq2vec_encoders import CnnEncoder
from allennlp.modules.text_field_embedders import BasicTextFieldEmbedder
from allennlp.modules.token_embedders import Embedding, TokenCharactersEncoder
from allennlp.nn import Activation

from elmo_plugin.modules.token_embedders.character_cnn import CharacterCnn
from elmo_plugin.modules.token_embedders.word_vectors import WordVectors


def lstm(ours: Seq2SeqEncoder) -> LstmSeq2SeqEncoder:
    return LstmSeq2SeqEncoder(ours.get_input_dim(), ours.get_output_dim() // 2, bidirectional=True)


def feedforward(input_dim: int, dims: List[int], dropout: List[float], last: str) -> FeedForward:
    """Layers with ReLU, the last one with another activation."""
    activations = [Activation.by_name("relu")() for _ in dims[1:]] + [Activation.by_name(last)()]
    return FeedForward(input_dim, len(dims), dims, activations, dropout)


def label_vocabulary(labels: Sequence[str]) -> Vocabulary:
    return Vocabulary(tokens_to_add={"labels": list(labels)})


def embedders(ours: TextFieldEmbedder) -> TextFieldEmbedder:
    """Copies of our embedders, with AllenNLP's classes in place of the plugin's."""
    copies = deepcopy(ours._token_embedders)
    for name, embedder in copies.items():
        if isinstance(embedder, WordVectors):
            copies[name] = Embedding(
                embedder.get_output_dim(),
                num_embeddings=len(embedder.weight),
                weight=embedder.weight.detach(),
                trainable=embedder.weight.requires_grad,
            )
        elif isinstance(embedder, CharacterCnn):
            dim, number = embedder.embedding.get_output_dim(), embedder.filters[0].out_features
            cnn = CnnEncoder(dim, number, tuple(embedder.widths), torch.nn.ReLU())
            copies[name] = TokenCharactersEncoder(deepcopy(embedder.embedding), cnn)
    return BasicTextFieldEmbedder(copies)


def their_tokens(tokens: TextFieldTensors, ours: Model) -> TextFieldTensors:
    """Maps words that only our model has vectors for to the unknown word."""
    sizes = [len(module.weight) for module in ours.modules() if isinstance(module, WordVectors)]
    ids = tokens["words"]["tokens"]
    return {**tokens, "words": {"tokens": ids.masked_fill(ids >= sizes[0], 1)}}
