"""The transformers engine: sessions keep their cache, logprobs are right, faults reach all."""

import asyncio
from dataclasses import replace

import numpy as np
import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    GPT2Config,
    MambaConfig,
    MistralConfig,
    Qwen2Config,
    Qwen3Config,
)

from outfox.core.errors import ConfigError, ContractError, EngineError
from outfox.core.protocols import Sampling
from outfox.core.seeding import derive
from outfox.policies.engines.continuous.schedule import CHUNK
from outfox.policies.engines.transformers import TransformersEngine
from outfox.policies.logprobs import token_logprobs
from outfox.policies.tiny import build_model, build_tokenizer

TOKENIZER = build_tokenizer([f"name{number}" for number in range(60)])
SIZE = len(TOKENIZER)
SMALL = {
    "vocab_size": SIZE,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 256,
    "initializer_range": 0.2,
}


def tiny(**settings):
    sizes = {"hidden": 32, "layers": 2, "intermediate": 48, "context": 256} | settings
    return build_model(TOKENIZER, initializer_range=0.2, **sizes)


MODEL = tiny()


def ids(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(300, SIZE, count)


def engine(model=MODEL, **settings) -> TransformersEngine:
    return TransformersEngine(model, TOKENIZER, **settings)


def expected(model, history: list[int], temperature: float = 1.0) -> np.ndarray:
    with torch.no_grad():
        scores = token_logprobs(model, torch.tensor([history]), temperature=temperature)
    return scores.logprobs[0].numpy()


async def talk(made: TransformersEngine, name: str, turns: list[int], **settings):
    """Turns of so many new tokens each; returns all tokens, and logprobs (nan where given)."""
    sampling = replace(Sampling(max_tokens=9), **settings)
    made.open(name, noise_key=derive(name))
    history, logprobs = [], []
    for turn, count in enumerate(turns):
        new = ids(count, turn)
        done = await made.generate(name, new, sampling=sampling)
        history += [*new.tolist(), *done.token_ids.tolist()]
        logprobs += [*[np.nan] * count, *done.logprobs.tolist()]
    return history, np.asarray(logprobs)


# -- history and numbers --------------------------------------------------------------------------
async def test_history_goes_through_the_model_once():
    made = engine()
    history, _ = await talk(made, "a", [20, 1, 40, 3])
    assert made.fed_tokens == len(history) - 1  # the last sampled token is pending
    made.open("b", noise_key=3, parent="a")
    done = await made.generate("b", ids(5), sampling=Sampling(max_tokens=2))
    assert made.fed_tokens == len(history) + 5 + len(done.token_ids) - 1


@pytest.mark.parametrize("temperature", [1.0, 0.6])
@pytest.mark.parametrize("model", [MODEL, tiny(heads=4, kv_heads=2, layers=3)])
async def test_sampled_logprobs_are_those_of_the_training_forward(model, temperature: float):
    made = engine(model)
    rows = [talk(made, f"s{n}", [n % 7 + 1, 2, n + 1], temperature=temperature) for n in range(9)]
    for history, logprobs in await asyncio.gather(*rows):
        wanted = expected(model, history, temperature)
        sampled = ~np.isnan(logprobs)
        assert np.abs(logprobs - wanted)[sampled].max() < 1e-5


@pytest.mark.parametrize(
    "config",
    [
        Qwen2Config(**SMALL),
        Qwen3Config(**SMALL),
        MistralConfig(**SMALL, sliding_window=12),
        GPT2Config(vocab_size=SIZE, n_embd=32, n_layer=2, n_head=4, initializer_range=0.2),
    ],
    ids=lambda config: config.model_type,
)
async def test_other_architectures_run_unchanged(config):
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config).eval()
    before = model.config._attn_implementation
    made = engine(model)
    rows = [talk(made, f"s{n}", [n + 3, 2, 15]) for n in range(3)]
    for history, logprobs in await asyncio.gather(*rows):
        sampled = ~np.isnan(logprobs)
        assert np.abs(logprobs - expected(model, history))[sampled].max() < 1e-5
    assert model.config._attn_implementation == before


def test_a_model_without_plain_attention_is_refused():
    config = MambaConfig(vocab_size=SIZE, hidden_size=16, num_hidden_layers=1, state_size=4)
    model = AutoModelForCausalLM.from_config(config)
    model.config.max_position_embeddings = 64
    with pytest.raises(ConfigError, match="transformers engine"):
        engine(model)


async def test_greedy_equals_the_generation_of_transformers():
    made = engine()
    made.open("a", noise_key=1)
    done = await made.generate("a", ids(8), sampling=Sampling(temperature=0.0, max_tokens=30))
    with torch.no_grad():
        whole = MODEL.generate(
            torch.tensor(ids(8))[None], max_new_tokens=30, do_sample=False, use_cache=True
        )
    assert done.token_ids.tolist() == whole[0, 8:].tolist()


async def test_a_prompt_longer_than_a_chunk_is_fed_in_parts():
    model = tiny(context=4096, layers=1)
    made = engine(model)
    (long, logprobs), (short, others) = await asyncio.gather(
        talk(made, "long", [CHUNK + 300, 5]), talk(made, "short", [3, 3])
    )
    assert made.fed_tokens == len(long) + len(short) - 2
    for history, found in ((long, logprobs), (short, others)):
        sampled = ~np.isnan(found)
        assert np.abs(found - expected(model, history))[sampled].max() < 1e-5


async def test_score_is_the_logprob_of_a_continuation_at_temperature_1():
    history = ids(20).tolist()
    scores = await engine().score(np.asarray(history[:8]), np.asarray(history[8:]))
    np.testing.assert_allclose(scores, expected(MODEL, history)[8:], atol=1e-6)
    assert scores.dtype == np.float32
    with pytest.raises(ContractError, match="Scoring needs a prompt"):
        await engine().score(np.asarray([], np.int64), ids(3))


# -- ends -----------------------------------------------------------------------------------------
async def test_a_completion_ends_with_the_token_that_completed_a_stop_string():
    made = engine()
    made.open("a", noise_key=1)
    done = await made.generate("a", ids(5), sampling=Sampling(max_tokens=60))
    text = next(t for t in map(TOKENIZER.decode, done.token_ids[3:]) if len(t) > 1)
    made.open("b", noise_key=1)
    again = await made.generate("b", ids(5), sampling=Sampling(max_tokens=60), stop=[text])
    assert (again.finish_reason, again.stop) == ("stop", text)
    assert again.token_ids.tolist() == done.token_ids[: len(again.token_ids)].tolist()
    assert text in TOKENIZER.decode(again.token_ids)
    assert text not in TOKENIZER.decode(again.token_ids[:-1])


async def test_eos_ends_a_completion_and_stays_in_the_session():
    model = tiny()
    with torch.no_grad():
        model.model.embed_tokens.weight[1] = 0.0
        model.model.embed_tokens.weight[1] += 4 * model.model.embed_tokens.weight[305]
    made = engine(model)
    done = None
    for key in range(50):
        made.open(f"{key}", noise_key=key)
        done = await made.generate(f"{key}", ids(5, key), sampling=Sampling(max_tokens=200))
        if done.finish_reason == "eos":
            break
    assert done is not None
    assert done.finish_reason == "eos"
    assert done.token_ids.tolist().count(1) == 1
    assert done.token_ids[-1] == 1


async def test_a_session_never_exceeds_the_context():
    made = engine(context_length=40)
    made.open("a", noise_key=1)
    first = await made.generate("a", ids(30), sampling=Sampling(max_tokens=99))
    assert (len(first.token_ids), first.finish_reason) == (10, "length")
    second = await made.generate("a", ids(1), sampling=Sampling())
    assert (len(second.token_ids), second.finish_reason) == (0, "length")
    with pytest.raises(ConfigError, match="context_length must lie"):
        engine(context_length=257)


async def test_forbidden_tokens_are_never_sampled():
    made, names = engine(), tuple(f"name{number}" for number in range(60))
    banned = {TOKENIZER.encode(name)[0] for name in names}
    for forbidden in ((), names):
        sampling = Sampling(max_tokens=150, forbidden=forbidden)
        name = f"{len(forbidden)} forbidden"
        made.open(name, noise_key=1)
        done = await made.generate(name, ids(5), sampling=sampling)
        assert bool(banned & set(done.token_ids.tolist())) == (not forbidden)
    with pytest.raises(ConfigError, match="must be one token"):
        await made.generate(name, ids(1), sampling=Sampling(forbidden=("name7 name8",)))


@pytest.mark.parametrize("settings", [{"temperature": -1.0}, {"top_p": 0.0}, {"top_p": 1.1}])
async def test_sampling_settings_out_of_range_are_refused(settings: dict[str, float]):
    made = engine()
    made.open("a", noise_key=1)
    with pytest.raises(ConfigError, match="temperature must be 0 or more"):
        await made.generate("a", ids(3), sampling=Sampling(**settings))


async def test_token_ids_outside_the_vocabulary_are_refused():
    made = engine()
    made.open("a", noise_key=1)
    for bad in (-1, SIZE):
        with pytest.raises(ContractError, match="Token ids lie in"):
            await made.generate("a", np.asarray([bad]), sampling=Sampling())


# -- forks, weights -------------------------------------------------------------------------------
async def test_forks_do_not_disturb_each_other():
    made = engine()
    history, _ = await talk(made, "a", [12])
    for number in range(4):
        made.open(f"f{number}", noise_key=number, parent="a")
    done = await asyncio.gather(
        *(made.generate(f"f{n}", ids(3), sampling=Sampling(max_tokens=12)) for n in range(4))
    )
    assert len({tuple(item.token_ids) for item in done}) == 4
    for item in done:
        whole = [*history, *ids(3).tolist(), *item.token_ids.tolist()]
        wanted = expected(MODEL, whole)[-len(item.token_ids) :]
        np.testing.assert_allclose(item.logprobs, wanted, atol=1e-5)


async def test_new_weights_are_used_from_the_next_session_on():
    mine, other = tiny(seed=1), tiny(seed=2)
    made = engine(mine)
    await talk(made, "a", [6])
    with pytest.raises(ContractError, match="1 are open"):
        made.load_weights(other.state_dict(), 1)
    made.end("a")
    made.load_weights(other.state_dict(), 7)
    made.open("a", noise_key=1)
    done = await made.generate("a", ids(6), sampling=Sampling(max_tokens=9))
    assert done.policy_version == made.policy_version == 7
    whole = [*ids(6).tolist(), *done.token_ids.tolist()]
    np.testing.assert_allclose(done.logprobs, expected(other, whole)[6:], atol=1e-5)


async def test_a_trainer_that_shares_the_model_may_leave_it_in_training_mode():
    model = tiny()
    made = engine(model)
    model.train()
    await talk(made, "a", [6])
    model.train()
    history, again = await talk(made, "b", [6])
    assert np.isfinite(again[6:]).all()
    sampled = ~np.isnan(again)
    assert np.abs(again - expected(model.eval(), history))[sampled].max() < 1e-5


# -- many, faults ---------------------------------------------------------------------------------
async def test_more_sessions_than_rows_wait_their_turn():
    made = engine(max_rows=4, max_step_tokens=30)
    rows = await asyncio.gather(*(talk(made, f"s{n}", [9, 4]) for n in range(40)))
    through = made.fed_tokens + made.shared_tokens
    assert through == sum(len(history) for history, _ in rows) - 40


async def test_siblings_share_what_they_have_in_common():
    made = engine()
    for name in "abc":
        made.open(name, noise_key=derive(name))
    sampling = Sampling(max_tokens=1)
    first = [made.generate(name, ids(20), sampling=sampling) for name in "abc"]
    await asyncio.gather(*first)
    assert (made.fed_tokens, made.shared_tokens) == (20, 40)
    made.open("late", noise_key=1)
    await made.generate("late", ids(20), sampling=sampling)  # no one to go with
    assert (made.fed_tokens, made.shared_tokens) == (40, 40)


async def test_sharing_changes_no_logprob():
    histories = [await talk(engine(), f"s{n}", [20, 70, 3]) for n in range(6)]
    made = engine()
    together = await asyncio.gather(*(talk(made, f"s{n}", [20, 70, 3]) for n in range(6)))
    assert made.shared_tokens > 0
    for (history, logprobs), (wanted, expected) in zip(together, histories, strict=True):
        assert history == wanted
        np.testing.assert_array_equal(logprobs, expected)


async def test_a_session_that_comes_later_or_goes_another_way_has_a_lane_of_its_own():
    made = engine()
    history, _ = await talk(made, "a", [12])
    made.open("b", noise_key=2, parent="a")
    made.open("c", noise_key=3, parent="a")
    await made.generate("b", ids(9, seed=8), sampling=Sampling(max_tokens=5))
    done = await made.generate("a", ids(3), sampling=Sampling(max_tokens=5))
    made.end("a")
    made.end("b")
    late = await made.generate("c", ids(70, seed=9), sampling=Sampling(max_tokens=5))
    for new, completion in ((ids(3), done), (ids(70, seed=9), late)):
        whole = [*history, *new.tolist(), *completion.token_ids.tolist()]
        wanted = expected(MODEL, whole)[-len(completion.token_ids) :]
        np.testing.assert_allclose(completion.logprobs, wanted, atol=1e-5)


async def test_tools_run_while_others_generate():
    made, ticks = engine(), 0

    async def tool() -> None:
        nonlocal ticks
        for _ in range(20):
            await asyncio.sleep(0)
            ticks += 1

    made.open("a", noise_key=1)
    work = asyncio.create_task(tool())
    await made.generate("a", ids(5), sampling=Sampling(max_tokens=20))
    assert ticks == 20
    await work


@pytest.mark.parametrize("when", ["first", "later"])
async def test_a_failure_reaches_every_caller(when: str, monkeypatch: pytest.MonkeyPatch):
    made = engine(max_rows=2)
    real, calls = made._forward, 0

    class Failing:
        refresh, hold, leave = real.refresh, real.hold, real.leave

        def __call__(self, feeds):
            nonlocal calls
            calls += 1
            if when == "first" or calls > 3:
                raise RuntimeError("out of memory")
            return real(feeds)

    monkeypatch.setattr(made, "_forward", Failing())
    rows = [talk(made, f"s{n}", [9]) for n in range(5)]
    done = await asyncio.wait_for(asyncio.gather(*rows, return_exceptions=True), timeout=20)
    assert all(isinstance(item, EngineError) for item in done)
    assert "RuntimeError: out of memory" in str(done[0])
    with pytest.raises(EngineError, match="cannot go on"):
        await made.generate("s0", ids(3), sampling=Sampling())
    for number in range(5):
        made.end(f"s{number}")
    monkeypatch.setattr(made, "_forward", real)
    _, logprobs = await talk(made, "s0", [9])  # the engine itself goes on
    assert np.isfinite(logprobs[9:]).all()


async def test_broken_weights_are_an_engine_error():
    model = tiny()
    made = engine(model)
    with torch.no_grad():
        model.model.norm.weight[0] = float("nan")
    with pytest.raises(EngineError, match="must be numbers"):
        await talk(made, "a", [4])


async def test_a_cancelled_caller_leaves_the_others_alone():
    made = engine()
    task = asyncio.create_task(talk(made, "a", [5], max_tokens=200))
    other = asyncio.create_task(talk(made, "b", [5], max_tokens=30))
    for _ in range(20):
        await asyncio.sleep(0)
    task.cancel()
    history, _ = await other
    assert len(history) > 5
    with pytest.raises(EngineError, match="was cancelled"):
        await made.generate("a", ids(2), sampling=Sampling())
    made.end("a")
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_ending_a_session_that_generates_is_an_error_for_its_caller():
    made = engine()
    task = asyncio.create_task(talk(made, "a", [5], max_tokens=200))
    for _ in range(20):
        await asyncio.sleep(0)
    made.end("a")
    with pytest.raises(EngineError, match="ended while generating"):
        await task


def test_one_engine_serves_one_event_loop_after_another():
    made = engine()
    first = asyncio.run(talk(made, "a", [5]))
    made.end("a")
    second = asyncio.run(talk(made, "a", [5]))
    assert first[0] == second[0]
