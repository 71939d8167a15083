from typing import Optional

import torch


def tracks_gradients(*tensors: Optional[torch.Tensor]) -> bool:
    """True if autograd would track a result of these tensors."""
    return torch.is_grad_enabled() and any(
        tensor is not None and tensor.requires_grad for tensor in tensors
    )
