# What a developer types. `make` alone lists the targets.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUNS := $(VENV)/.runs
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help venv demo test test-full check format elasticsearch clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

venv: $(STAMP) ## Create .venv with searchapp and the development tools

# What it takes to run searchapp: the development tools are half as large again, and slower to install.
$(RUNS): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "searchapp needs Python 3.11 or newer and $(PYTHON) is older: make PYTHON=python3.12" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e .
	touch $@

$(STAMP): $(RUNS)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	touch $@

demo: $(RUNS) ## Run the demonstration: no server, no network
	$(BIN)/searchapp demo

test: $(STAMP) ## Run all tests
	SEARCHAPP_TEST_PROFILE=short $(BIN)/python -m pytest

test-full: $(STAMP) ## Run all tests, with the long search for counterexamples
	SEARCHAPP_TEST_PROFILE=full $(BIN)/python -m pytest

check: $(STAMP) ## Check format, lint, types and the direction of imports
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP) ## Format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

elasticsearch: $(STAMP) ## Start an Elasticsearch to work with, until Ctrl-C
	$(BIN)/python -m tests.server

clean: ## Remove .venv and all that the tools leave
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
	find searchapp tests -name __pycache__ -prune -exec rm -rf {} +
