from typing import Any

from allennlp.common import Params
from allennlp.modules import TokenEmbedder
from overrides import overrides

from elmo_plugin.elmo.elmo import Elmo
from elmo_plugin.util.errors import ConfigurationError

# Settings of AllenNLP's embedder, and what to write here.
_RENAMED = {
    "do_layer_norm": '`layer_norm`, whose "batch" normalises as AllenNLP',
    "requires_grad": "`trainable`",
    "scalar_mix_parameters": "`fixed_weights`, which are the softmax of these scores",
    "projection_dim": "nothing: the vectors have the width of the biLM, so project them later",
    "vocab_to_cache": "nothing: each distinct word of a batch is computed once",
}


@TokenEmbedder.register("elmo-token-embedder")
class ElmoTokenEmbedder(Elmo, TokenEmbedder):
    """
    `Elmo` as a token embedder of any AllenNLP model. See `Elmo` for its parameters.

    A learning rate for a `trainable` biLM is set with
    `optimizer: {parameter_groups: [[['bilm'], {lr: 1e-5}]]}`, the paper's λ with
    `regularizer: {regexes: [['layer_scores', {type: 'l2', alpha: 0.001}]]}`.
    """

    @classmethod
    @overrides(check_signature=False)
    def from_params(cls, params: Params, **extras: Any) -> "ElmoTokenEmbedder":
        for name in params:
            if name in _RENAMED:
                raise ConfigurationError(
                    f"elmo-token-embedder: `{name}` is a setting of AllenNLP's own embedder. Write "
                    f"{_RENAMED[name]}."
                )
        return super().from_params(params, **extras)
