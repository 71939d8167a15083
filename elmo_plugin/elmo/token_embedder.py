from allennlp.modules import TokenEmbedder

from elmo_plugin.elmo.elmo import Elmo


@TokenEmbedder.register("elmo-token-embedder")
class ElmoTokenEmbedder(Elmo, TokenEmbedder):
    """
    `Elmo` as a token embedder of any AllenNLP model. See `Elmo` for its parameters.

    A learning rate for a `trainable` biLM is set with
    `optimizer: {parameter_groups: [[['bilm'], {lr: 1e-5}]]}`, the paper's λ with
    `regularizer: {regexes: [['layer_scores', {type: 'l2', alpha: 0.001}]]}`.
    """
