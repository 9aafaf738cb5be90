# Shakedown. Two commands set everything up: `make run` and `make test`. The work is done by
# setup_environment.py, which also works without `make`. On Debian and Ubuntu the system libraries that Qt
# needs are installed when they are missing.

PYTHON ?= python3
BENCH := .venv-bench
BIN := .venv/bin
UV := $(BIN)/uv
HERE := $(PYTHON) setup_environment.py

# A start without compiled bytecode costs three times as much.
unexport PYTHONDONTWRITEBYTECODE
# Our matrices are small: more BLAS threads than one cost several times the work.
export OPENBLAS_NUM_THREADS = 1

.PHONY: run test setup check unit bench docs screenshots lock release clean

run setup check release:
	$(HERE) $@

test: check unit

unit:
	$(HERE) test

# The peers have an environment of their own: one of them installs a package named tests, which hides ours.
bench: setup $(BENCH)/.ready
	$(BENCH)/bin/python -m benchmarks; missed=$$?; $(BIN)/python -m docs.benchmarks && exit $$missed

$(BENCH)/.ready: requirements/peers.txt pyproject.toml
	$(PYTHON) -m venv $(BENCH)
	$(UV) pip install --quiet --python $(BENCH)/bin/python --compile-bytecode --require-hashes -r requirements/peers.txt
	$(UV) pip install --quiet --python $(BENCH)/bin/python --no-deps --no-build-isolation -e .
	@touch $@

docs: setup
	$(BIN)/python -m docs.command_line
	$(BIN)/python -m docs.coverage
	$(BIN)/python -m docs.benchmarks
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

screenshots: setup
	sh requirements/with_display.sh $(BIN)/python -m docs.screenshots

# Versions and hashes, no addresses: uv and pip both install from these with hashes required.
lock: setup
	$(UV) pip compile -q pyproject.toml --all-extras --group dev --generate-hashes --no-annotate --no-header \
		--universal --python-version 3.11 -o requirements/dev.txt
	$(UV) pip compile -q pyproject.toml --all-extras --group dev --group peers --generate-hashes --no-annotate --no-header \
		--universal --python-version 3.11 -c requirements/dev.txt -o requirements/peers.txt

clean:
	rm -rf .venv $(BENCH) dist .mypy_cache .ruff_cache .pytest_cache site
