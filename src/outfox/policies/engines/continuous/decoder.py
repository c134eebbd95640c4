# pyright: standard
"""Small decoders, Llama and LFM2, in few operations for packed steps.

    hidden += attend(rotate(norm(hidden) Wqkv)) Wo        or, in a layer that convolves,
    hidden += (C * conv(B * x)) Wo,          B | C | x = norm(hidden) Win
    hidden += (silu(gate) * up) Wdown,       gate | up = norm(hidden) Wgate_up

A small model's step is short, so what surrounds its matrix products counts. Here query, key and
value are one product, gate and up another; norms are folded into the weights behind them; and
rotation is one complex product, for which the two halves of a head are interleaved. The
transformers model stays the owner of the weights; what is used is a copy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import Lfm2ForCausalLM, LlamaForCausalLM, PreTrainedModel

from outfox.policies.engines.continuous.attention import Packed
from outfox.policies.lora import weight_of

_MOST_PARAMETERS = 1 << 27
"""Larger models gain little, and a copy of their weights costs much."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Attention:
    """Weights [in, out]."""

    qkv: Tensor
    out: Tensor
    scales: Tensor | None
    """[query and key heads, head] of a norm of each query and key, or None."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Convolution:
    """Weights [in, out] of a gated short convolution."""

    bcx: Tensor
    taps: Tensor
    """[kernel, hidden]; the last is for the token itself."""
    out: Tensor


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Layer:
    """What mixes tokens, then what works on each by itself."""

    mix: Attention | Convolution
    gate_up: Tensor
    down: Tensor


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Decoder:
    """Logits of packed steps. Made by `decoder`."""

    layers: tuple[Layer, ...]
    embedding: Tensor
    """[vocabulary, hidden]"""
    unembedding: Tensor
    """[hidden, vocabulary]"""
    turns: Tensor
    """[context, head / 2] complex: the rotation at each position."""
    heads: int
    kv: int
    head: int
    eps: float

    def __call__(self, ids: Tensor, positions: Tensor, keep: Tensor, packed: Packed) -> Tensor:
        """[len(keep), vocabulary] from [N] ids and positions of a packed step."""
        hidden = self.embedding[ids]
        turns = self.turns[positions][:, None]
        for index, layer in enumerate(self.layers):
            if isinstance(layer.mix, Attention):
                mixed = self._attended(index, layer.mix, hidden, turns, packed)
            else:
                mixed = self._convolved(index, layer.mix, hidden, packed)
            hidden.addmm_(mixed, layer.mix.out)
            gate, up = torch.mm(self._norm(hidden), layer.gate_up).chunk(2, 1)
            hidden.addmm_(functional.silu(gate).mul_(up), layer.down)
        return torch.mm(self._norm(hidden[keep]), self.unembedding)

    def _attended(
        self, index: int, mix: Attention, hidden: Tensor, turns: Tensor, packed: Packed
    ) -> Tensor:
        made = torch.mm(self._norm(hidden), mix.qkv).view(len(hidden), -1, self.head)
        turned = self.heads + self.kv
        pairs = made[:, :turned]
        if mix.scales is not None:
            pairs.copy_(functional.rms_norm(pairs, (self.head,), eps=self.eps).mul_(mix.scales))
        torch.view_as_complex(pairs.unflatten(2, (-1, 2))).mul_(turns)
        query, key, value = made[:, : self.heads], made[:, self.heads : turned], made[:, turned:]
        return packed.attend(index, query, key, value, scale=self.head**-0.5).flatten(1)

    def _convolved(self, index: int, mix: Convolution, hidden: Tensor, packed: Packed) -> Tensor:
        before, after, inner = torch.mm(self._norm(hidden), mix.bcx).chunk(3, 1)
        return packed.convolve(index, before * inner, mix.taps).mul_(after)

    def _norm(self, hidden: Tensor) -> Tensor:
        return functional.rms_norm(hidden, hidden.shape[1:], eps=self.eps)


def decoder(model: PreTrainedModel) -> Decoder | None:
    """A copy of the weights as they are now, or None for a model of another kind.

    Small models in single precision with the plain rotation and without biases are of this kind.
    """
    if model.dtype != torch.float32 or model.num_parameters() > _MOST_PARAMETERS:
        return None
    config: Any = model.config
    if type(model) is LlamaForCausalLM:
        if config.attention_bias or config.mlp_bias or config.hidden_act != "silu":
            return None
        make, norm, eps = _llama_layer, model.model.norm, config.rms_norm_eps
    elif type(model) is Lfm2ForCausalLM:
        if config.conv_bias:
            return None
        make, norm, eps = _lfm2_layer, model.model.embedding_norm, config.norm_eps
    else:
        return None
    body: Any = model.model
    if body.rotary_emb.rope_type != "default":
        return None
    positions = torch.arange(config.max_position_embeddings, device=model.device)
    angles = positions[:, None].float() * body.rotary_emb.inv_freq.float()
    with torch.no_grad():
        return Decoder(
            layers=tuple(make(layer, 2 * angles.shape[1]) for layer in body.layers),
            embedding=body.embed_tokens.weight.detach(),
            unembedding=_after(norm, model.lm_head),
            turns=torch.polar(torch.ones_like(angles), angles),
            heads=config.num_attention_heads,
            kv=config.num_key_value_heads,
            head=2 * angles.shape[1],
            eps=eps,
        )


def _llama_layer(layer: Any, head: int) -> Layer:
    norm, own, mlp = layer.input_layernorm, layer.self_attn, layer.mlp
    return Layer(
        mix=Attention(
            qkv=_qkv(norm, own.q_proj, own.k_proj, own.v_proj, head=head),
            out=_turned(own.o_proj),
            scales=None,
        ),
        gate_up=_side_by_side(layer.post_attention_layernorm, mlp.gate_proj, mlp.up_proj),
        down=_turned(mlp.down_proj),
    )


def _lfm2_layer(layer: Any, head: int) -> Layer:
    norm, feed = layer.operator_norm, layer.feed_forward
    mix: Attention | Convolution
    if layer.is_attention_layer:
        own = layer.self_attn
        scales = (own.q_layernorm.weight, own.k_layernorm.weight)
        counts = (own.q_proj.out_features // head, own.k_proj.out_features // head)
        mix = Attention(
            qkv=_qkv(norm, own.q_proj, own.k_proj, own.v_proj, head=head),
            out=_turned(own.out_proj),
            scales=torch.cat(
                [
                    _interleaved(scale.detach()[None], head).expand(count, -1)
                    for scale, count in zip(scales, counts, strict=True)
                ]
            ),
        )
    else:
        own = layer.conv
        mix = Convolution(
            bcx=_after(norm, own.in_proj),
            taps=own.conv.weight.detach()[:, 0].t().contiguous(),
            out=_turned(own.out_proj),
        )
    return Layer(
        mix=mix,
        gate_up=_side_by_side(layer.ffn_norm, feed.w1, feed.w3),
        down=_turned(feed.w2),
    )


def _qkv(norm: nn.Module, q: nn.Module, k: nn.Module, v: nn.Module, *, head: int) -> Tensor:
    turned = [_interleaved(_after(norm, each), head) for each in (q, k)]
    return torch.cat([*turned, _after(norm, v)], 1)


def _side_by_side(norm: nn.Module, *linear: nn.Module) -> Tensor:
    return torch.cat([_after(norm, each) for each in linear], 1)


def _after(norm: nn.Module, linear: nn.Module) -> Tensor:
    """[in, out] weights of a linear map behind a norm, with the norm's weights in them."""
    assert isinstance(norm.weight, Tensor)
    return (weight_of(linear) * norm.weight).detach().t().contiguous()


def _turned(linear: Any) -> Tensor:
    return weight_of(linear).detach().t().contiguous()


def _interleaved(weight: Tensor, head: int) -> Tensor:
    """Columns of each head as 0, h/2, 1, h/2 + 1, ...: pairs that are rotated lie together."""
    halves = weight.unflatten(1, (-1, 2, head // 2))
    return halves.transpose(2, 3).reshape(weight.shape)
