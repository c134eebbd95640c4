"""Every engine that needs no service, through the public check."""

import numpy as np
import pytest

from outfox.core.errors import ContractError
from outfox.core.protocols import Engine
from outfox.policies.engines.transformers import TransformersEngine
from outfox.policies.tiny import build_model, build_tokenizer
from outfox.testing.engines import FakeEngine, check_engine

TOKENIZER = build_tokenizer(["capital", "of", "Paris"])
PROMPT = np.asarray(TOKENIZER.encode("<|user|>capital of Paris ?<|end|>"), np.int64)


async def test_the_transformers_engine_keeps_the_protocol():
    model = build_model(TOKENIZER, hidden=32, heads=2, layers=2, intermediate=48, context=96)
    await check_engine(
        lambda: TransformersEngine(model, TOKENIZER), prompt=PROMPT, weights=model.state_dict()
    )


async def test_the_fake_engine_keeps_the_protocol():
    def make() -> Engine:
        return FakeEngine(lambda session, text: "Paris " * 3, context_length=96)

    await check_engine(make, prompt=PROMPT)
    await check_engine(lambda: FakeEngine(lambda *_: "Paris", TOKENIZER), prompt=PROMPT)


async def test_the_check_finds_an_engine_that_ignores_its_noise_key():
    said = iter("abcdefghijklmnopqrstuvwxyz")
    with pytest.raises(ContractError, match="equal noise keys"):
        await check_engine(lambda: FakeEngine(lambda *_: next(said)), prompt=PROMPT)


async def test_the_check_finds_an_engine_that_takes_weights_too_early():
    class Early(FakeEngine):
        def load_weights(self, weights, policy_version):
            self.policy_version = policy_version

    with pytest.raises(ContractError, match="new weights under an open session"):
        await check_engine(lambda: Early(lambda *_: "a"), prompt=PROMPT)
