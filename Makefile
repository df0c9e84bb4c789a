# Every target sets up what it needs: a fresh clone wants Python 3.11 or newer and make, nothing else.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.DEFAULT_GOAL := help
.PHONY: help venv demo test test-slow browser lint bench fuzz docs clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check torch -c constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test,docs,bench]' -c constraints.txt
	@touch $@

venv: $(READY)  ## make .venv with everything installed

demo: $(READY)  ## label manifolds, learn digits, write pictures
	$(BIN)/neuralbayes demo --out demo

test: $(READY) lint  ## lint, types and the whole test suite but the slow tests
	$(BIN)/pytest -n 2

test-slow: $(READY)  ## the tests that take minutes
	$(BIN)/pytest -m slow

browser: $(READY)  ## the report in chromium: each control, no error, no request
	@command -v chromium || command -v chromium-browser || command -v google-chrome || \
	  { echo "make browser needs chromium: apt install chromium (Debian, Ubuntu), or see https://www.chromium.org"; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[browser]' -c constraints.txt
	$(BIN)/pytest -m browser tests/browser

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(READY)  ## speed and accuracy against the literal implementation and the peers
	$(BIN)/python benchmarks/gradients.py
	$(BIN)/python benchmarks/step.py
	$(BIN)/python benchmarks/labeling.py

fuzz: $(READY)  ## 200,000 mutated files for every reader of files: hours
	$(BIN)/python -m pip install --quiet --disable-pip-version-check atheris -c constraints.txt
	$(BIN)/python fuzz/fuzz.py --record results/guarantees/fuzz.json

docs: $(READY)  ## the documentation as HTML in docs/_build
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build

clean:  ## remove what the other targets made
	rm -rf .venv demo docs/_build docs/api docs/examples .pytest_cache .mypy_cache .ruff_cache .hypothesis
