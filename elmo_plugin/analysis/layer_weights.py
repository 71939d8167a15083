"""How trained models mix the layers of their biLM."""

import os
from dataclasses import dataclass
from typing import Any, Dict, List, Union

import torch

from elmo_plugin.bilm.files.trained import TrainedModel, stored_options_by_prefix
from elmo_plugin.bilm.options import BilmOptions
from elmo_plugin.elmo.elmo import chosen_layers
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.weights import with_prefix


@dataclass(frozen=True)
class LayerWeights:
    """How a trained model mixes the layers of its biLM (equation 1, figure 2)."""

    archive: str
    #: The registered name of the model.
    model: str
    #: `input` or `output` of the task; the name of the mix in models without a `Placement`.
    at: str
    #: One weight per layer, the token layer first. They sum to 1 unless they are fixed.
    #: A layer outside the mix has weight 0.
    weights: List[float]
    gamma: float


def layer_weights(archive: Union[str, os.PathLike]) -> List[LayerWeights]:
    """The mixes of a trained model. Raises as `TrainedModel.read` does, and if there are none."""
    found = stored_layer_weights(TrainedModel.read(archive))
    if not found:
        raise ConfigurationError(
            f"{archive} has no layer weights: expected a model that was trained with ELMo."
        )
    return found


def stored_layer_weights(model: TrainedModel) -> List[LayerWeights]:
    """Like `layer_weights`, for a model already read. Empty if it was trained without ELMo."""
    bilms = stored_options_by_prefix(model.parameters)
    return [
        _of_mix(model, name.removesuffix(kind), bilms[bilm])
        for name in model.parameters
        # The entries of a `ScalarMix`: learned scores or fixed weights.
        for kind in ("layer_scores", "fixed_weights")
        # A model may also mix layers that do not belong to a biLM.
        if name.split(".")[-1] == kind and (bilm := f"{name.rpartition('mixes.')[0]}bilm.") in bilms
    ]


def _of_mix(model: TrainedModel, prefix: str, bilm: Dict[str, Any]) -> LayerWeights:
    """`prefix` is the mix's place in the state dict, such as `placement.elmo.mixes.0.`."""
    # A packed archive has them in float16.
    values = {name: part.float() for name, part in with_prefix(prefix, model.parameters).items()}
    if "fixed_weights" in values:
        mixed, gamma = values["fixed_weights"], 1.0
    else:
        mixed, gamma = values["layer_scores"].softmax(dim=0), values["gamma"].item()
    # The name of the `Elmo`; empty if it is the model itself.
    elmo, _, number = f".{prefix}".removesuffix(".").rpartition(".mixes.")
    elmo = elmo.removeprefix(".")
    options = BilmOptions.from_dict(bilm["options"], model.location)
    layers = chosen_layers(_settings(model.config, elmo).get("layers", "all"), options.num_layers)
    if len(layers) != len(mixed):
        raise ConfigurationError(
            f"{model.location}: its configuration does not say which layers its mix of "
            f"{len(mixed)} has. If the model is of type `from_archive`, name the archive from "
            "which it was trained."
        )
    weights = torch.zeros(options.num_layers)
    weights[layers] = mixed
    return LayerWeights(
        model.location,
        str(_settings(model.config, "").get("type", "")),
        _place(model.config, elmo, int(number)),
        weights.tolist(),
        gamma,
    )


def _place(config: Dict[str, Any], elmo: str, number: int) -> str:
    placement = _settings(config, elmo.rpartition(".")[0])
    if placement.get("type") != "elmo-placement":
        return f"{elmo}.mixes.{number}".removeprefix(".")
    at = placement.get("at", "input")
    return ("input", "output")[number] if at == "both" else at


def _settings(config: Dict[str, Any], module: str) -> Dict[str, Any]:
    """The settings of the module with this name in the state dict; empty if it has none."""
    settings = config.get("model", {})
    for name in filter(None, module.split(".")):
        # The embedder `words` is `token_embedder_words` in the state dict, but not in settings.
        embedders = settings.get("token_embedders", {})
        settings = settings.get(name) or embedders.get(name.removeprefix("token_embedder_"), {})
    return settings
