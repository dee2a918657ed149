# `make demo` and `make test` make the environment they need; nothing else has to be installed.
PYTHON ?= python3
VENV   ?= .venv
SCRIPTS := $(if $(filter Windows_NT,$(OS)),Scripts,bin)
BIN    := $(VENV)/$(SCRIPTS)
STAMP  := $(VENV)/.meshprep-installed
# All distributions, from the working tree; what is imported is compiled then, not all that comes.
INSTALL := -m pip install --quiet --disable-pip-version-check --no-compile
PIP    := $(BIN)/python $(INSTALL)
# Tests of a file share what it prepares, so that one worker runs them all.
RUN_TESTS := -m pytest -n 2 --dist loadfile --no-loadscope-reorder
PYTEST := $(BIN)/python $(RUN_TESTS)
# Many tests start Python, which would translate every module again.
unexport PYTHONDONTWRITEBYTECODE

FUZZ ?=

.PHONY: help demo test test-ci test-all test-processors test-lowest test-newest
.PHONY: env-lowest env-newest wheel dist fuzz lint readers clients docs format env bench clean

help:
	@echo "make demo     generate a mesh, reorder it, time a loop before and after"
	@echo "make test     run the tests, all but the slow ones"
	@echo "make test-ci  the slow ones, too, as CI does; make test-all: all of them"
	@echo "make test-processors  plans as other processors make them, whose kernels are compiled first"
	@echo "make test-lowest, make test-newest    the demo and the tests with the lowest versions that"
	@echo "              are declared, and with the newest, pre-releases too (TESTS=tests/runtime)"
	@echo "make wheel    wheels in dist/, with the kernels compiled for this kind of processor"
	@echo "make dist     the same as an index takes them, checked by twine"
	@echo "make fuzz     20,000 random combinations of meshes, loops and options (FUZZ=--help)"
	@echo "make readers  install VTK and Gmsh, which then check our files in the tests"
	@echo "make clients  install PyFR, MFEM, JAX and other programs, which then open our files and run"
	@echo "              the pages of docs/use in the slow tests; LARGE=1: torch, too; says which"
	@echo "              programs of Debian are missing"
	@echo "make lint     ruff, ruff format, mypy"
	@echo "make docs     the pages in docs/ and the API as a site in build/site"
	@echo "make bench    every benchmark: tables here, JSON in benchmarks/results/"
	@echo "make check-gpu, make bench-gpu BUDGET=720    the same on a GPU (GPU=gpu12 for CUDA 12);"
	@echo "              make prepare-gpu compiles for it beforehand, without one"
	@echo "make pictures the pictures in docs/"

env: $(STAMP)

# What else is to be installed at once: docs,readers.
EXTRAS :=
COMMA  := ,

$(STAMP): pyproject.toml runtime/pyproject.toml cuda-check/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "meshprep needs Python 3.11 or newer: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e ./runtime -e ./cuda-check -e '.[dev$(addprefix $(COMMA),$(EXTRAS))]'
	@touch $(STAMP) $(addprefix $(VENV)/.with-,$(subst $(COMMA), ,$(EXTRAS)))

$(VENV)/.with-%: $(STAMP)
	$(PIP) -e ./runtime -e '.[dev,$*]'
	@touch $@

demo: env
	$(BIN)/python examples/demo.py

# In a new clone kernels are compiled first: two workers that begin at once would both compile them.
WARM_UP := test -d .pytest_cache || $(BIN)/meshprep warm-up -q

# Random examples are fewer where this is set: tests/effort.py.
test test-lowest test-newest: export MESHPREP_TESTS = sample

test: env
	$(WARM_UP)
	$(PYTEST) -m "not slow and not long"

test-ci: env
	$(WARM_UP)
	$(PYTEST) -m "not long"

test-all: env
	$(PYTEST)

# As other processors make plans: numba compiles for them, BLAS, NumPy and libm are told so.
test-processors: env
	$(PYTEST) --dist load tests/test_processors.py

# In environments of their own. TESTS= are the files and folders that run.
TESTS ?=
ANY_newest := --pre

env-lowest env-newest: env-%:
	$(PYTHON) -m venv $(BUILD)/$*
	$(PYTHON) tests/versions.py $* > $(BUILD)/$*.txt
	$(BUILD)/$*/$(SCRIPTS)/python $(INSTALL) --upgrade $(ANY_$*) -r $(BUILD)/$*.txt
	$(BUILD)/$*/$(SCRIPTS)/python $(INSTALL) --no-deps -e ./runtime -e ./cuda-check -e .

test-lowest test-newest: test-%: env-%
	$(BUILD)/$*/$(SCRIPTS)/python examples/demo.py
	$(BUILD)/$*/$(SCRIPTS)/python $(RUN_TESTS) -m "not slow and not long" $(TESTS)

# Machine code for a family of processors, for this Python and this numba. TASKS= compiles for the
# default reordering of a Gmsh mesh alone, BUILD is where the machine code is put together.
FAMILY := $(subst aarch64,generic,$(subst x86_64,x86-64-v3,$(shell uname -m)))
TASKS  ?= --all
DIST   ?= dist
BUILD  ?= $(CURDIR)/build

wheel: env
	rm -rf $(BUILD)/kernels
	NUMBA_CPU_NAME=$(FAMILY) NUMBA_CPU_FEATURES= MESHPREP_CACHE_DIR=$(BUILD) \
	  $(BIN)/python -m meshprep_cli.main warm-up $(TASKS)
	cd $(BUILD)/kernels && for f in *; do $(abspath $(BIN))/python -m zipfile -c $$f.zip $$f/*; done
	MESHPREP_COMPILED=$(BUILD)/kernels $(BIN)/python -m pip wheel --quiet \
	  --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir $(DIST) ./runtime .

# What an index takes: these wheels under a tag that it knows, those for any machine beside them, and
# a check of names, metadata and README. Machine code is data of numba's: it needs no C library.
INDEX := $(BUILD)/index/$(SCRIPTS)/python

dist: wheel
	$(PYTHON) -m venv $(BUILD)/index
	$(INDEX) $(INSTALL) twine wheel
	if [ "$$(uname -s)" = Linux ]; then \
	  $(INDEX) -m wheel tags --remove --platform-tag manylinux_2_17_$$(uname -m) $(DIST)/*-linux_*.whl; fi
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation \
	  --wheel-dir $(DIST) ./runtime .
	$(INDEX) -m twine check --strict $(DIST)/*.whl

# FUZZ="--minutes 10", or --cases, --first (the first seed), --processes. With --kernels 2000 random
# kernels instead, each in every form and strategy beside a plain loop: some ten seconds each.
fuzz: env
	$(BIN)/python tests/campaign/fuzz.py $(FUZZ)

lint: env
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Programs that read our files in the tests: VTK and Gmsh.
readers: $(VENV)/.with-readers

# Programs of others, in an environment of their own; COMPILED=1: also those without wheels,
# LARGE=1: also torch.
clients:
	$(PYTHON) tests/clients/client_programs.py $(BUILD)/clients \
	  $(if $(COMPILED),--compiled) $(if $(LARGE),--large)

docs: $(VENV)/.with-docs
	$(BIN)/mkdocs build --strict

format: env
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# GPU = gpu12 for drivers of CUDA 12.
GPU ?= gpu

.PHONY: gpu check-gpu bench-gpu prepare-gpu

gpu: env
	$(PIP) -e './runtime[$(GPU)]' -e '.[dev]'

# First what decides between strategies, then the tests.
check-gpu: gpu
	$(BIN)/python benchmarks/bench_gpu_first.py --cells 20000
	MESHPREP_GPU=required $(BIN)/python -m pytest -m gpu

# Needs a GPU, so that `make bench` leaves it out. BUDGET= are the seconds of all parts, PARTS= names
# some of them. What is compiled beforehand, for a GPU of ARCH= and for a family of processors, lies
# in build/bench-gpu/cache.
BUDGET ?= 720
ARCH   ?= sm_90

bench-gpu prepare-gpu: export NUMBA_CPU_NAME = $(FAMILY)
bench-gpu prepare-gpu: export NUMBA_CPU_FEATURES =

prepare-gpu: env
	$(BIN)/python benchmarks/bench_gpu_all.py --prepare --arch $(ARCH) $(if $(PARTS),--only $(PARTS))

bench-gpu: gpu
	$(BIN)/python benchmarks/bench_gpu_all.py --budget $(BUDGET) $(if $(PARTS),--only $(PARTS))

BENCHES := start busy io topology order order_solvers target colour pipeline partition meshlets small_blocks graphs split growth tradeoff owners solvers cpu loops loops_cpp lists airfoil fortran miniaero fem forms chains mpi fields launch tune model registers threads report spmv stores search rank_products rank_sweeps numpy jax tuples lulesh

.PHONY: $(addprefix bench-,$(BENCHES)) gmsh

bench: $(addprefix bench-,$(BENCHES))

# The meshes of these benchmarks come from a real mesher.
gmsh: env
	$(PIP) -e ./runtime -e '.[dev,bench]'

bench-partition bench-order_solvers bench-meshlets bench-small_blocks: gmsh

# What it measures with.
.PHONY: jax

jax: gmsh
	$(PIP) jax

bench-jax: jax

$(addprefix bench-,$(BENCHES)): bench-%: env
	$(BIN)/python benchmarks/bench_$*.py

# An hour, with programs of others, so that `make bench` leaves it out.
.PHONY: bench-clients

bench-clients: env clients
	$(BIN)/python benchmarks/bench_clients.py $(SOLVERS)

.PHONY: pictures

# Those of the documentation; the second needs Chromium.
pictures: env
	$(BIN)/python examples/picture.py docs/reordered.png
	$(BIN)/python examples/report_picture.py docs/report.png
	$(BIN)/python benchmarks/clients/draw_gains.py docs/solvers.png
	$(BIN)/python examples/shapes.py --folder build/shapes --picture docs/research/shapes.png
	PATH=$(BIN):$$PATH PYTHONPATH=tests $(BIN)/python .ci/pictures.py

clean:
	rm -rf $(VENV) demo build dist .pytest_cache .ruff_cache .mypy_cache .hypothesis
