# Every target sets up what it needs: a fresh clone requires only make and Python 3.11 or newer.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# Hash of the torch build without CUDA for Python 3.11 on Linux (x86-64), which is not on PyPI.
TORCH := 2.13.0
TORCH_CPU := 6746dbcbeb526eb61330b76b41ff1b4eb848951103a892eeb080dfa2b264667b

.DEFAULT_GOAL := help
.PHONY: help venv demo test pytest test-slow test-oldest test-newest browser lint lock audit fuzz bench paper docs wheel clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	# Prefer a torch build on this machine: on Linux, the one from PyPI downloads gigabytes of CUDA.
	sed -n '/^torch==/,/[0-9a-f]$$/p' constraints.txt > .venv/torch.txt
	$(PIP) --no-index --require-hashes --no-deps -r .venv/torch.txt 2>/dev/null || true
	$(PIP) --require-hashes --no-deps -r constraints.txt
	$(PIP) --no-build-isolation -e .
	@touch $@

venv: $(READY)  ## create .venv with everything installed

demo: $(READY)  ## cluster a table, images and points, learn features of digits, and write one page
	$(BIN)/neuralbayes demo --out demo

# With bytecode, pytest rewrites the assertions of each file once, and not in every worker of every run.
test test-slow: export PYTHONDONTWRITEBYTECODE :=

test: $(READY)  ## check style and types, and run all tests except the slow ones
	@$(MAKE) --no-print-directory -j 2 lint pytest  # in parallel: mypy has one thread

pytest: $(READY)
	$(BIN)/pytest -n 2 --dist worksteal

test-slow: $(READY)  ## run the slow tests: minutes
	$(BIN)/pytest -m slow

browser: $(READY)  ## test the report in chromium: every control, no errors, no requests
	@command -v chromium || command -v chromium-browser || command -v google-chrome || \
	  { echo "make browser needs chromium: apt install chromium (Debian, Ubuntu), or see https://www.chromium.org"; exit 1; }
	$(PIP) --no-build-isolation -e '.[browser]'
	$(BIN)/pytest -m browser tests/browser

test-oldest:  ## run the tests with the oldest versions that pyproject.toml allows (except torch)
test-newest:  ## run the tests with the newest versions
test-oldest: RESOLUTION := lowest-direct
test-newest: RESOLUTION := highest
test-oldest test-newest: $(READY)
	$(PIP) uv
	$(PYTHON) -m venv --clear .venv/$@
	.venv/$@/bin/python -m pip install --quiet --disable-pip-version-check --no-deps torch==$(TORCH)
	$(BIN)/uv pip install --quiet --python .venv/$@/bin/python --resolution $(RESOLUTION) \
	  torch==$(TORCH) -e '.[test,docs,bench]'
	.venv/$@/bin/pytest -n 2 --dist worksteal -W default

lock: $(READY)  ## update constraints.txt to the newest allowed versions, for all systems
	$(PIP) uv
	printf '%s\n' hatchling editables torch==$(TORCH) | \
	  $(BIN)/uv pip compile pyproject.toml - --extra test --extra docs --extra bench --universal --python-version 3.11 \
	  --fork-strategy fewest --upgrade --generate-hashes --no-annotate --no-header --quiet --output-file .venv/lock.txt
	{ echo "# Made by \`make lock\`: what development and CI install."; \
	  awk '/^[a-z]/ { cuda = /^(cuda|nvidia|triton)/ } !cuda' .venv/lock.txt \
	  | sed '/^torch==/ s/$$/\n    --hash=sha256:$(TORCH_CPU) \\/'; } > constraints.txt

audit: $(READY)  ## check the locked packages for known vulnerabilities
	$(PIP) pip-audit
	$(BIN)/pip-audit --strict --disable-pip -r constraints.txt

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

paper: $(READY)  ## run every table and figure of the paper at the smallest scale, and write its page: minutes
	$(BIN)/python -m paper all --scale smoke --out runs/paper
	$(BIN)/python -m paper page --record runs/paper/records --out runs/paper

bench: $(READY)  ## compare the speed with a literal step and with other libraries: minutes
	$(BIN)/python benchmarks/watch.py

fuzz: $(READY)  ## read changed files of every format for five minutes
	$(BIN)/python benchmarks/fuzz.py

docs: $(READY)  ## build the documentation as HTML in docs/_build
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build

wheel:  ## build wheel and sdist in dist/ twice, compare and check them
	$(PYTHON) -m venv .venv/wheel
	.venv/wheel/bin/python -m pip install --quiet --disable-pip-version-check build twine
	.venv/wheel/bin/python release/wheel.py

clean:  ## remove everything that the other targets created
	rm -rf .venv demo dist docs/_build docs/api docs/examples .pytest_cache .mypy_cache .ruff_cache .hypothesis docs/commands.txt
