# Everything a contributor runs. `make help` lists it.
#
# The environment is made from nothing and remade when pyproject.toml or constraints.txt change.
# It never uses an environment that happens to be active.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# Only folders with something in them: mypy refuses the others.
SOURCES = $(foreach folder,src tests bench examples tools,$(if $(shell find $(folder) -name '*.py' -print -quit 2>/dev/null),$(folder)))
# Tests with real processes wait more than they work, so there are more of them at a time than processors.
SERVED := tests/e2e/cli tests/e2e/gateway tests/e2e/runners tests/e2e/serve \
          tests/e2e/test_checker.py tests/e2e/test_kill_sqlite.py tests/e2e/test_pgbouncer.py
AT_ONCE := 4
# Those that freeze nodes and databases by the clock come last. What minds no delay uses the time in which they wait:
# histories in virtual time, and whatever BESIDE names.
PATIENT := tests/property tests/simulation tests/contract/test_machine_itself.py tests/contract/test_machine_sqlite.py
BESIDE  :=
YIELD   := nice -n 19
PYTEST   = $(BIN)/python -m pytest --dist worksteal
# Of tests that ARGS picks, a part may have none.
SOME     = $(if $(ARGS),|| test $$? -eq 5)
PIP     = $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

# What the caller's shell says about Python must not reach into ours.
unexport PYTHONHOME
unexport PYTHONPATH
unexport PIP_USER
# Each test that starts a process would compile all of Headway again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help run test lint types layers unit timed patient format docs bench soak fuzz clean
.DELETE_ON_ERROR:

help: ## Show this list
	@awk 'BEGIN { FS = ":.*## " } /^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

run: $(VENV)/.run ## Set up, then serve the demo until Ctrl-C (ARGS="--port 9000" passes options on)
	@$(BIN)/headway serve --demo $(ARGS)

test: lint ## Set up, then every check there is
	@$(MAKE) --no-print-directory unit BESIDE="types layers"

lint: $(VENV)/.dev ## Formatting and lint rules
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/ruff check $(SOURCES)

types: $(VENV)/.dev ## Static types, strict
	$(YIELD) $(BIN)/mypy $(SOURCES)

layers: $(VENV)/.dev ## Who may import whom
	$(YIELD) $(BIN)/lint-imports

unit: $(VENV)/.dev ## All tests: first those in one process, then those with many (ARGS="-k name" picks some)
	$(PYTEST) -n auto --ignore tests/e2e $(PATIENT:%=--ignore %) $(ARGS) $(SOME)
	$(PYTEST) -n $(AT_ONCE) $(SERVED) $(ARGS) $(SOME)
	@$(MAKE) --no-print-directory --jobs --output-sync timed patient $(BESIDE)

timed: $(VENV)/.dev
	$(PYTEST) -n 2 tests/e2e $(SERVED:%=--ignore %) $(ARGS) $(SOME)

patient: $(VENV)/.dev
	$(YIELD) $(PYTEST) -n auto --timeout=600 $(PATIENT) $(ARGS) $(SOME)

format: $(VENV)/.dev ## Format the code and fix what can be fixed by itself
	$(BIN)/ruff check --fix-only $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

docs: $(VENV)/.dev ## Write the reference pages that are made from the code
	$(BIN)/python -m tools.reference

bench: $(VENV)/.bench ## Run all benches and write bench/RESULTS.md (ARGS=--plot draws them)
	$(BIN)/python -m bench all $(ARGS)

soak: $(VENV)/.dev ## The long runs: 20,000 seeds, 100 kills, chaos over minutes
	HEADWAY_SIM_SEEDS=$${HEADWAY_SIM_SEEDS:-20000} HEADWAY_CLUSTER_SEEDS=$${HEADWAY_CLUSTER_SEEDS:-5000} \
	  $(BIN)/python -m pytest -n auto --timeout=0 tests/simulation $(ARGS)
	HEADWAY_KILL_ROUNDS=$${HEADWAY_KILL_ROUNDS:-100} HEADWAY_CHAOS_SECONDS=$${HEADWAY_CHAOS_SECONDS:-300} \
	  $(BIN)/python -m pytest --timeout=0 tests/e2e $(ARGS)

fuzz: $(VENV)/.dev ## Ask the HTTP API everything its document allows, and what it forbids, for minutes
	HEADWAY_FUZZ_EXAMPLES=$${HEADWAY_FUZZ_EXAMPLES:-100} \
	  $(BIN)/python -m pytest --timeout=0 tests/unit/gateway/test_schema_fuzz.py $(ARGS)

clean: ## Remove the environment and everything tools left behind
	rm -rf $(VENV) build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find $(SOURCES) -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Headway needs Python 3.11 or newer, and '$(PYTHON)' is: $$($(PYTHON) --version 2>&1)." >&2; \
	  echo "Name another one: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	@echo "Setting up $(VENV) ..." >&2
	@$(PYTHON) -m venv --clear $(VENV)

# Running needs little, so it is ready soon; what checks need comes with the first check.
$(VENV)/.run: pyproject.toml constraints.txt $(BIN)/python
	@$(PIP) --editable '.[fast,server]'
	@touch $@

# The schedulers that Headway is measured beside are many packages; only benches need them.
$(VENV)/.bench: $(VENV)/.dev
	@echo "Installing what the benches need ..." >&2
	@$(PIP) --editable '.[dev,bench]'
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt $(BIN)/python
	@echo "Installing what the checks need ..." >&2
	@$(PIP) --editable '.[dev]'
	@touch $(VENV)/.run $@
