PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
WORK ?=
QUICK ?=
# One worker takes all that needs Spark, in the order given, so that it comes first.
PYTEST = $(BIN)/python -m pytest -n auto --dist loadgroup --no-loadscope-reorder
S3_SERVER := $(VENV)/moto/bin/moto_server
KERNELS ?= $(shell command -v cargo 2> /dev/null)
CRATE := kernels/Cargo.toml
ifneq ($(KERNELS),)
WITH_KERNELS := $(VENV)/.kernels
else
WITH_KERNELS := no-kernels
export FRETSAW_KERNELS := 0
endif

.PHONY: demo test test-fast test-all java kernels no-kernels check bench docs wheel clean

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "fretsaw needs Python 3.11 or later: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(INSTALLED): pyproject.toml $(BIN)/python
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

# A server for S3, whose dependencies are nobody else's.
$(S3_SERVER): | $(BIN)/python
	$(BIN)/python -m venv $(VENV)/moto
	$(VENV)/moto/bin/python -m pip install --quiet 'moto[s3,server]>=5'

$(VENV)/.bench: $(INSTALLED)
	$(BIN)/python -m pip install --quiet --editable '.[dev,bench]'
	@touch $@

$(VENV)/.kernels: kernels/pyproject.toml $(CRATE) kernels/Cargo.lock kernels/fretsaw_kernels.pyi \
		$(shell find kernels/src -name '*.rs') | $(INSTALLED)
	@echo "Building the kernels; make KERNELS= ... goes on without them"
	$(BIN)/python -m pip install --quiet ./kernels
	@touch $@

kernels: $(WITH_KERNELS)  ## the compiled decoders, where there is cargo

no-kernels:
	@echo "No kernels: the same results, slower. For speed install Rust 1.85 or later (https://rustup.rs)."

demo: $(INSTALLED) $(WITH_KERNELS) java  ## the main job, end to end, on sample data that it makes
	$(BIN)/python examples/demo.py

test: $(INSTALLED) $(WITH_KERNELS) $(S3_SERVER) java  ## all behaviours, on Spark too
	$(if $(KERNELS),cargo test --quiet --manifest-path $(CRATE) --no-default-features)
	$(PYTEST) -m 'not deep'

test-fast: $(INSTALLED) $(WITH_KERNELS) $(S3_SERVER)  ## the tests without the slow ones and without Spark
	$(PYTEST) -m 'not slow and not spark and not deep'

test-all: $(INSTALLED) $(WITH_KERNELS) $(S3_SERVER) java  ## the deep runs: many seeds, every damaged byte, clusters, soak
	$(PYTEST) -m deep tests

java:  # for Spark
	@if command -v java > /dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; then \
		apt-get -qq update && apt-get -qq install -y openjdk-17-jre-headless; \
	else \
		echo "No Java: what needs Spark is skipped. To have it, run:"; \
		echo "  sudo apt-get install openjdk-17-jre-headless"; \
	fi

check: $(INSTALLED) $(WITH_KERNELS)  ## lint, types, import boundaries, docs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_boundaries.py README.md docs
ifneq ($(KERNELS),)
	cargo fmt --check --manifest-path $(CRATE)
	cargo clippy --quiet --manifest-path $(CRATE) --all-targets -- -D warnings
	$(BIN)/python -m mypy.stubtest --ignore-missing-stub fretsaw_kernels
endif

bench: $(VENV)/.bench $(WITH_KERNELS)  ## make bench WORK=offset QUICK=1
	$(BIN)/python -m benchmarks $(if $(WORK),--work $(WORK)) $(if $(QUICK),--quick)

$(VENV)/.docs: $(INSTALLED)
	$(BIN)/python -m pip install --quiet --editable '.[dev,docs]'
	@touch $@

docs: $(VENV)/.docs  ## the documentation as a site, into site/
	$(BIN)/mkdocs build --strict --quiet
	@echo "site/index.html"

wheel: $(BIN)/python $(filter no-kernels,$(WITH_KERNELS))  ## both packages into dist/; the kernels for manylinux_2_28
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .
ifneq ($(KERNELS),)
	$(BIN)/python -m pip install --quiet 'maturin[zig]>=1.9,<2'
	PATH="$(abspath $(BIN)):$$PATH" maturin build --quiet --release --zig \
		--compatibility manylinux_2_28 --manifest-path $(CRATE) --out dist
endif

clean:
	rm -rf $(VENV) demo-data dist site kernels/target
