"""The starter's network: a small llama, written to match what GGUF readers compute.

Rotary embedding turns the pairs (2i, 2i+1) of each head, as GGUF's llama
convention wants, so that no row of Q or K is permuted on export. Matrices are
named as in GGUF. Knows nothing of text, files or training.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F


@dataclass(frozen=True)
class Config:
    vocab: int = 3072
    width: int = 256
    layers: int = 6
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 64
    ffn: int = 768
    context: int = 1024
    rope_theta: float = 10000.0
    rms_eps: float = 1e-5


class RmsNorm(nn.Module):
    def __init__(self, width: int, eps: float):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:  # (..., width)
        scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)
        return x * scale * self.weight


def rope_tables(cfg: Config, length: int) -> tuple[Tensor, Tensor]:
    """Cosines and sines, each (length, 1, head_dim / 2)."""
    inv = cfg.rope_theta ** (-torch.arange(0, cfg.head_dim, 2).float() / cfg.head_dim)
    angle = torch.arange(length).float()[:, None] * inv[None, :]
    return angle.cos()[:, None, :], angle.sin()[:, None, :]


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:  # (batch, time, heads, head_dim)
    pair = x.float().unflatten(-1, (-1, 2))
    a, b = pair[..., 0], pair[..., 1]
    return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)


class Block(nn.Module):
    def __init__(self, cfg: Config):
        super().__init__()
        self.cfg = cfg
        q_width, kv_width = cfg.heads * cfg.head_dim, cfg.kv_heads * cfg.head_dim
        self.attn_norm = RmsNorm(cfg.width, cfg.rms_eps)
        self.attn_q = nn.Linear(cfg.width, q_width, bias=False)
        self.attn_k = nn.Linear(cfg.width, kv_width, bias=False)
        self.attn_v = nn.Linear(cfg.width, kv_width, bias=False)
        self.attn_output = nn.Linear(q_width, cfg.width, bias=False)
        self.ffn_norm = RmsNorm(cfg.width, cfg.rms_eps)
        self.ffn_gate = nn.Linear(cfg.width, cfg.ffn, bias=False)
        self.ffn_up = nn.Linear(cfg.width, cfg.ffn, bias=False)
        self.ffn_down = nn.Linear(cfg.ffn, cfg.width, bias=False)

    def attend(self, x: Tensor, rope, mask: Tensor, drop: float, past) -> Tensor:
        cfg, (n, t, _) = self.cfg, x.shape
        q = rotate(self.attn_q(x).view(n, t, cfg.heads, cfg.head_dim), *rope)
        k = rotate(self.attn_k(x).view(n, t, cfg.kv_heads, cfg.head_dim), *rope)
        v = self.attn_v(x).view(n, t, cfg.kv_heads, cfg.head_dim)
        if past is not None:  # a list owned by the caller: [] or [k, v]
            if past:
                k, v = torch.cat((past[0], k), 1), torch.cat((past[1], v), 1)
            past[:] = [k, v]
        group = cfg.heads // cfg.kv_heads
        # Query heads that share a KV head lie beside each other: (n, kv_heads, group * t, head_dim)
        q = q.view(n, t, cfg.kv_heads, group, cfg.head_dim).permute(0, 2, 3, 1, 4)
        q = q.reshape(n, cfg.kv_heads, group * t, cfg.head_dim)
        k, v = k.transpose(1, 2), v.transpose(1, 2)
        score = torch.matmul(q, k.transpose(-1, -2)) * cfg.head_dim**-0.5
        score = score.view(n, cfg.kv_heads, group, t, -1) + mask
        weight = torch.softmax(score.float(), -1)
        weight = weight.view(n, cfg.kv_heads, group * t, -1).to(v.dtype)
        mixed = torch.matmul(weight, v).view(n, cfg.kv_heads, group, t, cfg.head_dim)
        mixed = mixed.permute(0, 3, 1, 2, 4).reshape(n, t, cfg.heads * cfg.head_dim)
        return F.dropout(self.attn_output(mixed), drop, self.training)

    def forward(self, x: Tensor, rope, mask: Tensor, drop: float = 0.0, past=None) -> Tensor:
        x = x + self.attend(self.attn_norm(x), rope, mask, drop, past)
        h = self.ffn_norm(x)
        h = self.ffn_down(F.silu(self.ffn_gate(h)) * self.ffn_up(h))
        return x + F.dropout(h, drop, self.training)


class Llama(nn.Module):
    def __init__(self, cfg: Config, drop: float = 0.0):
        super().__init__()
        self.cfg, self.drop = cfg, drop
        self.token_embd = nn.Embedding(cfg.vocab, cfg.width)
        self.blk = nn.ModuleList(Block(cfg) for _ in range(cfg.layers))
        self.output_norm = RmsNorm(cfg.width, cfg.rms_eps)
        cos, sin = rope_tables(cfg, cfg.context)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)
        for name, p in self.named_parameters():
            if p.dim() == 2:
                deep = name.endswith(("attn_output.weight", "ffn_down.weight"))
                nn.init.normal_(p, std=0.02 / (2 * cfg.layers) ** 0.5 if deep else 0.02)

    def hidden(self, ids: Tensor, past=None) -> Tensor:
        """ids (batch, time) → (batch, time, width); past: one list per layer, grown in place."""
        start = past[0][0].shape[1] if past and past[0] else 0
        t = ids.shape[1]
        rope = self.cos[start : start + t], self.sin[start : start + t]
        mask = torch.full((t, start + t), float("-inf")).triu(start + 1)
        x = F.dropout(self.token_embd(ids), self.drop, self.training)
        for i, block in enumerate(self.blk):
            x = block(x, rope, mask, self.drop, None if past is None else past[i])
        return self.output_norm(x)

    def logits(self, hidden: Tensor) -> Tensor:
        return F.linear(hidden, self.token_embd.weight)

    def forward(self, ids: Tensor, past=None) -> Tensor:
        return self.logits(self.hidden(ids, past))

    def empty_past(self) -> list:
        return [[] for _ in self.blk]
