# Two commands do everything on a machine with Python 3.11 and make: `make run` and `make test`.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
# TESTS names files for test-lowest and test-newest; by default they run all.
PYTEST := pytest --numprocesses logical --maxprocesses 4
TESTS  ?=

.PHONY: run test test-lowest test-newest docs campaign lint bench clean

run: $(READY)  ## the main job: accuracy against depth and a first look at the paper's results, on the page out/report.html
	$(BIN)/eamp reproduce --quick --output out

test: $(READY)  ## lint, types, doctests and tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/$(PYTEST)

test-lowest: .venv-lowest/.ready  ## the tests on the lowest versions that pyproject.toml allows
	.venv-lowest/bin/$(PYTEST) $(TESTS)

test-newest:  ## the tests on the newest versions of today
	$(PYTHON) -m venv .venv-newest
	.venv-newest/bin/python -m pip install --quiet --upgrade --upgrade-strategy eager --editable ".[test]"
	.venv-newest/bin/$(PYTEST) $(TESTS)

docs: $(READY)  ## the site, in out/site; a broken link is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

campaign: $(READY)  ## kills, faults, hostile inputs and random graphs, about 20 minutes on two cores
	$(BIN)/python -m tests.campaign

bench: $(READY)  ## the step beside what one would use instead
	$(BIN)/eamp bench --output benchmarks/results.json

# Torch first and by its pin: any other package that asked for it could pull a build for another kind of machine.
$(READY): constraints.txt
.venv-lowest/.ready: constraints-lowest.txt
$(READY) .venv-lowest/.ready: pyproject.toml
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet "$$(grep '^torch==' $(filter constraints%,$^))"
	$(@D)/bin/python -m pip install --quiet --constraint $(filter constraints%,$^) --editable ".[test]"
	touch $@

clean:
	rm -rf $(VENV) .venv-lowest .venv-newest out
