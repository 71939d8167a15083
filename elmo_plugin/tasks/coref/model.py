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
        num_tokens = (lengths * is_read).sum(dim=1).tolist()
        tokens = [each.split(num_tokens) for each in self._encode(sentences, is_read)]
        # Number of tokens of each document before the first sentence that is read.
        num_skipped = (lengths * (is_read.cumsum(dim=1) == 0)).sum(dim=1)
        kept, losses, clusters = [], [], []
        # Sums of many large products need float32: autocast is for embedder and encoder only.
        with torch.autocast(lengths.device.type, enabled=False):
            for number, (encoded, embedded) in enumerate(zip(*tokens)):
                top_spans = self._prune(
                    encoded,
                    embedded,
                    lengths[number, is_read[number]],
                    speakers[number, num_skipped[number] :],
                    genre[number],
                )
                gold = None
                if gold_mentions is not None:
                    gold = _gold_clusters(top_spans, gold_mentions[number], num_skipped[number])
                document_loss, antecedents = self._link(top_spans, gold)
                losses.append(document_loss)
                spans = list(zip(top_spans.starts.tolist(), top_spans.ends.tolist()))
                kept.append(spans)
                linked = clusters_from(antecedents)
                clusters.append([[spans[which] for which in cluster] for cluster in linked])
        outputs: Dict[str, Any] = {"metadata": metadata}
        if gold_mentions is not None:
            outputs["loss"] = torch.stack(losses).mean()
        if not self.training:
            outputs.update(top_spans=kept, clusters=clusters)
            self.score(clusters, [document["clusters"] for document in metadata], kept)
        return outputs

    def _prune(
        self,
        encoded: torch.Tensor,
        embedded: torch.Tensor,
        lengths: torch.Tensor,
        speakers: torch.Tensor,
        genre: torch.Tensor,
    ) -> TopSpans:
        """Scores all spans of a document, whose sentences have these lengths; keeps the best."""
        spans = enumerate_spans(lengths, self.scoring.max_span_width)
        scores, vectors = self.mention_scorer(encoded, embedded, spans)
        num_top_spans = max(1, int(self.scoring.spans_per_word * len(encoded)))
        best = prune_spans(spans, scores.detach(), num_top_spans)
        starts, ends = spans.select(best)
        features = vectors.heads_and_widths(best)
        return TopSpans(encoded, starts, ends, features, scores[best], speakers[starts], genre)

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
        self, top_spans: TopSpans, gold: Optional[torch.Tensor]
    ) -> Tuple[torch.Tensor, torch.Tensor]:
        """The loss, 0 without gold clusters, and each span's antecedent, empty in training."""
        total = top_spans.scores.new_zeros(())
        antecedents = [torch.empty(0, dtype=torch.long, device=total.device)]
        for block in self.antecedent_scorer.blocks(top_spans):
            if gold is not None:
                total = total + loss(block, gold)
            if not self.training:
                antecedents.append(best_antecedents(block))
        return total, torch.cat(antecedents)


def _gold_clusters(
    spans: TopSpans, mentions: torch.Tensor, num_skipped: torch.Tensor
) -> torch.Tensor:
    """The cluster of each span, -1 for none. Mentions have the shape `(num_mentions, 3)`."""
    starts, ends, clusters = mentions[mentions[:, 2] >= 0].unbind(dim=1)
    starts, ends = starts - num_skipped, ends - num_skipped
    # Shape: (num_spans, num_mentions)
    same = (spans.starts.unsqueeze(1) == starts) & (spans.ends.unsqueeze(1) == ends)
    # One more column, because `amax` needs at least one.
    return pad(torch.where(same, clusters, -1), (0, 1), value=-1).amax(dim=1)
