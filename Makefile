# What a developer types. `make` alone lists the targets.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUNS := $(VENV)/.runs
STAMP := $(VENV)/.installed
UV := $(VENV)/lock/bin/uv
LOWEST := $(VENV)/lowest

.DEFAULT_GOAL := help
.PHONY: help venv docs demo test test-full test-cluster test-lowest test-beside wheels check format pictures curves elasticsearch lock clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

venv: $(STAMP) ## Create .venv with searchapp and the development tools

# What it takes to run searchapp: the development tools are half as large again, and slower to install.
# The files that are installed are those whose hashes are known here; searchapp itself is built with what is installed.
# They are compiled by all processors at once, which pip doesn't do: without that each start of the program would compile
# them again where PYTHONDONTWRITEBYTECODE is set, as containers often do. So would each process of the tests.
COMPILE := $(BIN)/python -m compileall -qq -j 0 $(VENV)/lib searchapp || true

NATIVE := searchapp/lucene/native
$(RUNS): pyproject.toml requirements.txt hatch_build.py $(wildcard $(NATIVE)/*.[ch]) $(NATIVE)/compilation.py
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

# Python 3.11 has wheels of all of these versions. Old packages use what newer Pythons and packages call deprecated.
LOWEST_TESTS := tests/test_requirements.py tests/analysis/test_recorded.py tests/analysis/test_time_limit.py \
  tests/engines/embedded/test_recorded.py tests/engines/test_elasticsearch_clients.py tests/evaluation tests/formats tests/mcp tests/serving \
  tests/api/test_pyterrier.py tests/tui/test_terminal.py tests/cli/test_demo.py tests/cli/test_doctor.py tests/cli/test_main.py tests/cli/test_train.py \
  tests/embeddings/test_local_models.py

test-lowest: $(LOWEST)/.installed ## Run recorded answers and a part of the other tests with the lowest versions
	SEARCHAPP_TEST_PROFILE=short SEARCHAPP_TEST_VERSIONS=lowest PYTHONDONTWRITEBYTECODE= $(LOWEST)/bin/python -m pytest \
	  -n $(WORKERS) --dist loadfile -m 'not data' -W ignore::DeprecationWarning $(LOWEST_TESTS)

$(LOWEST)/.installed: pyproject.toml requirements-lowest.txt | $(UV)
	$(UV) venv --quiet --clear --python 3.11 $(LOWEST)
	$(UV) pip install --quiet --python $(LOWEST) --compile-bytecode --require-hashes -r requirements-lowest.txt
	$(UV) pip install --quiet --python $(LOWEST) --no-deps --no-build-isolation -e .
	touch $@

test-beside: $(UV) ## Install the wheel beside NumPy < 2.3, pandas, PyTerrier and ranx, and rank with it
	scripts/test_beside.sh $(UV) $(VENV)/beside

wheels: | $(UV) ## Build the source archive and the wheels into dist/, and run each wheel
	scripts/build_wheels.sh $(UV) $(PYTHON)

check: $(STAMP) ## Check format, lint, types, the direction of imports, licences and the documentation; report imports
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/mypy benchmarks
	$(BIN)/lint-imports
	$(BIN)/python -m scripts.licences
	$(BIN)/python -m scripts.imports
	$(MAKE) docs

docs: $(STAMP) ## Build the documentation site in build/site; a warning is an error
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going -d build/doctrees docs build/site

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

# Pins stay as they are while the ranges in pyproject.toml allow: UPGRADE=--upgrade takes the newest of everything,
# UPGRADE='--upgrade-package numpy' of one package. The lowest versions always follow pyproject.toml.
COMPILE_PINS := $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
  --custom-compile-command 'make lock' pyproject.toml -
lock: $(UV) ## Write the requirements files after a range in pyproject.toml has changed
	printf 'hatchling\neditables\n' | $(COMPILE_PINS) $(UPGRADE) -o requirements.txt
	printf 'editables\n' | $(COMPILE_PINS) $(UPGRADE) --constraints requirements.txt --extra dev -o requirements-dev.txt
	printf 'editables==0.5\n' | $(COMPILE_PINS) --upgrade --resolution lowest-direct \
	  --extra cwl-eval --extra irds --extra learn --extra mcp --extra model2vec --extra parquet --extra pyterrier --extra test -o requirements-lowest.txt
	$(PYTHON) scripts/tested_versions.py

$(UV):
	$(PYTHON) -m venv $(VENV)/lock
	$(VENV)/lock/bin/python -m pip install --quiet uv==0.13.9

clean: ## Remove .venv and all that the tools leave
	rm -rf $(VENV) $(EMBEDDED)/kernels.native.so* .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
	find searchapp tests -name __pycache__ -prune -exec rm -rf {} +
