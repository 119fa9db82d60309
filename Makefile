# Everything a person or CI runs. `make` alone lists the targets.
PYTHON  ?= python3
VENV    := .venv
BIN     := $(VENV)/bin
STAMP   := $(VENV)/.installed
WORKERS ?= $(shell nproc 2>/dev/null || echo 2)
SEEDS   ?= 200
REQUESTS ?= 50000
WORKFLOW ?= all

.PHONY: help demo test parts test-real check sweep bench generate lock clean
.DEFAULT_GOAL := help

help:  ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

demo: $(STAMP)  ## a simulated region comes up before your eyes; ONCE=1 ends when it is Ready
	@$(BIN)/python -m fleetd.sim.demo $(if $(ONCE),--once) \
	  --prometheus "$$($(BIN)/python -m tests.real.build --where prometheus)"

test: $(STAMP)  ## all tests that need nothing but Python
	$(BIN)/pytest -q -n $(WORKERS) -m "not real"

parts: $(STAMP)  ## build the real servers that are missing, once; PART=etcd for one (needs Go, and npm for some)
	@$(BIN)/python -m tests.real.build $(PART)

test-real: $(VENV)/.browser  ## make parts, then the tests against real servers
	@$(BIN)/python -m tests.real.run

check: $(VENV)/.browser  ## format, lint, types, layers, tidy rules, generated files, docs
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/basedpyright
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m topology.schema --check
	$(BIN)/python -m fleetd.surface.families --check
	$(BIN)/python -m fleetd.surface.openapi --check
	$(BIN)/python -m dashboards.source --check
	$(BIN)/pytest -q tests/tidy

sweep: $(STAMP)  ## crash points, seeds and made-up requests, more than in the tests: SEEDS=200 WORKFLOW=all REQUESTS=50000
	$(BIN)/python -m tests.surface.fuzzed $(REQUESTS)
	$(BIN)/python -m tests.twin.big --seeds $(SEEDS) --workflow $(WORKFLOW)

bench: $(STAMP)  ## all benchmarks, as ratios in one run; writes bench/results.json
	$(BIN)/python -m bench

generate: $(STAMP)  ## write the generated files anew: schemas, CRDs, reference pages, dashboards
	$(BIN)/python -m topology.schema
	$(BIN)/python -m fleetd.surface.families --write
	$(BIN)/python -m fleetd.surface.openapi --write
	$(BIN)/python -m dashboards.source --write

LOCK := uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-find-links \
	  --no-emit-index-url --no-header pyproject.toml

lock:  ## refresh the lock files with hashes (needs uv)
	$(LOCK) --extra dev -o requirements/dev.lock
	$(LOCK) --extra uvloop -c requirements/dev.lock -o requirements/run.lock
	$(LOCK) --extra dev --extra browser -c requirements/dev.lock -o requirements/browser.lock

clean:  ## remove what make made
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis .import_linter_cache build dist

$(STAMP): requirements/dev.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "fleetd needs Python 3.11 or newer; say which: make PYTHON=python3.12")'
	@echo "installing into $(VENV) (about a minute, once)"
	@$(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

# What drives a browser is large; `make demo` and `make test` do without.
$(VENV)/.browser: $(STAMP) requirements/browser.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/browser.lock
	@touch $@
