PYTHON ?= python3
BIN := .venv/bin
OUT := out
# two test processes with two threads each wait for each other: three times the work
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

.PHONY: help install run test test-slow lint docs results bench clean

help: ## say what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

install: .venv/.installed ## a local environment with everything that run and test need

.venv/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

run: install ## the benchmark on quick simulated data: every method, tables, figure, page
	$(BIN)/tyto bench quick --jobs 0 --output $(OUT)

test: install ## the default suite, three to four minutes
	$(ONE_THREAD) $(BIN)/python -m pytest --numprocesses 2 --dist worksteal -q

test-slow: install ## what takes longer
	$(ONE_THREAD) $(BIN)/python -m pytest -m slow -q

lint: install ## style, types, and who may import whom
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: install ## the documentation as pages, in site/
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[docs]'
	$(BIN)/mkdocs build --strict

results: install ## tables, figures and page of docs/ from the JSON in results/
	$(BIN)/tyto report results/paper/table1.json results/learner/shipped-prior.json results/paper/expansion.json results/paper/eta.json results/paper/orders.json --output docs/results

bench: install ## GCC-PHAT and SRP-PHAT beside plain scipy and pyroomacoustics
	$(BIN)/tyto speed

clean: ## remove what was made, and the environment
	rm -rf .venv $(OUT) site
