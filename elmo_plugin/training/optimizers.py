from typing import Any, Dict, Iterator, List, Optional, Tuple

import torch
from allennlp.training.optimizers import Optimizer, ParameterGroupsType, make_parameter_groups
from overrides import overrides

from elmo_plugin.util.bfloat16 import bfloat16_if_fast
from elmo_plugin.util.errors import ConfigurationError

# A quintic that moves all singular values from (0, 1] to about 1 in five steps (Jordan et al.).
_COEFFICIENTS = (3.4445, -4.7750, 2.0315)
_NUM_STEPS = 5
# Updates of matrices are scaled to the root mean square of Adam's updates (Liu et al. 2025).
_UPDATE_SIZE = 0.2
# What a group of matrices may set.
_SETTINGS = {"blocks", "lr", "requires_grad"}


@Optimizer.register("elmo-adam")
class FusedAdam(Optimizer, torch.optim.Adam):
    """
    AllenNLP's `adam`, without `amsgrad`, with torch's fused kernel: one pass over the parameters,
    not eight. On a CPU this halves a biLM's training step: most parameters are in a large softmax.
    """

    def __init__(
        self,
        model_parameters: List[Tuple[str, torch.nn.Parameter]],
        parameter_groups: Optional[ParameterGroupsType] = None,
        lr: float = 0.001,
        betas: Tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        groups = make_parameter_groups(model_parameters, parameter_groups)
        super().__init__(groups, lr, betas, eps, weight_decay, fused=True)


@Optimizer.register("elmo-adagrad")
class FusedAdagrad(Optimizer, torch.optim.Adagrad):
    """
    AllenNLP's `adagrad`, the optimizer of the ELMo paper's biLM, with torch's fused kernel on a
    CPU. The oldest torch that this package allows has none for a GPU.
    """

    def __init__(
        self,
        model_parameters: List[Tuple[str, torch.nn.Parameter]],
        parameter_groups: Optional[ParameterGroupsType] = None,
        lr: float = 0.01,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
    ) -> None:
        on_cpu = all(parameter.device.type == "cpu" for _, parameter in model_parameters)
        settings: Dict[str, Any] = {"fused": True} if on_cpu else {}
        groups = make_parameter_groups(model_parameters, parameter_groups)
        decays = (lr_decay, weight_decay, initial_accumulator_value)
        super().__init__(groups, lr, *decays, eps, **settings)


@Optimizer.register("elmo-muon")
class Muon(FusedAdam):
    """
    Muon ([Jordan et al. 2024](https://kellerjordan.github.io/posts/muon/)) for the matrices of the
    parameter groups that set `blocks`, and `elmo-adam` for all other parameters.

    The update of a matrix is its Nesterov momentum with all singular values set to about 1, by five
    Newton-Schulz steps, in bfloat16 if it is fast. It is scaled to the root mean square of Adam's
    updates ([Liu et al. 2025](https://arxiv.org/abs/2502.16982), equation 4), so all parameters can
    share a learning rate. A recurrent layer stacks its gates in one parameter: each of the `blocks`
    is a matrix of its own. `torch.optim.Muon` has neither blocks nor Adam.

    # Parameters

    parameter_groups : `ParameterGroupsType`
        AllenNLP's. A group that sets `blocks`, an integer, may also set `lr`, but nothing else.
    momentum : `float`
        For the matrices. `betas` and `eps` are for Adam.
    """

    def __init__(
        self,
        model_parameters: List[Tuple[str, torch.nn.Parameter]],
        parameter_groups: Optional[ParameterGroupsType] = None,
        lr: float = 0.001,
        momentum: float = 0.95,
        betas: Tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
    ) -> None:
        with_blocks = [s for _, s in parameter_groups or [] if s.get("blocks") is not None]
        others = {name for settings in with_blocks for name in settings} - _SETTINGS
        if not with_blocks or others:
            raise ConfigurationError(
                "elmo-muon: expected a group of `parameter_groups` with `blocks`, the number of "
                "matrices in each of its parameters, and only `lr` beside it, found "
                f"{', '.join(sorted(others)) or 'none'}. Correct the groups, or use elmo-adam."
            )
        super().__init__(model_parameters, parameter_groups, lr, betas, eps)
        # Only the fused kernel of Adam skips infinite gradients by itself.
        self._step_supports_amp_scaling = False
        self.momentum = momentum
        names = {id(parameter): name for name, parameter in model_parameters}
        for parameter, group in self._matrices():
            blocks, shape = group["blocks"], tuple(parameter.shape)
            if len(shape) != 2 or blocks < 1 or shape[0] % blocks:
                raise ConfigurationError(
                    f"elmo-muon: expected a parameter of {blocks} matrices stacked along the first "
                    f"dimension (`blocks`), found {names[id(parameter)]} of shape {shape}."
                )

    @overrides(check_signature=False)
    def step(self) -> None:
        updates = [
            (parameter, parameter.grad, group)
            for parameter, group in self._matrices()
            if parameter.grad is not None
        ]
        for parameter, _, _ in updates:
            # Adam skips parameters without a gradient.
            parameter.grad = None
        super().step()
        for parameter, gradient, _ in updates:
            parameter.grad = gradient
        self._update_matrices(updates)

    def _matrices(self) -> Iterator[Tuple[torch.nn.Parameter, Dict[str, Any]]]:
        for group in self.param_groups:
            if group.get("blocks") is not None:
                yield from ((parameter, group) for parameter in group["params"])

    @torch.no_grad()
    def _update_matrices(
        self, updates: List[Tuple[torch.nn.Parameter, torch.Tensor, Dict[str, Any]]]
    ) -> None:
        # Matrices of one shape are orthogonalised together.
        by_shape: Dict[Tuple[int, ...], List[Tuple[torch.Tensor, torch.Tensor, float]]] = {}
        for parameter, gradient, group in updates:
            state = self.state[parameter]
            if "momentum" not in state:
                # Adam looks for `step` in all states that it restores.
                state.update(step=torch.tensor(0.0), momentum=torch.zeros_like(gradient))
            state["step"] += 1
            momentum = state["momentum"].lerp_(gradient, 1.0 - self.momentum)
            nesterov = gradient.lerp(momentum, self.momentum)
            shape = (group["blocks"], -1, parameter.size(1))
            values = nesterov.view(shape)
            by_shape.setdefault(values.shape[1:], []).append(
                (parameter.view(shape), values, group["lr"])
            )
        for (rows, columns), matrices in by_shape.items():
            scale = _UPDATE_SIZE * max(rows, columns) ** 0.5
            stacked = torch.cat([values for _, values, _ in matrices])
            orthogonal = orthogonalised(stacked, bfloat16_if_fast(stacked.device))
            parts = orthogonal.split([len(values) for _, values, _ in matrices])
            for (blocks, _, rate), part in zip(matrices, parts):
                blocks.sub_(part, alpha=rate * scale)


def orthogonalised(matrices: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Sets singular values to about 1 (0.7 to 1.2). Shape `(num_matrices, rows, columns)`."""
    values = matrices.to(dtype)
    is_tall = values.size(1) > values.size(2)
    if is_tall:
        values = values.transpose(1, 2)
    # The Frobenius norm is at least the largest singular value.
    values = values / values.float().norm(dim=(1, 2), keepdim=True).clamp_min(1e-7).to(values.dtype)
    first, third, fifth = _COEFFICIENTS
    for _ in range(_NUM_STEPS):
        squares = values @ values.transpose(1, 2)
        polynomial = (squares @ squares).mul_(fifth).add_(squares, alpha=third)
        polynomial.diagonal(dim1=1, dim2=2).add_(first)
        values = polynomial @ values
    return (values.transpose(1, 2) if is_tall else values).to(matrices.dtype)
