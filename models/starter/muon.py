"""Muon: momentum whose matrices are made nearly orthogonal before each step.

After Keller Jordan's published description (2024). For the hidden matrices only;
embeddings and norms stay with AdamW. Learns from fewer tokens than AdamW alone.
"""

import torch
from torch import Tensor

ROUNDS = 5  # of the Newton-Schulz iteration
A, B, C = 3.4445, -4.7750, 2.0315  # its published coefficients


def orthogonal(matrix: Tensor) -> Tensor:
    """The nearest matrix, roughly, with all singular values near 1."""
    tall = matrix.shape[0] > matrix.shape[1]
    x = (matrix.t() if tall else matrix).to(torch.bfloat16)
    x = x / (x.norm() + 1e-7)
    for _ in range(ROUNDS):
        gram = x @ x.t()
        x = A * x + (B * gram + C * (gram @ gram)) @ x
    return (x.t() if tall else x).float()


class Muon(torch.optim.Optimizer):
    def __init__(self, params, lr: float, momentum: float = 0.95, weight_decay: float = 0.0):
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None) -> None:
        for group in self.param_groups:
            for p in group["params"]:
                velocity = self.state[p].setdefault("velocity", torch.zeros_like(p))
                velocity.lerp_(p.grad, 1 - group["momentum"])
                ahead = p.grad.lerp(velocity, group["momentum"])
                scale = max(1.0, p.shape[0] / p.shape[1]) ** 0.5
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.add_(orthogonal(ahead), alpha=-group["lr"] * scale)
