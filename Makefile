PYTHON ?= python3
BIN := .venv/bin
OUT := out
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# two test processes with two threads each wait for each other: three times the work
PYTEST := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q
PARALLEL := --numprocesses 2 --dist worksteal

# of make rerun and make search: share of the twin, where methods learn, methods at a time, folder of real speech
SIZE ?= 1
DEVICE ?= auto
JOBS ?= 1
SPEECH ?=
# more for tyto bench, such as SET="--methods tyto,joint --set n_phases=5"
SET ?=
RERUN := $(OUT)/rerun-$(SIZE)
BENCH = $(BIN)/tyto bench
BENCH_OPTIONS = --size $(SIZE) --device $(DEVICE) --jobs $(JOBS) $(if $(SPEECH),--speech '$(SPEECH)') $(SET)
# table1 comes first: it prepares the data for all
EXPERIMENTS := table1 expansion eta orders phases-5 phases-10 phases-20 phases-36 streams one-source ablation label-width ss-il-terms

.PHONY: help install run quick test end-to-end test-slow durations lint docs rerun search results bench constraints clean

help: ## list what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 13

install: .venv/.installed ## a local environment with everything that run and test need

.venv/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(PIP) --constraint constraints.txt --editable '.[dev]'
	@touch $@

run: install ## the quick benchmark on simulated data: tables, figure and page in out/
	$(BIN)/tyto bench quick --jobs 0 --output $(OUT)

quick: install ## the tests to run while working: under a minute
	$(PYTEST) $(PARALLEL) -m 'not slow and not end_to_end and not long'

test: install ## the default tests: three to four minutes on two cores
	$(PYTEST) $(PARALLEL)

end-to-end: install ## tests that need a browser, a sound server or several processes
	$(PIP) --constraint constraints.txt --editable '.[end-to-end]'
	$(PYTEST) -m end_to_end

test-slow: install ## tests that take minutes, then an hour of listening, kills, full disks and a million hostile files
	$(PYTEST) -m slow
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.slow.run --processes 2 --out $(OUT)/slow

durations: install ## tests/long.txt anew: the tests that make quick leaves out
	$(PYTEST) $(PARALLEL) --durations=0 --durations-min=0.02 | $(BIN)/python tools/long_tests.py

lint: install ## style, types, and which package may import which
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: install ## the documentation as pages, in site/
	$(PIP) --constraint constraints.txt --editable '.[docs]'
	$(BIN)/mkdocs build --strict

# goes on where it was stopped; results and prepared data are in out/rerun-SIZE
rerun: install ## every experiment again: SIZE=0.1 DEVICE=cuda JOBS=4 SPEECH=folder
	set -e; for name in $(EXPERIMENTS); do \
	  $(BENCH) $$name $(BENCH_OPTIONS) --cache $(RERUN)/twin.safetensors --output $(RERUN) --no-report; done
	$(BENCH) noise $(BENCH_OPTIONS) --cache $(RERUN)/twin-noise.safetensors --output $(RERUN) --no-report

search: install ## every row tuned alike on validation rooms; writes the options that experiments take
	$(BENCH) search table1 $(BENCH_OPTIONS) --cache $(RERUN)/twin.safetensors --output $(RERUN)/search --write src/tytoalba/resources/chosen/table1.toml

results: install ## docs/results.md, and tables, figures and page in docs/results/, from the JSON they name
	$(BIN)/python tools/results_pages.py

bench: install ## how fast everything is, beside its peers and the machine's ceilings: some minutes
	$(BIN)/tyto speed

# torch is pinned first, so that machines without a GPU do not fetch gigabytes
constraints: ## constraints.txt anew: the newest versions that install together
	rm -rf .venv-constraints
	$(PYTHON) -m venv .venv-constraints
	.venv-constraints/bin/python -m pip install --quiet torch==2.13.0 '.[all,dev,end-to-end,docs]'
	echo '# Made by `make constraints`: versions that are known to work together.' > constraints.txt
	.venv-constraints/bin/python -m pip freeze --all --exclude pip --exclude setuptools --exclude tytoalba | sed 's/+cpu$$//' >> constraints.txt
	rm -rf .venv-constraints

clean: ## remove what was made, and the environment
	rm -rf .venv .venv-constraints $(OUT) site
