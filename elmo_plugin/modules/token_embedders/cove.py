from typing import Optional

import torch
from allennlp.modules import TokenEmbedder
from overrides import overrides

from elmo_plugin.modules.cove_files import CoveEncoder, read_cove_encoder
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.weights import stored_state


@TokenEmbedder.register("elmo-cove")
class CoveTokenEmbedder(TokenEmbedder):
    """
    CoVe, the context vectors of [McCann et al. (2017)](https://arxiv.org/abs/1708.00107): a layer
    of a translation model's encoder over word vectors. Neither is trained further.

    The vectors of a sentence depend on all of its words and on no other sentence. A trained archive
    contains the encoder, so it does not need `weight_file`.

    # Parameters

    word_vectors : `TokenEmbedder`
        The vectors that the encoder reads, for ids of a `single_id` indexer. They must not be
        trained: `{type: 'elmo-word-vectors', trainable: false, zero_unknown: true, …}`.
    weight_file : `str`
        The encoder's state dict, see `read_cove_encoder`.
    layer : `int`
        1 or 2. CoVe is the second layer.
    with_words : `bool`
        Whether to put the word vectors before CoVe, as the authors' task models do.
    serialization_dir : `Optional[str]`
        Set by AllenNLP: the folder into which it has unpacked an archive.
    """

    def __init__(
        self,
        word_vectors: TokenEmbedder,
        weight_file: str,
        layer: int = 2,
        with_words: bool = False,
        serialization_dir: Optional[str] = None,
    ) -> None:
        super().__init__()
        if layer not in (1, 2):
            raise ConfigurationError(f"elmo-cove: expected `layer` 1 or 2, found {layer!r}.")
        if any(parameter.requires_grad for parameter in word_vectors.parameters()):
            raise ConfigurationError(
                "elmo-cove: expected `word_vectors` that are not trained, because the encoder was "
                "trained on fixed ones. Set `trainable: false` in them."
            )
        width = word_vectors.get_output_dim()
        # The attribute's name is part of state dicts; `_encoder` looks for it.
        self.cove_encoder = _encoder(weight_file, serialization_dir, width)
        self.word_vectors = word_vectors
        self.layer = layer
        self.with_words = with_words
        if width != self.cove_encoder.input_dim:
            raise ConfigurationError(
                f"elmo-cove: {weight_file} reads word vectors {self.cove_encoder.input_dim} wide, "
                f"and `word_vectors` are {width} wide. Use those with which it was trained: set "
                "ELMO_GLOVE and ELMO_COVE to files that belong together."
            )

    @overrides
    def get_output_dim(self) -> int:
        words = self.word_vectors.get_output_dim() if self.with_words else 0
        return words + self.cove_encoder.output_dim

    @overrides(check_signature=False)
    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Maps ids `(…, num_tokens)` to `(…, num_tokens, output_dim)`; 0 at padding, at the end."""
        # Shape: (num_sentences, num_tokens)
        ids = tokens.flatten(end_dim=-2)
        # Under autocast, PyTorch's LSTM would store its states in bfloat16 too.
        with torch.no_grad(), torch.autocast(ids.device.type, enabled=False):
            words = self.word_vectors(ids)
            vectors = self.cove_encoder(words, ids != 0)[self.layer - 1]
        if self.with_words:
            vectors = torch.cat([words, vectors], dim=-1)
        return vectors.view(*tokens.shape, vectors.size(-1))


def _encoder(weight_file: str, serialization_dir: Optional[str], input_dim: int) -> CoveEncoder:
    """
    Reads the encoder. If AllenNLP is about to load a trained model (see `stored_state`), makes an
    empty one as wide as the model's instead, because the file may have changed since.
    """
    for name, value in (stored_state(serialization_dir, weight_file) or {}).items():
        if name.endswith("cove_encoder.layers.0.weight_hh_l0"):
            return CoveEncoder(input_dim, value.size(1))
    return read_cove_encoder(weight_file)
