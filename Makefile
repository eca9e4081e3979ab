# make run: set up, regenerate, run all page examples.   make test: set up, all checks and tests.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: run test lint check clean

run: $(VENV)/ready
	$(BIN)/python -m generator generate
	$(BIN)/python examples/tour.py

# A file's tests share the kernels that they compile.
test: lint check
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile

# Everything is checked as it stands: nothing here writes.
lint: $(VENV)/ready
	$(BIN)/python -m generator lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

check: $(VENV)/ready
	$(BIN)/python -m generator check

$(VENV)/ready: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[generator,test]'
	touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache dist
