# What a developer types. `make` alone lists the targets.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUNS := $(VENV)/.runs
STAMP := $(VENV)/.installed
LOCK := $(VENV)/lock/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
  --custom-compile-command 'make lock' pyproject.toml -

.DEFAULT_GOAL := help
.PHONY: help venv demo test test-full test-cluster check format pictures curves elasticsearch lock clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

venv: $(STAMP) ## Create .venv with searchapp and the development tools

# What it takes to run searchapp: the development tools are half as large again, and slower to install.
# The files that are installed are those whose hashes are known here; searchapp itself is built with what is installed.
# They are compiled by all processors at once, which pip doesn't do: without that each start of the program would compile
# them again where PYTHONDONTWRITEBYTECODE is set, as containers often do. So would each process of the tests.
COMPILE := $(BIN)/python -m compileall -qq -j 0 $(VENV)/lib searchapp || true

EMBEDDED := searchapp/engines/embedded
$(RUNS): pyproject.toml requirements.txt hatch_build.py $(wildcard $(EMBEDDED)/*.[ch]) $(EMBEDDED)/compiling.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "searchapp needs Python 3.11 or newer and $(PYTHON) is older: make PYTHON=python3.12" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile --require-hashes -r requirements.txt
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e .
	$(COMPILE)
	touch $@

$(STAMP): $(RUNS) requirements-dev.txt
	$(BIN)/python -m pip install --quiet --no-compile --require-hashes -r requirements-dev.txt
	$(COMPILE)
	touch $@

demo: $(RUNS) ## Run the demonstration: no server, no network
	$(BIN)/searchapp demo

# How many processes run the tests; pytest by itself runs them in one.
WORKERS ?= auto
# What is compiled is kept, also where PYTHONDONTWRITEBYTECODE is set, as containers often do: each process of the tests, and
# each program that they start, would compile all of it again.
TESTS := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile

test: $(STAMP) ## Run all tests
	SEARCHAPP_TEST_PROFILE=short $(TESTS)

test-full: $(STAMP) ## Run all tests, with the long search for counterexamples
	SEARCHAPP_TEST_PROFILE=full $(TESTS)

# One process: there is one cluster. Where the real data are not named by SEARCHAPP_TEST_DATA, their comparison is skipped.
test-cluster: $(STAMP) ## Run the tests on three Elasticsearch nodes, with every kill
	SEARCHAPP_TEST_PROFILE=full PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -v -n 0 tests/cluster

check: $(STAMP) ## Check format, lint, types, the length of modules and the direction of imports
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/python scripts/module_lengths.py
	$(BIN)/mypy
	$(BIN)/mypy benchmarks
	$(BIN)/lint-imports

format: $(STAMP) ## Format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

pictures: $(STAMP) ## Make the pictures in docs/images again; that of the report takes Chromium with its driver
	$(BIN)/python -m scripts.pictures
	$(BIN)/python -m scripts.report_pictures

curves: $(STAMP) ## Draw the learning curves in docs/images/curves again, from the official data in DATA
	$(BIN)/python -m scripts.learning_curves $(DATA)

elasticsearch: $(STAMP) ## Start an Elasticsearch to work with, until Ctrl-C
	$(BIN)/python -m tests.server

lock: ## Write the requirements files after a version in pyproject.toml has changed
	$(PYTHON) -m venv $(VENV)/lock
	$(VENV)/lock/bin/python -m pip install --quiet uv==0.13.9
	printf 'hatchling==1.33.0\neditables==0.5\n' | $(LOCK) -o requirements.txt
	printf 'editables==0.5\n' | $(LOCK) --extra dev -o requirements-dev.txt

clean: ## Remove .venv and all that the tools leave
	rm -rf $(VENV) $(EMBEDDED)/kernels.native.so* .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
	find searchapp tests -name __pycache__ -prune -exec rm -rf {} +
