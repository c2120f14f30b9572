"""A plain forward pass over a GGUF's dequantised weights: NumPy, float64, one token attends to all before it.

Covers the two families of the real models: llama (SmolLM2) and gemma3. Weights come from gguf-py, which is
llama.cpp's own reader, so that nothing of this project is between the file and the logits.
"""

import gguf
import numpy as np
from gguf.quants import dequantize


class Weights:
    """Tensors and metadata of one file."""

    def __init__(self, path):
        reader = gguf.GGUFReader(path)
        self.tensors = {t.name: t for t in reader.tensors}
        self.fields = reader.fields
        self.architecture = self.field("general.architecture")

    def field(self, key, default=None):
        field = self.fields.get(key)
        return default if field is None else field.contents()

    def parameter(self, key, default=None):
        return self.field(f"{self.architecture}.{key}", default)

    def has(self, name):
        return name in self.tensors

    def tensor(self, name):
        """(rows, columns). In float32 NumPy's own rounding would be a hundred times that of our scalar kernels."""
        tensor = self.tensors[name]
        shape = tuple(int(n) for n in reversed(tensor.shape))
        return dequantize(tensor.data, tensor.tensor_type).astype(np.float64).reshape(shape)


def rms_norm(x, weight, eps):
    """x: (n, d)"""
    mean = np.mean(x**2, axis=-1, keepdims=True)
    return x / np.sqrt(mean + eps) * weight


def rotate(x, base, halves):
    """x: (n_tokens, n_heads, head_dim), token i at position i. Pairs are neighbours, or lie a half apart."""
    n, _, d = x.shape
    angles = np.arange(n)[:, None] * base ** (-np.arange(0, d, 2) / d)[None, :]
    cos, sin = np.cos(angles)[:, None, :], np.sin(angles)[:, None, :]
    out = np.empty_like(x)
    first, second = (np.s_[..., : d // 2], np.s_[..., d // 2:]) if halves else (np.s_[..., 0::2], np.s_[..., 1::2])
    out[first] = x[first] * cos - x[second] * sin
    out[second] = x[second] * cos + x[first] * sin
    return out


def softmax(x):
    x = np.exp(x - x.max(axis=-1, keepdims=True))
    return x / x.sum(axis=-1, keepdims=True)


def attention(q, k, v, window):
    """q: (n, n_heads, d); k, v: (n, n_kv_heads, d). A window of w sees w tokens, itself included."""
    n, n_heads, d = q.shape
    group = n_heads // k.shape[1]
    distance = np.arange(n)[:, None] - np.arange(n)[None, :]
    visible = (distance >= 0) & (distance < (window or n + 1))
    out = np.empty_like(q)
    for head in range(n_heads):
        scores = q[:, head] @ k[:, head // group].T / np.sqrt(d)
        out[:, head] = softmax(np.where(visible, scores, -np.inf)) @ v[:, head // group]
    return out.reshape(n, n_heads * d)


def silu(x):
    return x / (1 + np.exp(-x))


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def logits(path, ids):
    """Logits after every token: (n_tokens, n_vocab)."""
    w = Weights(path)
    is_gemma = w.architecture == "gemma3"
    assert is_gemma or w.architecture == "llama", w.architecture
    eps = w.parameter("attention.layer_norm_rms_epsilon")
    n_heads = w.parameter("attention.head_count")
    n_kv_heads = w.parameter("attention.head_count_kv", n_heads)
    head_dim = w.parameter("attention.key_length", w.parameter("embedding_length") // n_heads)
    base = w.parameter("rope.freq_base", 10_000.0)
    activate = gelu_tanh if is_gemma else silu

    embedding = w.tensor("token_embd.weight")
    x = embedding[ids]
    if is_gemma:
        x = x * np.float64(np.sqrt(embedding.shape[1]))
    for layer in range(w.parameter("block_count")):
        # Gemma 3: five layers with a window, then one that sees all.
        is_local = is_gemma and (layer + 1) % 6 != 0
        window = w.parameter("attention.sliding_window") if is_local else None
        x = block(w, f"blk.{layer}", x, {
            "eps": eps, "heads": (n_heads, n_kv_heads, head_dim), "base": 10_000.0 if is_local else base,
            "window": window, "halves": is_gemma, "activate": activate,
        })
    x = rms_norm(x, w.tensor("output_norm.weight"), eps)
    return x @ (w.tensor("output.weight") if w.has("output.weight") else embedding).T


def block(w, name, x, facts):
    """One layer: attention and the gated feed-forward part, each with its residual."""
    def product(a, tensor):
        return a @ w.tensor(f"{name}.{tensor}.weight").T

    def norm(a, tensor):
        return rms_norm(a, w.tensor(f"{name}.{tensor}.weight"), facts["eps"]) if w.has(f"{name}.{tensor}.weight") else a

    n_heads, n_kv_heads, d = facts["heads"]
    h = norm(x, "attn_norm")
    q = norm(product(h, "attn_q").reshape(len(x), n_heads, d), "attn_q_norm")
    k = norm(product(h, "attn_k").reshape(len(x), n_kv_heads, d), "attn_k_norm")
    v = product(h, "attn_v").reshape(len(x), n_kv_heads, d)
    q, k = (rotate(a, facts["base"], facts["halves"]) for a in (q, k))
    x = x + norm(product(attention(q, k, v, facts["window"]), "attn_output"), "post_attention_norm")
    h = norm(x, "ffn_norm")
    h = product(facts["activate"](product(h, "ffn_gate")) * product(h, "ffn_up"), "ffn_down")
    return x + norm(h, "post_ffw_norm")
