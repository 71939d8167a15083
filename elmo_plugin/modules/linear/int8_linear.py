from typing import Any, Callable, Dict, List, Optional

import torch

from elmo_plugin.modules.linear.int8_matrix import Int8Matrix


class Int8Linear(torch.nn.Module):
    """
    A `PackedLinear` that has learned: its weight is an `Int8Matrix`, an eighth of the memory that
    a packed float32 layer takes, and cannot change any more.

    A state dict holds the whole numbers as `weight` and what they are worth as `scale`. One of a
    `PackedLinear` is rounded when it is loaded here, one of this is widened when loaded there.

    # Parameters

    matrix : `Int8Matrix`
        The weight.
    bias : `Optional[torch.nn.Parameter]`
        Shape `(out_features,)`.
    """

    def __init__(self, matrix: Int8Matrix, bias: Optional[torch.nn.Parameter]) -> None:
        super().__init__()
        self.bias = bias
        # Of the matrix, for whoever looks whether weights have changed.
        self.register_buffer("scale", matrix.scale)
        self.matrix = matrix

    @classmethod
    def from_linear(cls, layer: torch.nn.Linear) -> "Int8Linear":
        """A layer with the rounded weight of another."""
        bias = layer.bias
        if bias is not None:
            bias = torch.nn.Parameter(bias.detach().float(), requires_grad=bias.requires_grad)
        return cls(Int8Matrix.rounded(layer.weight), bias)

    @property
    def out_features(self) -> int:
        """Width of the output."""
        return self.matrix.shape[0]

    @property
    def in_features(self) -> int:
        """Width of the input."""
        return self.matrix.shape[1]

    @property
    def weight(self) -> torch.Tensor:
        """
        Shape `(out_features, in_features)`, float32. Where `forward` is the way to multiply with
        it, a stand-in of that shape without numbers, on the device `meta`.
        """
        device = self.scale.device
        if self.matrix.is_packed and not torch.is_autocast_enabled(device.type):
            return torch.empty(self.matrix.shape, device="meta")
        return self.matrix.widened()

    def weight_to_learn(self) -> torch.nn.Parameter:
        """
        # Raises

        `RuntimeError`
            Always.
        """
        raise RuntimeError(
            "Expected weights that can learn, found int8. Load the biLM with `dtype` float32, or "
            "read with it under `torch.no_grad()`."
        )

    def forward(self, inputs: torch.Tensor, plus: Optional[torch.Tensor] = None) -> torch.Tensor:
        """
        See `PackedLinear`.

        # Raises

        `RuntimeError`
            If something before or in this layer is to learn.
        """
        bias = self.bias
        learns = inputs.requires_grad or bias is not None and bias.requires_grad
        if learns and torch.is_grad_enabled():
            self.weight_to_learn()
        return self.matrix.product(inputs, bias, plus)

    def _apply(self, fn: Callable, recurse: bool = True) -> "Int8Linear":
        super()._apply(fn, recurse)
        # The scale moves, but stays float32.
        self._set(self.matrix.to(self.scale.device))
        return self

    def _set(self, matrix: Int8Matrix) -> None:
        self.matrix, self.scale = matrix, matrix.scale

    def _save_to_state_dict(
        self, destination: Dict[str, Any], prefix: str, keep_vars: bool
    ) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[f"{prefix}weight"] = self.matrix.weight

    def _load_from_state_dict(
        self,
        state_dict: Dict[str, torch.Tensor],
        prefix: str,
        local_metadata: Dict[str, Any],
        strict: bool,
        missing_keys: List[str],
        unexpected_keys: List[str],
        error_msgs: List[str],
    ) -> None:
        names = (f"{prefix}weight", f"{prefix}scale")
        weight, scale = map(state_dict.get, names)
        rest = {name: value for name, value in state_dict.items() if name not in names}
        super()._load_from_state_dict(
            rest, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )
        real_numbers = weight is not None and weight.is_floating_point()
        if weight is None:
            missing_keys.append(names[0])
        # The base class misses the scale, which is made here of real numbers.
        if (scale is not None or real_numbers) and names[1] in missing_keys:
            missing_keys.remove(names[1])
        if weight is None or not real_numbers and scale is None:
            return
        if weight.shape != self.matrix.shape:
            error_msgs.append(
                f"{names[0]}: expected shape {tuple(self.matrix.shape)}, found "
                f"{tuple(weight.shape)}."
            )
            return
        device = self.scale.device
        if real_numbers:
            self._set(Int8Matrix.rounded(weight.to(device)))
        else:
            # Copied: what was loaded may be a file that is still being read from.
            self._set(Int8Matrix(weight.to(device, copy=True), scale.to(device, copy=True)))
