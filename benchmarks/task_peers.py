"""
Builds the models of allennlp-models 2.10.1 that tasks.py compares with ours.

The requirements of allennlp-models conflict with those of this project, so it is installed into a
separate folder, without its requirements.

A peer has the widths, layers and dropout of our model, AllenNLP's embedders for word vectors and
characters, and the same input tensors. Remaining differences:

- all: AllenNLP's embedder has vectors of the words of the vocabulary only, as it trains itself.
  Ours also looks up other words, such as those of the test set, in the file of word vectors. The
  initial weights of its LSTMs and GRUs are PyTorch's: uniform, biases too. Ours are those of
  `initial_layer`: recurrent weights are orthogonal, and the biases of forget gates one.
- `crf_tagger`: ordinary dropout before and after the encoder, instead of variational dropout at
  each layer. It also decodes and counts entities in training, which cannot be turned off.
- `bcn`: with ReLU layers, the same network.
- `esim`: the same network; it encodes premises and hypotheses in two batches, ours in one.
- `bidaf`: a smaller network, here without highway layers and with GRUs of our width instead of
  LSTMs: it has three GRUs (ours: four) and no self-attention.
- `srl`: the loss is averaged over the tokens of a sentence, not summed, and the dropout of a layer
  applies to its recurrent inputs only, not to what the next layer reads. Decoding adds
  probabilities, not their logarithms. Its recurrent weights start orthogonal, as ours do, but its
  predicate embedding starts from Glorot's uniform values and ours from N(0, 1). It is scored by the
  official srl-eval.pl, which needs Perl.
- `coref`: no speakers or genres, crossing spans are allowed, a document is encoded as one sentence,
  and clusters are also scored in training. Both train on 50 sentences of a long document. Its
  candidate spans are part of its input; ours computes them.
"""

import sys
from copy import deepcopy
from importlib import import_module, util
from pathlib import Path
from typing import Any, Callable, Dict, NamedTuple, Optional

import torch
from allennlp.data import Vocabulary
from allennlp.models import Model
from allennlp.modules import FeedForward
from allennlp.modules.matrix_attention import DotProductMatrixAttention, LinearMatrixAttention
from allennlp.modules.seq2seq_encoders import (
    ComposeEncoder,
    GruSeq2SeqEncoder,
    StackedAlternatingLstmSeq2SeqEncoder,
)
from peer_parts import embedders, feedforward, label_vocabulary, lstm, their_tokens

from elmo_plugin.corpora.snli import LABELS as SNLI_LABELS
from elmo_plugin.tasks.coref.mentions import enumerate_spans

CURE = (
    "pip install --no-deps --target FOLDER allennlp-models==2.10.1 word2number, and name the "
    "folder by --peers or ELMO_PEERS"
)
Tensors = Dict[str, Any]


class Peer(NamedTuple):
    """A model, and a function that selects its inputs from our batch."""

    model: Model
    batch: Callable[[Tensors], Tensors]


def find_peers(folder: Optional[Path]) -> bool:
    """Makes allennlp-models importable from `folder` if it is installed there."""
    if folder is not None and str(folder) not in sys.path:
        # Appended, so that packages of the project take precedence.
        sys.path.append(str(folder))
    return util.find_spec("allennlp_models") is not None


def crf_tagger(ours: Model) -> Peer:
    model = import_module("allennlp_models.tagging").CrfTagger(
        label_vocabulary(ours.tags),
        embedders(ours.text_field_embedder),
        ComposeEncoder([lstm(ours.lower_encoder), lstm(ours.upper_encoder)]),
        label_encoding="BIOUL",
        dropout=ours.dropout.p,
    )
    # The first two entries of our tag namespace are padding and the unknown tag.
    first = ours.vocab.get_token_index(ours.tags[0], "entities")

    def batch(given: Tensors) -> Tensors:
        tags = {"tags": (given["tags"] - first).clamp(min=0)} if "tags" in given else {}
        return {**given, "tokens": their_tokens(given["tokens"], ours), **tags}

    return Peer(model, batch)


def bcn(ours: Model) -> Peer:
    classifier, projection = ours.classifier, ours.output_projection
    hidden = [layer.out_features for layer in classifier._linear_layers]
    labels = ours.vocab.get_index_to_token_vocabulary("labels")
    package = import_module("allennlp_models.classification")
    model = package.BiattentiveClassificationNetwork(
        label_vocabulary([labels[index] for index in range(len(labels))]),
        embedders(ours.text_field_embedder),
        embedding_dropout=ours.dropout.p,
        pre_encode_feedforward=deepcopy(ours.feedforward),
        encoder=lstm(ours.encoder),
        integrator=lstm(ours.integrator),
        integrator_dropout=ours.pooled_dropout.p,
        output_layer=feedforward(
            classifier.get_input_dim(),
            [*hidden, projection.out_features],
            [*(layer.p for layer in classifier._dropout), 0.0],
            "linear",
        ),
    )

    def batch(given: Tensors) -> Tensors:
        label = {"label": given["label"]} if "label" in given else {}
        return {"tokens": their_tokens(given["tokens"], ours), **label}

    return Peer(model, batch)


def esim(ours: Model) -> Peer:
    dropout, projection = ours.input_dropout.p, ours.projection
    hidden_size = projection.out_features
    model = import_module("allennlp_models.pair_classification").ESIM(
        label_vocabulary(SNLI_LABELS),
        embedders(ours.text_field_embedder),
        encoder=lstm(ours.encoder),
        matrix_attention=DotProductMatrixAttention(),
        projection_feedforward=feedforward(projection.in_features, [hidden_size], [0.0], "relu"),
        inference_encoder=lstm(ours.composition_encoder),
        output_feedforward=feedforward(
            4 * ours.composition_encoder.get_output_dim(), [hidden_size], [dropout], "relu"
        ),
        output_logit=feedforward(hidden_size, [len(SNLI_LABELS)], [0.0], "linear"),
        dropout=dropout,
    )

    def batch(given: Tensors) -> Tensors:
        texts = {name: their_tokens(given[name], ours) for name in ("premise", "hypothesis")}
        return {**given, **texts}

    return Peer(model, batch)


def bidaf(ours: Model) -> Peer:
    dim = ours.encoder.get_output_dim()

    def gru(input_dim: int) -> GruSeq2SeqEncoder:
        return GruSeq2SeqEncoder(input_dim, dim // 2, bidirectional=True)

    model = import_module("allennlp_models.rc").BidirectionalAttentionFlow(
        Vocabulary(),
        embedders(ours.text_field_embedder),
        num_highway_layers=0,
        phrase_layer=gru(ours.encoder.get_input_dim()),
        matrix_attention=LinearMatrixAttention(dim, dim, "x,y,x*y"),
        modeling_layer=gru(4 * dim),
        span_end_encoder=gru(7 * dim),
        dropout=ours.dropout.p,
    )

    def batch(given: Tensors) -> Tensors:
        found = {name: their_tokens(given[name], ours) for name in ("question", "passage")}
        if "answer_span" in given:
            found["span_start"], found["span_end"] = given["answer_span"].split(1, dim=1)
        # It also scores its answers in training, like ours.
        found["metadata"] = [
            {
                **each,
                "original_passage": each["passage"],
                "answer_texts": each["answers"],
                # Copied into its output, and not used otherwise.
                "question_tokens": None,
                "passage_tokens": None,
            }
            for each in given["metadata"]
        ]
        return found

    return Peer(model, batch)


def srl(ours: Model) -> Peer:
    encoder = ours.encoder
    # The first two entries of our tag namespace are padding and the unknown tag.
    first = ours.unknown_role + 1
    model = import_module("allennlp_models.structured_prediction").SemanticRoleLabeler(
        label_vocabulary(ours.tags[first:]),
        embedders(ours.text_field_embedder),
        StackedAlternatingLstmSeq2SeqEncoder(
            encoder.get_input_dim(),
            encoder.get_output_dim(),
            num_layers=len(encoder.layers),
            recurrent_dropout_probability=encoder.recurrent_dropout,
            use_input_projection_bias=False,
        ),
        binary_feature_dim=ours.predicate_embedding.embedding_dim,
    )

    def batch(given: Tensors) -> Tensors:
        found = {
            "tokens": their_tokens(given["tokens"], ours),
            "verb_indicator": given["predicate_indicator"],
            "metadata": [
                {**each, "verb": each["lemma"], "verb_index": each["predicate_index"]}
                for each in given["metadata"]
            ],
        }
        if "tags" in given:
            found["tags"] = (given["tags"] - first).clamp(min=0)
        return found

    return Peer(model, batch)


def coref(ours: Model) -> Peer:
    scoring = ours.scoring
    encoder = lstm(ours.encoder)
    hidden = [scoring.feedforward_dim] * 2
    span_dim = sum(ours.antecedent_scorer.part_dims)

    def network(input_dim: int) -> FeedForward:
        return feedforward(input_dim, hidden, [scoring.dropout] * 2, "relu")

    model = import_module("allennlp_models.coref").CoreferenceResolver(
        Vocabulary(),
        embedders(ours.text_field_embedder),
        encoder,
        mention_feedforward=network(span_dim),
        antecedent_feedforward=network(3 * span_dim + scoring.feature_dim),
        feature_size=scoring.feature_dim,
        max_span_width=scoring.max_span_width,
        spans_per_word=scoring.spans_per_word,
        max_antecedents=scoring.max_antecedents,
        lexical_dropout=ours.lexical_dropout.p,
    )

    return Peer(model, lambda given: their_document(given, ours))


def their_document(given: Tensors, ours: Model) -> Tensors:
    """A document as one text, with all its candidate spans."""
    (metadata,) = given["metadata"]
    most = ours.max_training_sentences if "gold_mentions" in given else None
    sentences = metadata["sentences"][:most]
    lengths = torch.tensor([len(sentence) for sentence in sentences])
    # Shape: (number of sentences, longest)
    mask = torch.arange(lengths.max()) < lengths.unsqueeze(1)
    text = {
        indexer: {
            name: tensor[0, : mask.size(0), : mask.size(1)][mask].unsqueeze(0)
            for name, tensor in tensors.items()
        }
        for indexer, tensors in their_tokens(given["sentences"], ours).items()
    }
    spans = torch.stack(enumerate_spans(lengths, ours.scoring.max_span_width), dim=1)
    clusters = [
        [mention for mention in cluster if mention[1] < lengths.sum()]
        for cluster in metadata["clusters"] or []
    ]
    found = {
        "text": text,
        "spans": spans.unsqueeze(0),
        "metadata": [
            {"original_text": sum(sentences, []), "clusters": list(filter(None, clusters))}
        ],
    }
    if "gold_mentions" in given:
        numbers = {span: n for n, cluster in enumerate(clusters) for span in cluster}
        labels = [numbers.get(tuple(span), -1) for span in spans.tolist()]
        found["span_labels"] = torch.tensor([labels])
    return found


PEERS: Dict[str, Callable[[Model], Peer]] = {
    "crf_tagger": crf_tagger,
    "bcn": bcn,
    "esim": esim,
    "bidaf": bidaf,
    "srl": srl,
    "coref": coref,
}
