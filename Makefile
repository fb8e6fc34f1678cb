# Everything a developer does. `make explain` and `make test` need only Python >= 3.11, pip and make.
.DEFAULT_GOAL := help
.PHONY: help explain studio browser soak test portable fuzz answers docs deep lint types format bench dist sweep reproduce clean

PYTHON ?= $(shell for p in python3.11 python3 python; do \
	$$p -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && { echo $$p; break; }; done)
# Windows has another name for the same place; sh, make and the rest come with Git Bash there.
PY := $(if $(filter Windows_NT,$(OS)),.venv/Scripts/python.exe,.venv/bin/python)

# The stamps carry a hash of the requirements and of the place: an unchanged checkout needs no network a
# second time, whatever happened to file dates, and a moved or changed one is installed anew.
HASH := $(shell { cat pyproject.toml; pwd; } | cksum | cut -d ' ' -f 1)
CORE := .venv/.core-$(HASH)
DEV := .venv/.dev-$(HASH)
DOCS := .venv/.docs-$(HASH)
TORCH := .venv/.torch-2.13.0
INSTALL = $(PY) -m pip install --quiet --disable-pip-version-check

help:  ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' Makefile | sort | awk -F '\t' '{printf "make %-9s %s\n", $$1, $$2}'

$(PY):
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer with the venv module is needed and was not found; install it, or name it: make PYTHON=/path/to/python"; exit 1; }
	$(PYTHON) -m venv .venv

$(CORE): | $(PY)
	$(INSTALL) -e .
	@touch $@

$(DEV): | $(PY)
	$(INSTALL) -e ".[dev]"
	@touch $@ $(CORE)

$(DOCS): | $(PY)
	$(INSTALL) -e ".[docs]"
	@touch $@ $(CORE)

$(TORCH): | $(PY)
	$(INSTALL) torch==2.13.0
	@touch $@

explain: $(CORE)  ## set up and run the main job on a built-in dataset
	$(PY) -m reluflow explain

studio: $(CORE)  ## the playground in the browser
	$(INSTALL) -e ".[studio]"
	$(PY) -m reluflow studio

browser: $(DEV)  ## install a headless browser (Debian) and try the studio and the page of explain in it
	command -v chromium chromedriver >/dev/null || apt-get install -y --no-install-recommends chromium chromium-driver
	$(INSTALL) "selenium>=4.20"
	$(PY) -m pytest tests/studio/test_browser.py

soak: $(DEV)  ## half an hour of questions to the studio: every one answered, memory stays
	$(PY) -m benchmarks.studio --soak 30

test: $(DEV)  ## set up and run all tests (those of reluflow.deep if torch is there)
	$(PY) -m pytest -n auto --dist worksteal

portable: $(DEV)  ## numeric tests as other CPUs, thread counts and a busy machine would run them (long)
	$(PY) tests/portable.py

fuzz: $(DEV)  ## random problems and bad inputs: no false alarm, no wrong flow or limit, no traceback (long; FUZZ="0 3000 --out DIR")
	OPENBLAS_NUM_THREADS=1 $(PY) tests/fuzz/monitors.py $(FUZZ)
	$(PY) tests/fuzz/inputs.py
	OPENBLAS_NUM_THREADS=1 $(PY) tests/fuzz/flows.py
	OPENBLAS_NUM_THREADS=1 $(PY) tests/fuzz/accuracy.py
	OPENBLAS_NUM_THREADS=1 $(PY) tests/fuzz/limits.py
	OPENBLAS_NUM_THREADS=1 $(PY) tests/fuzz/limits.py --line --count 0 --rtol 1e-5

ANSWERS ?= .answers.json
answers: $(DEV)  ## whether a change changed a number: written down the first time, compared later (minutes; ANSWERS=FILE)
	OPENBLAS_NUM_THREADS=1 $(PY) tests/fuzz/answers.py $(if $(wildcard $(ANSWERS)),compare,record) $(ANSWERS)

deep: $(TORCH)  ## install PyTorch, so that the tests of reluflow.deep run too

docs: $(DOCS)  ## the site, into docs/_build/html: warnings are errors, links are checked, nothing is fetched
	rm -rf docs/_build docs/api docs/auto_gallery docs/theory/*.rst
	$(PY) -m sphinx -b html -W --keep-going -n -q docs docs/_build/html

lint: $(DEV)  ## style and import order
	$(PY) -m ruff check src tests benchmarks docs
	$(PY) -m ruff format --check src tests benchmarks docs
	$(PY) -c "from importlinter.cli import lint_imports_command as run; run()" --no-cache

types: $(DEV)  ## static types, strict
	$(PY) -m mypy

format: $(DEV)  ## rewrite in the house style
	$(PY) -m ruff check --fix src tests benchmarks docs
	$(PY) -m ruff format src tests benchmarks docs

bench: $(DEV)  ## measure beside what others use, write docs/benchmarks.md (half an hour; goes on where it was stopped; BENCH="late scales")
	$(INSTALL) -e ".[bench]"
	-$(INSTALL) "diffrax>=0.6"
	$(PY) -m benchmarks $(BENCH)

dist: $(DEV)  ## build wheel and sdist, install each in an environment of its own outside this folder, try it there
	$(PY) tests/dist.py $(DIST)

sweep: $(DEV)  ## the worked sweep of docs/sweep.md and its pictures (half an hour; goes on where it was stopped)
	$(PY) -m reluflow sweep run docs/sweep/hinted.toml --out docs/sweep/hinted --jobs 2
	$(PY) -m reluflow sweep plot docs/sweep/hinted --x scale --y H --color linear --out docs/sweep/linear.png
	$(PY) -m reluflow sweep plot docs/sweep/hinted --x scale --y margin --color H --out docs/sweep/margin.png

reproduce: $(DEV) $(TORCH)  ## figures and tables of the papers, in full (about an hour on two cores; goes on where it was stopped)
	$(PY) -m reluflow data fetch mnist
	$(PY) -m reluflow reproduce --all --jobs 2 --out docs/reproduction

clean:  ## remove what can be made again
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist docs/_build docs/api docs/auto_gallery docs/theory/*.rst
