# pyright: standard
"""The Llama decoder in few operations, for packed steps of small models.

    hidden += attend(rotate(norm(hidden) Wqkv)) Wo
    hidden += (silu(gate) * up) Wdown,  gate | up = norm(hidden) Wgate_up

A small model's step is short, so what surrounds its matrix products counts. Here query, key and
value are one product, gate and up another; norms are folded into the weights behind them; and
rotation is one complex product, for which the two halves of a head are interleaved. The
transformers model stays the owner of the weights; what is used is a copy.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import LlamaForCausalLM, PreTrainedModel
from transformers.models.llama.modeling_llama import LlamaDecoderLayer

from outfox.policies.engines.continuous.attention import Packed

_MOST_PARAMETERS = 1 << 27
"""Larger models gain little, and a copy of their weights costs much."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Layer:
    """Weights of one layer, each [in, out]."""

    qkv: Tensor
    out: Tensor
    gate_up: Tensor
    down: Tensor


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Llama:
    """Logits of packed steps. Made by `llama`."""

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
            hidden.addmm_(self._attended(index, layer, hidden, turns, packed), layer.out)
            gate, up = torch.mm(self._norm(hidden), layer.gate_up).chunk(2, 1)
            hidden.addmm_(functional.silu(gate).mul_(up), layer.down)
        return torch.mm(self._norm(hidden[keep]), self.unembedding)

    def _attended(
        self, index: int, layer: Layer, hidden: Tensor, turns: Tensor, packed: Packed
    ) -> Tensor:
        made = torch.mm(self._norm(hidden), layer.qkv).view(len(hidden), -1, self.head)
        turned = self.heads + self.kv
        torch.view_as_complex(made[:, :turned].unflatten(2, (-1, 2))).mul_(turns)
        query, key, value = made[:, : self.heads], made[:, self.heads : turned], made[:, turned:]
        return packed.attend(index, query, key, value, scale=self.head**-0.5).flatten(1)

    def _norm(self, hidden: Tensor) -> Tensor:
        return functional.rms_norm(hidden, hidden.shape[1:], eps=self.eps)


def llama(model: PreTrainedModel) -> Llama | None:
    """A copy of the weights as they are now, or None for a model of another kind.

    Small models in single precision with the plain rotation and without biases are of this kind.
    """
    if type(model) is not LlamaForCausalLM or model.num_parameters() > _MOST_PARAMETERS:
        return None
    config, decoder = model.config, model.model
    biased = config.attention_bias or config.mlp_bias
    rotary = decoder.rotary_emb
    if biased or config.hidden_act != "silu" or rotary.rope_type != "default":
        return None
    if model.dtype != torch.float32:
        return None
    positions = torch.arange(config.max_position_embeddings, device=model.device)
    angles = positions[:, None].float() * rotary.inv_freq.float()
    with torch.no_grad():
        return Llama(
            layers=tuple(_layer(layer) for layer in decoder.layers),
            embedding=decoder.embed_tokens.weight.detach(),
            unembedding=_after(decoder.norm, model.lm_head),
            turns=torch.polar(torch.ones_like(angles), angles),
            heads=config.num_attention_heads,
            kv=config.num_key_value_heads or config.num_attention_heads,
            head=2 * angles.shape[1],
            eps=config.rms_norm_eps,
        )


def _layer(layer: nn.Module) -> Layer:
    assert isinstance(layer, LlamaDecoderLayer)
    attention, mlp = layer.self_attn, layer.mlp
    head = attention.head_dim
    query, key = (
        _interleaved(_after(layer.input_layernorm, each), head)
        for each in (attention.q_proj, attention.k_proj)
    )
    value = _after(layer.input_layernorm, attention.v_proj)
    gate_up = [
        _after(layer.post_attention_layernorm, each) for each in (mlp.gate_proj, mlp.up_proj)
    ]
    return Layer(
        qkv=torch.cat([query, key, value], 1),
        out=attention.o_proj.weight.detach().t().contiguous(),
        gate_up=torch.cat(gate_up, 1),
        down=mlp.down_proj.weight.detach().t().contiguous(),
    )


def _after(norm: nn.Module, linear: nn.Module) -> Tensor:
    """[in, out] weights of a linear map behind a norm, with the norm's weights in them."""
    assert isinstance(norm.weight, Tensor)
    assert isinstance(linear.weight, Tensor)
    return (linear.weight * norm.weight).detach().t().contiguous()


def _interleaved(weight: Tensor, head: int) -> Tensor:
    """Columns of each head as 0, h/2, 1, h/2 + 1, ...: pairs that are rotated lie together."""
    halves = weight.unflatten(1, (-1, 2, head // 2))
    return halves.transpose(2, 3).reshape(weight.shape)
