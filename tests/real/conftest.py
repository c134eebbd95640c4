"""What `make test-real` prepared: a model folder in the environment, and the user's data."""

import os
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def model() -> Path:
    """SmolLM2-135M-Instruct as a Hugging Face folder."""
    return Path(os.environ.get("OUTFOX_TEST_MODEL", Path(sys.prefix) / "smollm2"))


@pytest.fixture(scope="session")
def data() -> Path:
    """Real questions, and passages that hold the evidence of each."""
    if "OUTFOX_DATA" not in os.environ:
        pytest.skip("OUTFOX_DATA names the folder that holds qa/; it is not set")
    return Path(os.environ["OUTFOX_DATA"]).resolve() / "qa"
