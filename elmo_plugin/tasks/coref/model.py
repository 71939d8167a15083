from typing import Any, Dict, List, Optional, Tuple

import torch
from allennlp.common import Lazy
from allennlp.data import TextFieldTensors
from allennlp.models import Model
from allennlp.modules import InputVariationalDropout, Seq2SeqEncoder
from allennlp.nn.util import get_text_field_mask
from overrides import overrides
from torch.nn.functional import pad

from elmo_plugin.tasks.coref.antecedents import (
    AntecedentScorer,
    TopSpans,
    best_antecedents,
    clusters_from,
    loss,
)
from elmo_plugin.tasks.coref.mentions import (
    MentionScorer,
    ScoringSettings,
    Spans,
    enumerate_spans,
    prune_spans,
)
from elmo_plugin.tasks.coref.metric import CorefScores
from elmo_plugin.tasks.coref.reader import GENRES
from elmo_plugin.tasks.model import TaskModel
from elmo_plugin.util.errors import check_least


@Model.register("elmo-coref")
class CoreferenceResolver(TaskModel):
    """
    The end-to-end model of [Lee et al. (2017)](https://aclanthology.org/D17-1018/). It scores all
    spans up to a maximum width as mentions, keeps the best, and links each of these to an earlier
    one, its antecedent, or to none. Linked spans form a cluster. Sentences are encoded separately.
    ELMo is concatenated with the words, the encoder's output, or both, but not in the head vector
    of a span, which is a weighted mean of word embeddings.

    # Parameters

    scoring : `Optional[ScoringSettings]`
        For the span scorers. Its `dropout` is also on the encoder's output, one mask per sentence.
    lexical_dropout : `float`
        On the word embeddings, not on ELMo, which has its own.
    max_training_sentences : `int`
        In training, a longer document is cut to this many consecutive sentences, at random.
    """

    default_predictor = "elmo-coref"
    needed_labels = "mentions (the last column of CoNLL-2012)"
    running_metrics = ("coref_f1",)

    def __init__(
        self,
        encoder: Lazy[Seq2SeqEncoder],
        scoring: Optional[ScoringSettings] = None,
        lexical_dropout: float = 0.5,
        max_training_sentences: int = 50,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_least(1, max_training_sentences=max_training_sentences)
        embedded_dim = self.text_field_embedder.get_output_dim()
        self.encoder = encoder.construct(input_size=self.input_dim)
        encoded_dim = self.encoder.get_output_dim() + self.placement.output_dim
        self.scoring = scoring or ScoringSettings()
        self.mention_scorer = MentionScorer(encoded_dim, embedded_dim, self.scoring)
        self.antecedent_scorer = AntecedentScorer(
            encoded_dim,
            embedded_dim + self.scoring.feature_dim,
            self.vocab.get_vocab_size(GENRES),
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
        `speakers`, shape `(batch_size, num_document_tokens)`, numbers each token's speaker.
        `gold_mentions`, shape `(batch_size, num_mentions, 3)`, holds first token, last token and
        cluster, -1 at padding.

        Returns `metadata`; with gold mentions `loss`, summed over a document's spans, averaged over
        documents; outside training `clusters` and the kept `top_spans`, as first and last tokens.
        """
        # Shape: (batch_size, num_sentences)
        lengths = get_text_field_mask(sentences, num_wrapping_dims=1).sum(dim=-1)
        is_read = self._chosen_sentences(lengths)
        tokens = self._encode(sentences, is_read)
        gold = [None] * len(metadata) if gold_mentions is None else gold_mentions
        # Sums of many large products need float32: autocast is for embedder and encoder only.
        with torch.autocast(lengths.device.type, enabled=False):
            documents = self._documents(tokens, lengths, is_read, speakers, genre)
            linked = [self._link(*pair) for pair in zip(documents, gold)]
        outputs: Dict[str, Any] = {"metadata": metadata}
        if gold_mentions is not None:
            outputs["loss"] = torch.stack([document_loss for document_loss, _ in linked]).mean()
        if not self.training:
            outputs["top_spans"] = [_pairs(top_spans.positions()) for top_spans in documents]
            outputs["clusters"] = [
                [[spans[which] for which in cluster] for cluster in clusters_from(antecedents)]
                for spans, (_, antecedents) in zip(outputs["top_spans"], linked)
            ]
            gold_clusters = [document["clusters"] for document in metadata]
            self.score(outputs["clusters"], gold_clusters, outputs["top_spans"])
        return outputs

    def _documents(
        self,
        tokens: Tuple[torch.Tensor, torch.Tensor],
        lengths: torch.Tensor,
        is_read: torch.Tensor,
        speakers: torch.Tensor,
        genre: torch.Tensor,
    ) -> List[TopSpans]:
        """Prunes the spans of each document. `tokens` comes from `_encode`."""
        # Positions in `spans` count the tokens of all documents of the batch.
        spans = enumerate_spans(lengths[is_read], self.scoring.max_span_width)
        scores, vectors = self.mention_scorer(*tokens, spans)
        stops = (lengths * is_read).sum(dim=1).cumsum(dim=0)
        span_stops = torch.searchsorted(spans.starts, stops)
        # Number of tokens of each document before the first sentence that is read.
        skipped = (lengths * (is_read.cumsum(dim=1) == 0)).sum(dim=1)
        documents = []
        start = span_start = 0
        rows = zip(stops.tolist(), span_stops.tolist(), skipped.tolist())
        for number, (stop, span_stop, num_skipped) in enumerate(rows):
            candidates = slice(span_start, span_stop)
            num_top_spans = max(1, int(self.scoring.spans_per_word * (stop - start)))
            own = spans.select(candidates)
            chosen = span_start + prune_spans(own, scores[candidates].detach(), num_top_spans)
            found, offset = spans.select(chosen), start - num_skipped
            features, ids = vectors.heads_and_widths(chosen), speakers[number]
            parts = (features, scores[chosen], ids[found.starts - offset], genre[number], offset)
            documents.append(TopSpans(tokens[0], *found, *parts))
            start, span_start = stop, span_stop
        return documents

    def _chosen_sentences(self, lengths: torch.Tensor) -> torch.Tensor:
        """Mask of the sentences to read; both have shape `(batch_size, num_sentences)`."""
        real = lengths > 0
        if not self.training:
            return real
        limit = self.max_training_sentences
        surplus = (real.sum(dim=1, keepdim=True) - limit).clamp(min=0)
        first = (torch.rand(surplus.shape, device=real.device) * (surplus + 1)).long()
        numbers = torch.arange(real.size(1), device=real.device)
        return real & (numbers >= first) & (numbers < first + limit)

    def _encode(
        self, sentences: TextFieldTensors, is_read: torch.Tensor
    ) -> Tuple[torch.Tensor, torch.Tensor]:
        """Encoded and embedded tokens of all documents, concatenated: `(num_tokens, ..._dim)`."""
        # The sentences of all documents form one batch.
        tokens = {
            indexer: {name: tensor[is_read] for name, tensor in tensors.items()}
            for indexer, tensors in sentences.items()
        }
        mask = get_text_field_mask(tokens)
        text = self.placement(tokens)
        embedded = self.lexical_dropout(self.embed_words(text.words))
        vectors = text.at_input(embedded)
        if not self.training:
            # Interpreters see one text. Shape: (1, num_sentences * num_tokens, input_dim)
            document = vectors.flatten(0, 1).unsqueeze(0)
            vectors = self.interpreted(document, mask.view(1, -1)).view_as(vectors)
            embedded = vectors[..., : embedded.size(-1)]
        encoded = self.encoder(vectors, mask)
        # Shape: (num_sentences, num_tokens, encoded_dim)
        encoded = text.at_output(self.dropout(encoded))
        dtype = self.mention_scorer.width_embeddings.dtype
        return encoded[mask].to(dtype), embedded[mask].to(dtype)

    def _link(
        self, top_spans: TopSpans, mentions: Optional[torch.Tensor]
    ) -> Tuple[torch.Tensor, torch.Tensor]:
        """The loss, 0 without gold mentions, and each span's antecedent, empty in training."""
        gold = None if mentions is None else _gold_clusters(top_spans.positions(), mentions)
        total = top_spans.scores.new_zeros(())
        antecedents = [torch.empty(0, dtype=torch.long, device=total.device)]
        for block in self.antecedent_scorer.blocks(top_spans):
            if gold is not None:
                total = total + loss(block, gold)
            if not self.training:
                antecedents.append(best_antecedents(block))
        return total, torch.cat(antecedents)


def _gold_clusters(spans: Spans, mentions: torch.Tensor) -> torch.Tensor:
    """The cluster of each span, -1 for none. Mentions have the shape `(num_mentions, 3)`."""
    starts, ends, clusters = mentions[mentions[:, 2] >= 0].unbind(dim=1)
    # Shape: (num_spans, num_mentions)
    same = (spans.starts.unsqueeze(1) == starts) & (spans.ends.unsqueeze(1) == ends)
    # One more column, because `amax` needs at least one.
    return pad(torch.where(same, clusters, -1), (0, 1), value=-1).amax(dim=1)


def _pairs(spans: Spans) -> List[Tuple[int, int]]:
    return list(zip(spans.starts.tolist(), spans.ends.tolist()))
