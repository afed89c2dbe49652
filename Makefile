# Three commands do everything on a machine with Python 3.10 or newer, make and git:
#   make demo    the main job, checked and reported
#   make test    every check and test
#   make studio  the block studio, in the browser
# All create .venv first; pip, and npm for the studio, are the only things that use the network.

PYTHON ?= python3
# Test workers; `make test JOBS=8` on a larger machine.
JOBS ?= 2

VENV := .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/.installed
CHECKED := src tests examples tools benchmarks hatch_build.py
BROWSER_STAMP := $(VENV)/.studio-test
# PyTorch, TensorFlow, JAX and Keras have an environment of their own: `make test` shows that nothing needs them.
FRAMEWORKS := .venv-frameworks
FRAMEWORKS_STAMP := $(FRAMEWORKS)/.installed
# Tests of the bridges, and what of the package imports a framework.
BRIDGES := $(wildcard tests/pytorch tests/jax_bridge tests/tensorflow_bridge tests/keras_bridge)
BRIDGE_SOURCES := $(foreach name,torch jax tensorflow keras,$(wildcard src/convgrad/$(name).py src/convgrad/_bridges/$(name)))
# What has targets of its own.
ELSEWHERE := tests/studio_browser tests/outside $(BRIDGES) $(BRIDGE_SOURCES)
# Kernels of these tests are compiled at level 0: a fifth of the time, the same bits. The others have users' code.
QUICK := CONVGRAD_OPT_LEVEL=0
# The studio's page: `make studio PAGE=my.json`.
PAGE ?=

# Tests start hundreds of children. Where nothing is kept of compiling the package's modules each takes twice as long
# (0.44 s of CPU for a first call instead of 0.25), so a variable that forbids it is not heeded here.
export PYTHONDONTWRITEBYTECODE :=

.DELETE_ON_ERROR:
.PHONY: help demo install install-frameworks test lint format docs changelog emulate devices campaign accuracy soak faults clean
.PHONY: studio studio-build test-studio test-cc test-long test-machines test-dask test-frameworks dist wheel test-dist
.DEFAULT_GOAL := help

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

demo: $(STAMP) ## check a MobileNet layer's filter gradient, then train a network on digits
	@$(PY) examples/demo.py
	@mkdir -p build
	@echo
	@$(PY) examples/digits.py --plot build/digits.png
	@echo
	@echo "Next: README.md has an example per operation, examples/ a gradient check, a TF1 snippet moved over and"
	@echo "      a photograph sharpened, docs/index.md all pages, and 'make test' runs every check."

test: lint ## run every check and test
	@echo "== pytest"
	@$(QUICK) $(PY) -m pytest --quiet -n $(JOBS) --dist worksteal $(addprefix --ignore ,$(ELSEWHERE)) tests src tools benchmarks

studio: studio-build ## build the block studio's page if needed and open it in the browser (PAGE=my.json)
	@$(VENV)/bin/convgrad studio $(PAGE)

studio-build: $(STAMP) ## build the studio's page, with this machine's node or the one of PyPI
	@$(PY) tools/studio_page.py

test-studio: studio-build $(BROWSER_STAMP) ## the studio's types and logic, then the studio in a real Chromium
	@echo "== tsc"
	@$(PY) tools/studio_page.py --npm run --silent check
	@echo "== vitest"
	@$(PY) tools/studio_page.py --npm run --silent test
	@echo "== pytest, in Chromium"
	@$(PY) -m pytest --quiet -n $(JOBS) --dist worksteal tests/studio_browser

# After `make test`, CC_TESTS=cc_long is what is left.
CC_TESTS ?= cc_long or not cc_long
test-cc: $(STAMP) ## the C++ headers with every compiler and setting, and exported packs on every target found here
	@$(PY) -m pytest --quiet -n $(JOBS) --dist worksteal -m '$(CC_TESTS)' tests/cc $(wildcard tests/export) tests/pages_files/test_exports.py

test-long: $(STAMP) ## more random problems, vectors this machine does not have, whole trainings, slow faults and clusters, the fit of costs, the site
	@$(QUICK) $(PY) -m pytest --quiet -n $(JOBS) --dist worksteal -m long $(addprefix --ignore ,$(ELSEWHERE)) tests

# An Intel server and a small CPU, by their vectors and caches (tests/machines.py). Plans for these are part of `make test`.
MACHINES ?= server small
MACHINE_TESTS := $(patsubst %,tests/numeric/test_%.py,kernels kernel_shapes operations grouped dense_planes dense_filter winograd winograd_groups winograd_split \
  winograd_dilated few_channels hard_numbers accuracy norm norm_bits) tests/cli/test_run.py
test-machines: $(STAMP) ## the kernels' tests with the code users get, and as other machines would compute (MACHINES="server small")
	@echo "== pytest, this machine, as users compile"
	@$(PY) -m pytest --quiet -n $(JOBS) --dist worksteal tests/numeric
	@for each in $(MACHINES); do \
	  echo "== pytest, as on $$each"; \
	  $(QUICK) $(PY) -m pytest --quiet -n $(JOBS) --dist worksteal --machine $$each $(MACHINE_TESTS) || exit 1; \
	done

test-dask: $(STAMP) ## Dask's arrays on clusters at length: memory limits, workers that die, thousands of random chunkings
	@$(PY) -m pytest --quiet -n $(JOBS) --dist worksteal -m 'dask_long or long or not dask_long' tests/dask_bridge tests/tools/test_dask_tools.py tests/cli/test_run_dask_*.py tests/cli/test_run_scheduler.py tests/examples

test-frameworks: $(FRAMEWORKS_STAMP) ## PyTorch, JAX, TensorFlow and Keras computing with convgrad, and comparisons with TensorFlow, PyTorch, JAX and Keras
	@for each in $(BRIDGES); do \
	  echo "== pytest, $$each"; \
	  $(QUICK) $(FRAMEWORKS)/bin/python -m pytest --quiet -n $(JOBS) --dist worksteal $$each || exit 1; \
	done
	@echo "== pytest, arrays and documented examples"
	@$(QUICK) $(FRAMEWORKS)/bin/python -m pytest --quiet -n $(JOBS) --dist worksteal tests/arrays $(BRIDGE_SOURCES)
	@echo "== pytest, comparisons"
	@$(FRAMEWORKS)/bin/python -m pytest --quiet -n $(JOBS) --dist worksteal -m peers $(addprefix --ignore ,$(BRIDGES)) --ignore tests/arrays --ignore tests/outside tests

dist: $(STAMP) ## build the archive of the sources and the wheel, with the studio's page, into dist, and list them
	@$(PY) tools/dist.py

wheel: dist ## the same: the wheel is made of the archive

test-dist: dist ## install the wheel in an empty environment outside of the clone, and use it there
	@$(PY) -m pytest --quiet tests/outside

lint: $(STAMP) ## check format, lint and types
	@echo "== ruff format"
	@$(PY) -m ruff format --check --quiet $(CHECKED) || { echo "run: make format"; exit 1; }
	@echo "== ruff check"
	@$(PY) -m ruff check --quiet $(CHECKED)
	@echo "== mypy --strict"
	@$(PY) -m mypy

format: $(STAMP) ## format the code and fix what ruff can fix
	@$(PY) -m ruff format $(CHECKED)
	@$(PY) -m ruff check --fix $(CHECKED)

docs: $(STAMP) ## build the pages as a site in build/site, without network; warnings are errors
	@$(PY) tools/draw_geometry.py
	@$(PY) tools/draw_chunks.py
	@NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict --quiet
	@echo "open build/site/index.html"

changelog: ## fold changelog.d into CHANGELOG.md (VERSION=0.2.0 DATE=2026-11-17), also into a section that is there
	@$(PYTHON) tools/changelog.py "$(VERSION)" "$(DATE)"

emulate: $(STAMP) ## run the AArch64 kernels under QEMU (needs qemu-user and gcc-aarch64-linux-gnu)
	@$(PY) tools/emulate.py

devices: $(STAMP) ## run the kernels of every row on its device, emulated or here (tools/devices.py says what to install)
	@$(PY) tools/devices.py

campaign: $(STAMP) ## try random problems in every way (CAMPAIGN_MINUTES=5 CAMPAIGN_SEED=1 CAMPAIGN_PROBLEMS= CAMPAIGN_PEERS=0)
	@CAMPAIGN_MINUTES="$(CAMPAIGN_MINUTES)" CAMPAIGN_SEED="$(CAMPAIGN_SEED)" CAMPAIGN_PROBLEMS="$(CAMPAIGN_PROBLEMS)" \
	  CAMPAIGN_PEERS="$(CAMPAIGN_PEERS)" $(PY) -m tools.campaign

faults: $(STAMP) ## faults and fuzzing that take long (FAULTS_MINUTES=10 of random calls, and 15 of the rest)
	@$(PY) -m pytest --quiet -m faults_long tests/faults tests/hostile

accuracy: $(STAMP) ## measure errors in units of rounding, beside the frameworks that are installed (half an hour)
	@$(PY) tools/accuracy.py

# Minutes to soak; `make soak SOAK_MINUTES=5` for a quick one.
SOAK_MINUTES ?= 60
soak: $(STAMP) ## mixed calls from several threads for an hour: nothing may grow or change (Linux)
	@$(PY) -m tools.soak --minutes $(SOAK_MINUTES)

install: $(STAMP) ## create .venv, as the other targets do

install-frameworks: $(FRAMEWORKS_STAMP) ## create .venv-frameworks, as `make test-frameworks` does

clean: ## remove the environment and every cache
	rm -rf $(VENV) $(FRAMEWORKS) build dist studio/node_modules src/convgrad/_apps/studio/static .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find src tests examples tools -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp is newer than pyproject.toml only after an install that succeeded.
$(STAMP): VENV_HERE := $(VENV)
$(STAMP): EXTRAS := dev
$(FRAMEWORKS_STAMP): VENV_HERE := $(FRAMEWORKS)
$(FRAMEWORKS_STAMP): EXTRAS := dev,frameworks
$(STAMP) $(FRAMEWORKS_STAMP): pyproject.toml
	@command -v $(PYTHON) >/dev/null || { \
	  echo "convgrad needs Python 3.10 or newer; there is no '$(PYTHON)' here"; \
	  echo "name another one: make PYTHON=/path/to/python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { \
	  echo "convgrad needs Python 3.10 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1)"; \
	  echo "name another one: make PYTHON=/path/to/python3.12 $(MAKECMDGOALS)"; exit 1; }
	@echo "== creating $(VENV_HERE) (once, and when pyproject.toml changes)"
	@$(PYTHON) -m venv $(VENV_HERE) || { \
	  echo "'$(PYTHON) -m venv' failed; on Debian and Ubuntu: apt install python3-venv"; exit 1; }
	@$(VENV_HERE)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[$(EXTRAS)]'
	@touch $@

$(BROWSER_STAMP): $(STAMP)
	@$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[studio-test]'
	@touch $(BROWSER_STAMP)
