from typing import Any, Dict, List, Optional, Tuple

import torch
from allennlp.common.util import END_SYMBOL, START_SYMBOL
from allennlp.data import TextFieldTensors
from allennlp.models import Model
from allennlp.nn.beam_search import BeamSearch
from allennlp.nn.util import get_text_field_mask, get_token_ids_from_text_field_tensors
from overrides import overrides

from elmo_plugin.modules.cove_encoder import CoveEncoder
from elmo_plugin.tasks.model import TaskModel, at_least_float32
from elmo_plugin.tasks.translation.decoder import AttentionalDecoder, DecoderState
from elmo_plugin.tasks.translation.metric import TranslationScores
from elmo_plugin.tasks.translation.reader import TARGET_WORDS


@Model.register("elmo-translation")
class TranslationModel(TaskModel):
    """
    Translation with attention, section 3 of
    [McCann et al. (2017)](https://arxiv.org/abs/1708.00107): a bidirectional LSTM of two layers
    reads word vectors, and a unidirectional LSTM of two layers with attention writes the
    translation. The encoder is CoVe; `elmo export-cove` writes it as a file for `elmo-cove`.

    The decoder's initial hidden states are linear functions of the encoder's final ones, layer by
    layer. Translations come from a beam search, which never produces the unknown word.

    # Parameters

    hidden_size : `int`, optional (default = `300`)
        Width of each direction of the encoder.
    decoder_dim : `int`, optional (default = `300`)
        Width of the decoder's LSTM.
    target_embedding_dim : `int`, optional (default = `300`)
        Width of the embeddings of target words.
    dropout : `float`, optional (default = `0.2`)
        On the inputs of all LSTM layers, the encoder's output and the attentional vectors.
    beam_size : `int`, optional (default = `5`)
    max_decoding_steps : `int`, optional (default = `50`)
        Number of words after which a translation is cut off.
    **kwargs : `Any`
        Those of `TaskModel`.
    """

    default_predictor = "elmo-translation"
    needed_labels = "translations (the file of the target language)"

    def __init__(
        self,
        hidden_size: int = 300,
        decoder_dim: int = 300,
        target_embedding_dim: int = 300,
        dropout: float = 0.2,
        beam_size: int = 5,
        max_decoding_steps: int = 50,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        # Named so that its parameters are found, see `stored_cove_encoder`.
        self.cove_encoder = CoveEncoder(self.input_dim, hidden_size, dropout)
        num_layers = len(self.cove_encoder.forward_layers)
        self.bridges = torch.nn.ModuleList(
            torch.nn.Linear(self.cove_encoder.output_dim, decoder_dim) for _ in range(num_layers)
        )
        self.decoder = AttentionalDecoder(
            num_words=self.vocab.get_vocab_size(TARGET_WORDS),
            embedding_dim=target_embedding_dim,
            decoder_dim=decoder_dim,
            encoded_dim=self.cove_encoder.output_dim + self.placement.output_dim,
            num_layers=num_layers,
            dropout=dropout,
        )
        self.dropout = torch.nn.Dropout(dropout)
        self._start, self._end = (
            self.vocab.get_token_index(symbol, TARGET_WORDS)
            for symbol in (START_SYMBOL, END_SYMBOL)
        )
        self._search = BeamSearch(self._end, max_decoding_steps, beam_size)
        self.metric = TranslationScores()

    @overrides(check_signature=False)
    def forward(
        self,
        source: TextFieldTensors,
        metadata: List[Dict[str, Any]],
        target: Optional[TextFieldTensors] = None,
    ) -> Dict[str, Any]:
        """
        # Parameters

        source : `TextFieldTensors`
        metadata : `List[Dict[str, Any]]`
            From `TranslationReader`.
        target : `Optional[TextFieldTensors]`
            The translations, with their marks of start and end.

        # Returns

        `Dict[str, Any]`
            `metadata`; except in training `predicted_ids`, a list of word ids per sentence; and
            `loss`, the negative log-likelihood of a translation, if there are translations.
        """
        outputs: Dict[str, Any] = {"metadata": metadata}
        encoded, mask, state = self._encode(source)
        if target is not None:
            outputs["loss"] = self._loss(target, state, encoded, mask)
        if not self.training:
            outputs["predicted_ids"] = self._translate(state, encoded, mask)
            texts = self.make_output_human_readable(outputs)["translation"]
            self.score(texts, [each["target"] for each in metadata])
        return outputs

    def _encode(self, source: TextFieldTensors) -> Tuple[torch.Tensor, torch.Tensor, DecoderState]:
        """The encoded source, its mask, and the decoder's initial state."""
        mask = get_text_field_mask(source)
        text, embedded = self.embed(source)
        # Shape: (num_layers, batch_size, num_tokens, 2 * hidden_size)
        layers = self.cove_encoder(embedded, mask)
        forward, backward = layers.chunk(2, dim=-1)
        last = (mask.sum(dim=1) - 1).clamp(min=0)
        rows = torch.arange(len(mask), device=mask.device)
        # Shape: (num_layers, batch_size, 2 * hidden_size)
        ends = torch.cat([forward[:, rows, last], backward[:, :, 0]], dim=-1)
        hidden = [bridge(end) for bridge, end in zip(self.bridges, ends)]
        encoded = text.at_output(self.dropout(layers[-1]))
        return encoded, mask, self.decoder.initial_state(torch.stack(hidden, dim=1))

    def _loss(
        self,
        target: TextFieldTensors,
        state: DecoderState,
        encoded: torch.Tensor,
        mask: torch.Tensor,
    ) -> torch.Tensor:
        """Negative log-likelihood, summed over words and averaged over sentences."""
        word_ids = get_token_ids_from_text_field_tensors(target)
        is_word = get_text_field_mask(target)[:, 1:]
        vectors = self.decoder(word_ids[:, :-1], state, encoded, mask)
        # Shape: (num_words_of_the_batch, target_vocabulary_size)
        logits = at_least_float32(self.decoder.output(vectors[is_word]))
        nats = torch.nn.functional.cross_entropy(logits, word_ids[:, 1:][is_word], reduction="sum")
        if not self.training:
            self.metric.add_loss(nats.item(), len(logits))
        return nats / len(word_ids)

    @torch.no_grad()
    def _translate(
        self, state: DecoderState, encoded: torch.Tensor, mask: torch.Tensor
    ) -> List[List[int]]:
        start = torch.full((len(mask),), self._start, device=mask.device)
        first = {**state._asdict(), "encoded": encoded, "mask": mask}
        # Shape: (batch_size, beam_size, num_steps), the most probable first
        predicted, _ = self._search.search(start, first, self._next_words)
        translations = predicted[:, 0].tolist()
        return [ids[: ids.index(self._end)] if self._end in ids else ids for ids in translations]

    def _next_words(
        self, word_ids: torch.Tensor, search_state: Dict[str, torch.Tensor]
    ) -> Tuple[torch.Tensor, Dict[str, torch.Tensor]]:
        """A step of the beam search: log-probabilities of words, and the next state."""
        state = DecoderState(*(search_state[name] for name in DecoderState._fields))
        embedded = self.decoder.embedding(word_ids)
        state = self.decoder.step(embedded, state, search_state["encoded"], search_state["mask"])
        scores = at_least_float32(self.decoder.output(state.attentional)).log_softmax(dim=-1)
        # Padding, the unknown word and the start symbol are not words.
        scores[:, [0, 1, self._start]] = torch.finfo(scores.dtype).min
        return scores, {**search_state, **state._asdict()}

    @overrides(check_signature=False)
    def make_output_human_readable(self, output_dict: Dict[str, Any]) -> Dict[str, Any]:
        """Adds `translation`, the words of each translation joined by spaces."""
        names = self.vocab.get_index_to_token_vocabulary(TARGET_WORDS)
        texts = [" ".join(names[index] for index in ids) for ids in output_dict["predicted_ids"]]
        return {**output_dict, "translation": texts}
