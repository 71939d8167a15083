"""Rescales the layers of a language model without changing what it predicts."""

import copy
from dataclasses import replace
from typing import Dict, Optional, Sequence, Tuple

import torch

from elmo_plugin.bilm.bilm import Bilm
from elmo_plugin.bilm.files.softmax import SoftmaxWeights
from elmo_plugin.bilm.stored_options import STORED_OPTIONS
from elmo_plugin.util.errors import ConfigurationError

_BATCH_SIZE = 32


def unit_layers(
    bilm: Bilm, softmax: Optional[SoftmaxWeights], sentences: Sequence[Sequence[str]]
) -> Tuple[Bilm, Optional[SoftmaxWeights], Tuple[float, float]]:
    """
    Rescales the layers of a language model to a root mean square of 1 on `sentences`, and also
    returns the root mean squares of the token layer and of the recurrent layers before. Training
    can lead to any magnitude, because the softmax compensates for it, but small layers can slow
    down task models.

    One factor scales the token layer, and one all recurrent layers with `proj_clip`. The matrices
    that read these layers are divided by it, so words keep their probabilities, except for
    rounding. Raises `ConfigurationError` if the LSTMs or the character encoder have no projection
    to scale, or there are no words whose layers are not zero.
    """
    options = bilm.options
    cnn = options.char_cnn
    if options.lstm.projection_dim is None or (cnn is not None and not cnn.projection):
        raise ConfigurationError(
            "Expected a biLM whose token layer and LSTMs have projections, whose weights can be "
            "scaled; `lstm.projection_dim` is null or `char_cnn.projection` false."
        )
    magnitudes = _magnitudes(bilm, sentences)
    token_factor, lstm_factor = (1.0 / magnitude for magnitude in magnitudes)
    clip = options.lstm.proj_clip
    clip = None if clip is None else clip * lstm_factor
    source = copy.deepcopy(options.source)
    source["lstm"]["proj_clip"] = clip
    scaled = Bilm(replace(options, lstm=replace(options.lstm, proj_clip=clip), source=source))
    state = _scaled(bilm, token_factor, lstm_factor)
    scaled.load_state_dict({**state, STORED_OPTIONS: scaled.options_json})
    if softmax is not None:
        softmax = replace(softmax, weight=softmax.weight / lstm_factor)
    return scaled.eval(), softmax, magnitudes


def _magnitudes(bilm: Bilm, sentences: Sequence[Sequence[str]]) -> Tuple[float, float]:
    """The root mean squares of the token layer, and of the recurrent layers together."""
    squares = torch.zeros(bilm.num_layers, dtype=torch.float64)
    num_words = 0
    # Sentences without words would be layers of `<S>` and `</S>` only.
    sentences = [words for words in sentences if len(words)]
    for first in range(0, len(sentences), _BATCH_SIZE):
        ids = bilm.characters.batch_ids(sentences[first : first + _BATCH_SIZE])
        with torch.inference_mode():
            output = bilm(ids)
        # Shape: (num_layers, num_words, output_dim)
        layers = output.layers[:, output.mask].double()
        squares += layers.square().mean(dim=-1).sum(dim=-1)
        num_words += layers.size(1)
    means = (squares / num_words).tolist()
    token, recurrent = means[0], sum(means[1:]) / (len(means) - 1)
    if not (token > 0.0 and recurrent > 0.0):
        raise ConfigurationError("Expected words whose layers are not zero, found none.")
    return token**0.5, recurrent**0.5


def _scaled(bilm: Bilm, token_factor: float, lstm_factor: float) -> Dict[str, torch.Tensor]:
    # The module that outputs the token layer.
    last = "embedding" if bilm.options.char_cnn is None else "projection"
    scaled = {}
    for name, value in bilm.state_dict().items():
        factor = 1.0
        if name.startswith(f"character_encoder.{last}."):
            factor = token_factor
        elif name.endswith("projection.weight"):
            factor = lstm_factor
        elif name.endswith("recurrent.weight"):
            factor = 1.0 / lstm_factor
        elif name.endswith("input.weight"):
            is_first = name.split(".")[-3] == "0"
            factor = 1.0 / (token_factor if is_first else lstm_factor)
        scaled[name] = value if factor == 1.0 else value * factor
    return scaled
