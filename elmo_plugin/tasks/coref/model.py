from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import torch
from allennlp.common import Lazy
from allennlp.data import TextFieldTensors, Vocabulary
from allennlp.models import Model
from allennlp.modules import InputVariationalDropout, Seq2SeqEncoder, TextFieldEmbedder
from allennlp.nn import RegularizerApplicator
from allennlp.nn.util import get_text_field_mask
from overrides import overrides
from torch.nn.functional import pad

from elmo_plugin.elmo import Placement
from elmo_plugin.elmo.placement import Nowhere
from elmo_plugin.tasks.coref.antecedents import (
    AntecedentScorer,
    KeptSpans,
    best_antecedents,
    clusters_from,
    loss,
)
from elmo_plugin.tasks.coref.metric import CorefScores
from elmo_plugin.tasks.coref.pruning import best_spans
from elmo_plugin.tasks.coref.reader import GENRES
from elmo_plugin.tasks.coref.scoring import ScoringSettings
from elmo_plugin.tasks.coref.spans import MentionScorer, Spans, spans_within
from elmo_plugin.training import require_labels

# What is needed to learn from, for the error.
_LABELS = "mentions, in the last column of CoNLL-2012,"


class _Document(NamedTuple):
    """The spans of a document that were kept, by position."""

    kept: KeptSpans
    # Where they are in the whole document.
    places: Spans


@Model.register("elmo-coref")
class Coref(Model):
    """
    The end-to-end model of [Lee et al. (2017)](https://aclanthology.org/D17-1018/): every short
    span of a document is scored as a mention, the best are kept, and each of them is linked to an
    earlier one or to none. What is linked is a cluster. Sentences are encoded one by one.

    ELMo joins the words, the output of the encoder, or both. The head of a span is a mean of its
    words, without ELMo.

    # Parameters

    vocab : `Vocabulary`
    text_field_embedder : `TextFieldEmbedder`
        Embeds the words.
    encoder : `Lazy[Seq2SeqEncoder]`
        Reads a sentence. Its `input_size` is given by the model.
    placement : `Optional[Placement]`, optional (default = `None`)
        Where ELMo joins; nowhere by default.
    scoring : `Optional[ScoringSettings]`
        Sizes and limits of what scores spans; those of Lee et al. by default. Its `dropout` is also
        that of the encoder's output, the same for all tokens of a sentence.
    lexical_dropout : `float`, optional (default = `0.5`)
        On the words, not on ELMo, which has its own.
    max_training_sentences : `int`, optional (default = `50`)
        Of a longer document, training reads so many sentences at random, which follow one another.
    regularizer : `Optional[RegularizerApplicator]`
        The paper's λ.
    serialization_dir : `Optional[str]`
        Given by AllenNLP.
    """

    default_predictor = "elmo-coref"

    def __init__(
        self,
        vocab: Vocabulary,
        text_field_embedder: TextFieldEmbedder,
        encoder: Lazy[Seq2SeqEncoder],
        placement: Optional[Placement] = None,
        scoring: Optional[ScoringSettings] = None,
        lexical_dropout: float = 0.5,
        max_training_sentences: int = 50,
        regularizer: Optional[RegularizerApplicator] = None,
        serialization_dir: Optional[str] = None,
    ) -> None:
        super().__init__(vocab, regularizer, serialization_dir)
        self.text_field_embedder = text_field_embedder
        self.placement = placement or Nowhere()
        embedded_dim = text_field_embedder.get_output_dim()
        self.encoder = encoder.construct(input_size=embedded_dim + self.placement.input_dim)
        encoded_dim = self.encoder.get_output_dim() + self.placement.output_dim
        self.scoring = scoring or ScoringSettings()
        self.mention_scorer = MentionScorer(encoded_dim, embedded_dim, self.scoring)
        self.antecedent_scorer = AntecedentScorer(
            encoded_dim,
            embedded_dim + self.scoring.feature_dim,
            vocab.get_vocab_size(GENRES),
            self.scoring,
        )
        self.lexical_dropout = torch.nn.Dropout(lexical_dropout)
        self.dropout = InputVariationalDropout(self.scoring.dropout)
        self.max_training_sentences = max_training_sentences
        self.metric = CorefScores()

    @overrides(check_signature=False)
    def forward(
        self,
        sentences: TextFieldTensors,
        speakers: torch.Tensor,
        genre: torch.Tensor,
        metadata: List[Dict[str, Any]],
        gold_mentions: Optional[torch.Tensor] = None,
    ) -> Dict[str, Any]:
        """
        # Parameters

        sentences : `TextFieldTensors`
            A list of texts per document.
        speakers : `torch.Tensor`
            Shape `(batch_size, num_document_tokens)`. The number of each token's speaker.
        genre : `torch.Tensor`
            Shape `(batch_size,)`.
        metadata : `List[Dict[str, Any]]`
            What `CorefReader` says of each document.
        gold_mentions : `Optional[torch.Tensor]`
            Shape `(batch_size, num_mentions, 3)`. First token, last token and cluster, -1 at
            padding.

        # Returns

        `Dict[str, Any]`
            `loss` where there are gold mentions: summed over the spans of a document, averaged over
            documents. Outside training `clusters`, for each document a list of lists of first and
            last tokens; `top_spans`, for each document the first and last tokens of the spans that
            were kept, shape `(num_kept, 2)`; and the metadata.
        """
        require_labels(self, gold_mentions, _LABELS)
        # Shape: (batch_size, num_sentences)
        lengths = get_text_field_mask(sentences, num_wrapping_dims=1).sum(dim=-1)
        is_read = self._chosen_sentences(lengths)
        tokens = self._encode(sentences, is_read)
        gold = [None] * len(metadata) if gold_mentions is None else gold_mentions
        # Scores are sums of many large products: half precision is for what comes before.
        with torch.autocast(lengths.device.type, enabled=False):
            documents = self._documents(tokens, lengths, is_read, speakers, genre)
            linked = [self._link(*pair) for pair in zip(documents, gold)]
        outputs: Dict[str, Any] = {"metadata": metadata}
        if gold_mentions is not None:
            outputs["loss"] = torch.stack([document_loss for document_loss, _ in linked]).mean()
        if not self.training:
            outputs["top_spans"] = [_pairs(document.places) for document in documents]
            outputs["clusters"] = [
                [[spans[which] for which in cluster] for cluster in clusters_from(antecedents)]
                for spans, (_, antecedents) in zip(outputs["top_spans"], linked)
            ]
            self._score(outputs)
        return outputs

    def _documents(
        self,
        tokens: Tuple[torch.Tensor, torch.Tensor],
        lengths: torch.Tensor,
        is_read: torch.Tensor,
        speakers: torch.Tensor,
        genre: torch.Tensor,
    ) -> List[_Document]:
        """Chooses the spans of each document; what `_encode` gives, and where its tokens are."""
        # Positions in these go through the documents of the batch.
        spans = spans_within(lengths[is_read], self.scoring.max_span_width)
        scores, vectors = self.mention_scorer(*tokens, spans)
        stops = (lengths * is_read).sum(dim=1).cumsum(dim=0)
        span_stops = torch.searchsorted(spans.starts, stops)
        # Tokens of a document before those that are read.
        skipped = (lengths * (is_read.cumsum(dim=1) == 0)).sum(dim=1)
        documents = []
        start = span_start = 0
        rows = zip(stops.tolist(), span_stops.tolist(), skipped.tolist())
        for number, (stop, span_stop, num_skipped) in enumerate(rows):
            candidates = slice(span_start, span_stop)
            num_kept = max(1, int(self.scoring.spans_per_word * (stop - start)))
            chosen = best_spans(spans.chosen(candidates), scores[candidates].detach(), num_kept)
            chosen += span_start
            found = spans.chosen(chosen)
            places = Spans(*(positions - start + num_skipped for positions in found))
            others, said_by = vectors.heads_and_widths(chosen), speakers[number][places.starts]
            kept = KeptSpans(tokens[0], *found, others, scores[chosen], said_by, genre[number])
            documents.append(_Document(kept, places))
            start, span_start = stop, span_stop
        return documents

    def _chosen_sentences(self, lengths: torch.Tensor) -> torch.Tensor:
        """Which sentences are read, from and to shape `(batch_size, num_sentences)`."""
        real = lengths > 0
        if not self.training:
            return real
        most = self.max_training_sentences
        surplus = (real.sum(dim=1, keepdim=True) - most).clamp(min=0)
        first = (torch.rand(surplus.shape, device=real.device) * (surplus + 1)).long()
        numbers = torch.arange(real.size(1), device=real.device)
        return real & (numbers >= first) & (numbers < first + most)

    def _encode(
        self, sentences: TextFieldTensors, is_read: torch.Tensor
    ) -> Tuple[torch.Tensor, torch.Tensor]:
        """
        The tokens of all documents one after another, encoded and embedded: shapes
        `(num_tokens, encoded_dim)` and `(num_tokens, embedded_dim)`.
        """
        # Sentences of all documents are one batch.
        tokens = {
            indexer: {name: tensor[is_read] for name, tensor in tensors.items()}
            for indexer, tensors in sentences.items()
        }
        mask = get_text_field_mask(tokens)
        text = self.placement(tokens)
        embedded = self.lexical_dropout(self.text_field_embedder(text.words))
        encoded = self.encoder(text.at_input(embedded), mask)
        # Shape: (number of sentences, num_tokens, encoded_dim)
        encoded = text.at_output(self.dropout(encoded))
        dtype = self.mention_scorer.width_embeddings.dtype
        return encoded[mask].to(dtype), embedded[mask].to(dtype)

    def _link(
        self, document: _Document, mentions: Optional[torch.Tensor]
    ) -> Tuple[torch.Tensor, torch.Tensor]:
        """The loss, 0 without gold mentions, and, outside training, each span's antecedent."""
        gold = None if mentions is None else _gold_clusters(document.places, mentions)
        total = document.kept.scores.new_zeros(())
        antecedents = [torch.empty(0, dtype=torch.long, device=total.device)]
        for block in self.antecedent_scorer(document.kept):
            if gold is not None:
                total = total + loss(block, gold)
            if not self.training:
                antecedents.append(best_antecedents(block))
        return total, torch.cat(antecedents)

    def _score(self, outputs: Dict[str, Any]) -> None:
        documents = zip(outputs["clusters"], outputs["metadata"], outputs["top_spans"])
        for clusters, metadata, spans in documents:
            if metadata["clusters"] is not None:
                self.metric(clusters, metadata["clusters"], spans)

    @overrides
    def get_metrics(self, reset: bool = False) -> Dict[str, float]:
        """
        Outside training: precision, recall and F1 of the CoNLL score (`coref_f1`), of what it is
        the mean of and of CEAFm, and `mention_recall`; until a corpus is finished, `coref_f1`
        alone. Nothing where the corpus has no gold clusters.
        """
        if self.training:
            return {}
        metrics = self.metric.get_metric(reset)
        return metrics if reset or not metrics else {"coref_f1": metrics["coref_f1"]}


def _gold_clusters(places: Spans, mentions: torch.Tensor) -> torch.Tensor:
    """
    The cluster of each span, -1 for none: shape `(num_spans,)`. Mentions have shape
    `(num_mentions, 3)`.
    """
    starts, ends, clusters = mentions[mentions[:, 2] >= 0].unbind(dim=1)
    # Shape: (num_spans, num_mentions)
    same = (places.starts.unsqueeze(1) == starts) & (places.ends.unsqueeze(1) == ends)
    # A column more: the maximum of none is an error.
    return pad(torch.where(same, clusters, -1), (0, 1), value=-1).amax(dim=1)


def _pairs(places: Spans) -> List[Tuple[int, int]]:
    return list(zip(places.starts.tolist(), places.ends.tolist()))
