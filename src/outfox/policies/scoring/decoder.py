# pyright: standard
"""Small decoders by a path of their own: last hidden states of a tree of prefixes.

    tree ─▶ embed ─▶ (attend | convolve ─▶ feed) per layer ─▶ norm ─▶ [E, hidden]

Equal to transformers' own forward and backward (the tests compare them), in less time: no padding
in the matrix products, a shared beginning once, and of the last layer only what is wanted. Known
are Llama and Lfm2; every other model takes the general path.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from transformers import Lfm2ForCausalLM, LlamaForCausalLM, PreTrainedModel
from transformers.activations import SiLUActivation
from transformers.models.lfm2 import modeling_lfm2 as lfm2
from transformers.models.llama import modeling_llama as llama

from outfox.policies.lora import is_lora, weight_of
from outfox.policies.scoring.layers import Attend, Convolve, Feed
from outfox.policies.scoring.layout import Heads, Layout, lay_out
from outfox.policies.scoring.tree import Tree

_PLAIN = frozenset(
    {
        LlamaForCausalLM,
        llama.LlamaModel,
        llama.LlamaDecoderLayer,
        llama.LlamaAttention,
        llama.LlamaMLP,
        llama.LlamaRMSNorm,
        llama.LlamaRotaryEmbedding,
        Lfm2ForCausalLM,
        lfm2.Lfm2Model,
        lfm2.Lfm2DecoderLayer,
        lfm2.Lfm2Attention,
        lfm2.Lfm2ShortConv,
        lfm2.Lfm2MLP,
        lfm2.Lfm2RMSNorm,
        lfm2.Lfm2RotaryEmbedding,
        nn.Conv1d,
        nn.Embedding,
        nn.Identity,
        nn.Linear,
        nn.ModuleDict,
        nn.ModuleList,
        nn.ParameterDict,
        nn.SiLU,
        SiLUActivation,
    }
)

again = partial(checkpoint, use_reentrant=False, preserve_rng_state=False)
"""Calls a function now, and once more in the backward pass instead of keeping what it made."""


def is_known(model: PreTrainedModel) -> bool:
    """A Llama or Lfm2 on the CPU with nothing added but LoRA: no hook, bias, stretched position."""
    if type(model) not in (LlamaForCausalLM, Lfm2ForCausalLM) or model.device.type != "cpu":
        return False
    return (
        model.dtype in (torch.float32, torch.float64)
        and model.model.rotary_emb.rope_type == "default"
        and all(map(_is_plain, model.modules()))
    )


def _is_plain(module: nn.Module) -> bool:
    biased = isinstance(module, nn.Linear | nn.Conv1d) and module.bias is not None
    hooked = module._forward_hooks or module._forward_pre_hooks or module._backward_hooks
    return (type(module) in _PLAIN or is_lora(module)) and not biased and not hooked


def decode(
    model: PreTrainedModel, tree: Tree, ends: Any, *, gradient_checkpointing: bool = False
) -> Tensor:
    """[E, hidden] last hidden states, after the norm, at the nodes `ends` (an array, each once).

    `gradient_checkpointing`: of each layer only what goes in is kept for the backward pass.
    """
    parts, config = model.model, model.config
    heads = Heads(
        query=config.num_attention_heads,
        key_value=config.num_key_value_heads,
        width=2 * len(parts.rotary_emb.inv_freq),
    )
    of_llama = type(model) is LlamaForCausalLM
    reach = 0 if of_llama else config.conv_L_cache - 1
    attending = [layer for layer in parts.layers if of_llama or layer.is_attention_layer]
    layout = lay_out(tree, ends, heads, reach=reach, layers=len(attending), dtype=model.dtype)
    x = parts.embed_tokens(torch.from_numpy(tree.token_ids))
    turn = _turn(parts.rotary_emb, x, tree)
    layer_of, norm = (_llama, parts.norm) if of_llama else (_lfm2, parts.embedding_norm)
    for layer in parts.layers:
        given = x, layer, turn, layout, layout.ends if layer is parts.layers[-1] else None
        x = again(layer_of, *given) if gradient_checkpointing else layer_of(*given)
    return norm(x)


def _llama(x: Tensor, layer: Any, turn: Tensor, layout: Layout, ends: Tensor | None) -> Tensor:
    norms = layer.input_layernorm, layer.post_attention_layernorm
    looking = _looking(layer.self_attn, norms[0], layout.heads.width)
    eps, out = norms[0].variance_epsilon, weight_of(layer.self_attn.o_proj)
    x = Attend.apply(x, looking, None, out, turn, layout, eps, ends)
    return _feed(x, layer.mlp.gate_proj, layer.mlp.up_proj, layer.mlp.down_proj, norms[1])


def _lfm2(x: Tensor, layer: Any, turn: Tensor, layout: Layout, ends: Tensor | None) -> Tensor:
    norm, eps = layer.operator_norm, layer.operator_norm.variance_epsilon
    if layer.is_attention_layer:
        part, heads = layer.self_attn, layout.heads
        looking = _looking(part, norm, heads.width)
        weights = part.q_layernorm.weight, part.k_layernorm.weight
        counts = heads.query, heads.key_value
        scales = torch.cat(
            [
                _interleaved(weight[:, None], heads.width).view(1, -1).expand(count, -1)
                for weight, count in zip(weights, counts, strict=True)
            ]
        )
        x = Attend.apply(x, looking, scales, weight_of(part.out_proj), turn, layout, eps, ends)
    else:
        part = layer.conv
        entering, taps = weight_of(part.in_proj) * norm.weight, part.conv.weight[:, 0].t()
        x = Convolve.apply(x, entering, taps, weight_of(part.out_proj), layout, eps, ends)
    own = layer.feed_forward
    return _feed(x, own.w1, own.w3, own.w2, layer.ffn_norm)


def _feed(x: Tensor, gate: Any, up: Any, down: Any, norm: Any) -> Tensor:
    gating = torch.cat([weight_of(gate), weight_of(up)]) * norm.weight
    return Feed.apply(x, gating, weight_of(down), norm.variance_epsilon)


def _looking(attention: Any, norm: Any, head: int) -> Tensor:
    """[parts * head, hidden] weights of queries, keys and values, behind a norm."""
    query, key = weight_of(attention.q_proj), weight_of(attention.k_proj)
    pairs = [_interleaved(query, head), _interleaved(key, head), weight_of(attention.v_proj)]
    return torch.cat(pairs) * norm.weight


def _interleaved(weight: Tensor, head: int) -> Tensor:
    """Rows of each head in the order 0, half, 1, half + 1, ...: real beside imaginary part.

    Queries and keys are permuted alike, so their products stay as they are.
    """
    return weight.view(-1, 2, head // 2, weight.shape[1]).transpose(1, 2).reshape(weight.shape)


def _turn(rotary: Any, x: Tensor, tree: Tree) -> Tensor:
    """[N, 1, head / 2] complex: the rotary embedding of each node's position."""
    depths = torch.from_numpy(tree.depths)
    cos, sin = rotary(x, torch.arange(int(depths.max()) + 1)[None])
    half = cos.shape[-1] // 2
    return torch.complex(cos[0, :, :half], sin[0, :, :half])[depths][:, None]
