# Two commands do everything on a machine with Python 3.11 and make: `make run` and `make test`.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: run test campaign lint bench clean

run: $(READY)  ## the main job: a first look at the paper's results, which ends with a page, out/report.html
	$(BIN)/eamp reproduce --quick --output out

test: $(READY)  ## lint, types, doctests and tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest --numprocesses logical --maxprocesses 4

campaign: $(READY)  ## kills, faults, hostile inputs and random graphs, about 20 minutes on two cores
	$(BIN)/python -m tests.campaign

bench: $(READY)  ## the step beside what one would use instead
	$(BIN)/eamp bench --output benchmarks/results.json

# Torch first and by its pin: any other package that asked for it could pull a build for another kind of machine.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet "$$(grep '^torch==' constraints.txt)"
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[test]"
	touch $@

clean:
	rm -rf $(VENV) out
