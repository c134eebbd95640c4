# Two commands: `make train` and `make test`. `make train ARGS="steps=20"` passes settings on.
# `make test-trackers`: the libraries of TensorBoard, W&B, trackio and MLflow, in a venv of its own.

PYTHON ?= python3
VENV ?= .venv
PACKAGE ?= --editable '.[local]'
ARGS ?=

BIN := $(VENV)/bin
TORCH := $(shell sed -n 's/^torch==//p' constraints.txt)
INSTALL := $(BIN)/uv pip install --quiet --python $(BIN)/python --constraint constraints.txt

.PHONY: train test test-crash test-trackers install

train: install
	$(BIN)/outfox train $(ARGS)

test: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports
	OMP_NUM_THREADS=1 $(BIN)/pytest --numprocesses 2 --dist loadfile

# A run killed at each of its durable operations, with a full disk at each, and at 200 instants.
test-crash: $(VENV)/.test
	OUTFOX_TEST_CRASH=all OMP_NUM_THREADS=1 $(BIN)/pytest --numprocesses 2 tests/crash

test-trackers:
	$(MAKE) .venv-trackers/.test VENV=.venv-trackers \
	  PACKAGE="--editable '.[local,tensorboard,wandb,trackio,mlflow]'"
	OMP_NUM_THREADS=1 .venv-trackers/bin/pytest -p no:xdist tests/trackers

install: $(VENV)/.package

$(VENV)/.test: $(VENV)/.package
	$(INSTALL) --compile-bytecode --group test
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
