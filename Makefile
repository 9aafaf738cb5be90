# Shakedown. Two commands set everything up: `make run` and `make test`.
# On Debian and Ubuntu the system libraries that Qt needs are installed when they are missing.

PYTHON ?= python3
VENV := .venv
BENCH := .venv-bench
BIN := $(VENV)/bin
UV := $(BIN)/uv
APT_LIBS := libegl1 libgl1 libglib2.0-0 libdbus-1-3 libxkbcommon0 libfontconfig1 fonts-dejavu-core \
	libxcb-cursor0 libxcb-icccm4 libxcb-keysyms1 libxcb-shape0 libxkbcommon-x11-0 xvfb xauth

# A start without compiled bytecode costs three times as much.
unexport PYTHONDONTWRITEBYTECODE
# Our matrices are small: more BLAS threads than one cost several times the work.
export OPENBLAS_NUM_THREADS = 1

.PHONY: run test setup system check unit bench docs screenshots lock clean

run: setup
	@if [ -n "$$DISPLAY$$WAYLAND_DISPLAY" ] || [ "$$(uname)" = Darwin ]; then $(BIN)/shakedown; \
	else echo "No display: running the same experiment headless."; $(BIN)/shakedown demo; fi

test: setup check unit

setup: system $(VENV)/.prepared

# Fails only where it has to: without a way to install, it says what is missing and goes on.
system:
	@sh requirements/system.sh $(APT_LIBS)

$(UV): requirements/bootstrap.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements/bootstrap.txt
	@touch $(UV)

$(VENV)/.ready: $(UV) requirements/dev.txt pyproject.toml
	$(UV) pip install --quiet --python $(BIN)/python --compile-bytecode --require-hashes -r requirements/dev.txt
	$(UV) pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
	@touch $@

# What is compiled on first use is compiled here: the first identification would wait for it.
$(VENV)/.prepared: $(VENV)/.ready
	@echo "Compiling the numerical core: half a minute, once."
	@$(BIN)/python -m app.prepare
	@touch $@

check: $(VENV)/.ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

unit: $(VENV)/.ready
	sh requirements/with_display.sh $(BIN)/python -m pytest -n 2 --dist worksteal

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
lock: $(UV)
	$(UV) pip compile -q pyproject.toml --all-extras --group dev --generate-hashes --no-annotate --no-header \
		--universal --python-version 3.11 -o requirements/dev.txt
	$(UV) pip compile -q pyproject.toml --all-extras --group dev --group peers --generate-hashes --no-annotate --no-header \
		--universal --python-version 3.11 -c requirements/dev.txt -o requirements/peers.txt

clean:
	rm -rf $(VENV) $(BENCH) .mypy_cache .ruff_cache .pytest_cache site
