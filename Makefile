PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
WORK ?=
QUICK ?=

.PHONY: demo test test-fast check bench clean

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "fretsaw needs Python 3.11 or later: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(INSTALLED): pyproject.toml $(BIN)/python
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

$(VENV)/.bench: $(INSTALLED)
	$(BIN)/python -m pip install --quiet --editable '.[dev,bench]'
	@touch $@

demo: $(INSTALLED)  ## the main job, end to end, on sample data that it makes
	$(BIN)/python examples/demo.py

test: $(INSTALLED)  ## all the tests
	$(BIN)/python -m pytest -n auto

test-fast: $(INSTALLED)  ## the tests without the slow ones
	$(BIN)/python -m pytest -n auto -m 'not slow'

check: $(INSTALLED)  ## lint, types, import boundaries, docs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_boundaries.py README.md docs

bench: $(VENV)/.bench  ## make bench WORK=offset QUICK=1
	$(BIN)/python -m benchmarks $(if $(WORK),--work $(WORK)) $(if $(QUICK),--quick)

clean:
	rm -rf $(VENV) demo-data
