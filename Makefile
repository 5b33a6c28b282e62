PYTHON ?= python3
BIN := .venv/bin
OUT := out

.PHONY: help install run test test-slow lint docs bench clean

help: ## say what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

install: .venv/.installed ## a local environment with everything that run and test need

.venv/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

run: install ## simulate a small data set, locate its sources, show table and picture
	rm -rf $(OUT)/quick
	$(BIN)/tyto simulate $(OUT)/quick --preset quick
	$(BIN)/tyto score $(OUT)/quick --method srp --method music --plot $(OUT)/quick.png

test: install ## the default suite, about two minutes
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal -q

test-slow: install ## what takes longer
	$(BIN)/python -m pytest -m slow -q

lint: install ## style, types, and who may import whom
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: install ## the documentation as pages, in site/
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[docs]'
	$(BIN)/mkdocs build --strict

bench: install ## GCC-PHAT and SRP-PHAT beside plain scipy and pyroomacoustics
	$(BIN)/tyto speed

clean: ## remove what was made, and the environment
	rm -rf .venv $(OUT) site
