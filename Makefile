# Two commands do everything on a fresh machine with Python 3.11:  make reproduce   make test
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
# what to reproduce, and how:  make reproduce ARGS="treerare/table1 --profile local"
ARGS   ?=

.PHONY: reproduce test bench lab readme hooks clean
.DELETE_ON_ERROR:

reproduce: $(READY)
	$(BIN)/treekit reproduce $(ARGS)

test: $(READY)
	$(BIN)/nbdev-test --n-workers 2
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

bench: $(READY)
	$(BIN)/python -m pytest -s tests/benchmarks

lab: $(READY)
	$(BIN)/jupyter lab nbs

# the virtual environment is made once, and again when the pins change
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11) and "treekit is pinned for Python 3.11, and this is %s.%s: run make PYTHON=/path/to/python3.11" % sys.version_info[:2])'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

# git merges and diffs notebooks cell by cell; needs the environment's commands on the PATH
hooks: $(READY)
	$(BIN)/nbdev-install-hooks

# README.md is nbs/index.ipynb, in Markdown
readme: $(READY)
	$(BIN)/jupyter nbconvert --log-level ERROR --to markdown --output README.md --output-dir . nbs/index.ipynb

# removes what the kit made for itself: the environment, indexes, stores. Your figures stay.
clean:
	rm -rf $(VENV) .treekit *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
