"""Make a Hugging Face model folder of a GGUF file, in single precision, tokenizer included.

    python scripts/gguf_to_hf.py SmolLM2-135M-Instruct.Q4_1.gguf models/smollm2

Needs `gguf` and `accelerate` beside what Outfox installs. What was quantised stays as coarse as it
was; only its numbers are written out.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # All that is needed lies in the file.

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig


def convert(source: Path, folder: Path) -> None:
    """Write the model of `source` into `folder`."""
    place = {"pretrained_model_name_or_path": source.parent, "gguf_file": source.name}
    tokenizer = AutoTokenizer.from_pretrained(**place)
    model = AutoModelForCausalLM.from_pretrained(
        **place, dtype=torch.float32, quantization_config=GgufConfig(dequantize=True)
    )
    tokenizer.save_pretrained(folder)
    model.save_pretrained(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path, help="a .gguf file")
    parser.add_argument("folder", type=Path, help="the folder to write")
    given = parser.parse_args()
    if not given.source.is_file():
        parser.error(f"a model is read from a .gguf file; {given.source} is none")
    convert(given.source, given.folder)


if __name__ == "__main__":
    main()
