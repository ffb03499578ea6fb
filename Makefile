PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
WORK ?=
QUICK ?=

.PHONY: demo test test-fast test-all java check bench clean

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

demo: $(INSTALLED) java  ## the main job, end to end, on sample data that it makes
	$(BIN)/python examples/demo.py

test: $(INSTALLED) java  ## all behaviours, on Spark too
	$(BIN)/python -m pytest -n auto -m 'not spark and not deep'
	$(BIN)/python -m pytest -m 'spark and not deep' tests

test-fast: $(INSTALLED)  ## the tests without the slow ones and without Spark
	$(BIN)/python -m pytest -n auto -m 'not slow and not spark and not deep'

test-all: $(INSTALLED) java  ## the deep runs: many seeds, every damaged byte, clusters, soak
	$(BIN)/python -m pytest -n auto -m 'deep and not spark' tests
	$(BIN)/python -m pytest -m 'deep and spark' tests

java:  # for Spark
	@if command -v java > /dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; then \
		apt-get -qq update && apt-get -qq install -y openjdk-17-jre-headless; \
	else \
		echo "No Java: what needs Spark is skipped. To have it, run:"; \
		echo "  sudo apt-get install openjdk-17-jre-headless"; \
	fi

check: $(INSTALLED)  ## lint, types, import boundaries, docs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_boundaries.py README.md docs

bench: $(VENV)/.bench  ## make bench WORK=offset QUICK=1
	$(BIN)/python -m benchmarks $(if $(WORK),--work $(WORK)) $(if $(QUICK),--quick)

clean:
	rm -rf $(VENV) demo-data
