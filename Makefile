# make demo    train a network on xpu          make test    linters and tests
# make lint    linters alone                   make bench   benchmarks
# make docs    the site, into build/site       make test-rest  more cases of the same tests
# make clean   remove what these made          make test-all   these, and the slow tests
# make test-cuda   every test once more on a CUDA build of PyTorch: 5 GB, no GPU needed
# make test-programs   what other packages compute and train, in the same environment: 8 GB
# make test-pocl   kernels on PoCL, another vendor's OpenCL driver for CPUs: 160 MB of packages
# make test-rusticl   kernels on rusticl, a driver without unified shared memory: 80 MB of packages
# make test-neo   Intel's GPU driver above a GPU that runs no kernel: 77 MB of packages
# make test-accelerator   an accelerator beside the CPU, an emulation of an FPGA: 300 MB of packages
# make test-compilers   kernels by the compilers of Intel's, NVIDIA's and AMD's GPUs: 250 MB of packages
# make test-oclgrind   kernels on a simulator that finds races: 50 MB of packages
# make test-bystander   PyTorch's own tests on CPU tensors, with xpurt and without: 27 MB
# make wheels     the wheels for this Python and PyTorch, into dist
# make release-check   install them in an empty environment, and use them
# make matrix     quick tests for each supported version of PyTorch: 5 GB for each
# make sanitize   tests on builds with AddressSanitizer and ThreadSanitizer; half an hour
# make mutants    200 small changes of the sources, of which tests have to find 95%: hours
#
# PYTHON, TORCH and CXX choose the interpreter, the torch wheel and the compiler, as in
#   make test PYTHON=python3.12 TORCH=./torch-2.13.0-cp312-cp312-linux_x86_64.whl
# ARGS are the program's arguments: make demo ARGS="--mapping CPU", make test ARGS="-k cli".
# TORCH may be of another series at any time: each has objects of its own in build/. After
# a change of PYTHON: make clean.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:

# The version is written out: a local index may find a wheel by no other name.
TORCH ?= torch==2.13.0
VENV ?= .venv
# The number of processes that run tests; each gets whole files. One that a test ends is
# replaced once: its file is run again at the end, where the same test may end it again.
WORKERS ?= 2
PARALLEL = -n $(WORKERS) --dist loadfile --no-loadscope-reorder --max-worker-restart 1
CUDA_VENV ?= .venv-cuda
ARGS ?=

AN_INTERPRETER = import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))
ifndef PYTHON
PYTHON := $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
    if $$p -c "$(AN_INTERPRETER)" 2>/dev/null; then echo $$p; break; fi; done)
endif

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq
# xpurt and then xpurt-tools, at once, since they have one version.
EDITABLE = PATH="$(abspath $(BIN)):$$PATH" $(PIP) install --no-build-isolation --editable
STAMPS := $(VENV)/stamps
# Named after the requirement, so that another one is another file.
TORCH_STAMP := $(STAMPS)/torch-$(subst =,-,$(subst /,-,$(subst *,x,$(TORCH))))
SERIES := $(shell sed -n 's/^SERIES = (\(.*\))$$/\1/p' xpurt/torch_versions.py | tr -d '",')
QUICK := tests/startup tests/pytorch_internals tests/release tests/xpu tests/streams \
    tests/mapping tests/native tests/compiler/test_compile.py tests/kernels/test_pointwise.py \
    tests/kernels/test_reductions.py tests/kernels/test_matmul.py
# What has to be ignored of PyTorch's types is written for the first series.
IGNORES := $(if $(findstring $(firstword $(SERIES)),$(TORCH)),,--no-warn-unused-ignores)
# The OpenCL layers.
LAYERS := xpurt/opencl_layer xpurt/accelerator_layer/layer xpurt/virtual_gpu/layer \
    xpurt/usm_on_svm/layer xpurt/launch_recorder/layer
CPP := $(shell find xpurt/csrc $(LAYERS) xpurt/include tests/cpp_extension tests/accelerators tests/neo -name '*.cpp' -o -name '*.h' -o -name '*.c' 2>/dev/null)
# A folder is newer than the extension when a source was added or removed.
CPP_FOLDERS := $(shell find xpurt/csrc $(LAYERS) -type d 2>/dev/null)

.PHONY: demo test test-rest test-quick matrix test-all test-bystander test-cuda test-pocl test-rusticl test-neo test-compilers test-oclgrind test-accelerator test-programs sanitize mutants lint bench docs \
    clean install wheels release-check
.DEFAULT_GOAL := demo

demo: install
	$(BIN)/python -m xpurt demo $(ARGS)

test: lint
	$(BIN)/python -m pytest $(PARALLEL) $(ARGS)

# The cases that tests/pairwise.py leaves out, and what is marked so.
test-rest: $(STAMPS)/tools install
	$(BIN)/python -m pytest -m "rest and not slow and not programs" $(PARALLEL) $(ARGS)

# A few minutes: what depends most on the version of PyTorch.
test-quick: $(STAMPS)/tools install
	$(BIN)/python -m pytest $(QUICK) $(ARGS)

# Each in build/pytorch-2.13 and so on, with an environment, a tree and objects of its own.
matrix:
	for each in $(SERIES); do PYTHON="$(PYTHON)" tests/one_version.sh $$each $(ARGS); done

test-all: lint
	$(BIN)/python -m pytest -m "not programs" $(ARGS)

test-cuda: install
	PYTHON=$(BIN)/python CUDA_VENV=$(CUDA_VENV) tests/cuda_build.sh $(ARGS)

test-pocl: $(STAMPS)/tools install
	PYTHON=$(BIN)/python tests/pocl.sh $(ARGS)

test-rusticl: $(STAMPS)/tools install
	PYTHON=$(BIN)/python tests/rusticl.sh $(ARGS)

test-neo: $(STAMPS)/tools install
	PYTHON=$(BIN)/python tests/neo.sh $(ARGS)

test-accelerator: $(STAMPS)/tools install
	PYTHON=$(BIN)/python tests/accelerator.sh $(ARGS)

# ARGS="--sample" takes a few minutes; without it, hours.
test-compilers: $(STAMPS)/tools install
	PYTHON=$(BIN)/python tests/compilers/compilers.sh $(ARGS)

# ARGS="--ops --repeats 1" has all ops, in an hour; ARGS="--spoilt 40" spoils kernels, which it has to find.
test-oclgrind: $(STAMPS)/tools install
	PYTHON=$(BIN)/python tests/oclgrind/oclgrind.sh $(ARGS)

test-bystander: $(STAMPS)/tools install
	PYTHON=$(BIN)/python tests/bystander/pytorch.sh $(ARGS)

# With the build of PyTorch that the package index offers for torchvision's.
test-programs: install
	PYTHON=$(BIN)/python CUDA_VENV=$(CUDA_VENV) EXTRAS="demo test quantization language programs" \
	    FILES_OF="language-model" tests/cuda_build.sh -m programs tests/programs $(ARGS)

# Each build is in a folder of its own in build/. ARGS="thread --only random" is a part.
sanitize: $(STAMPS)/tools install
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python tests/sanitize/run_sanitizers.py $(ARGS)

# ARGS="--only reduction.cpp" is a part. A run that was stopped goes on. MUTANTS_ROOM=all
# has all sources, and compares the tests of `make test` with the rest.
mutants: $(STAMPS)/tools install
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python tests/mutants/run_mutants.py $(ARGS)

lint: $(STAMPS)/tools install
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --check --quiet --diff .
	@echo "clang-format of $(words $(CPP)) files"
	@$(if $(CPP),$(BIN)/clang-format --dry-run -Werror $(CPP))
	$(BIN)/mypy $(IGNORES)

bench: install
	$(BIN)/python -m xpurt bench $(ARGS)
	for each in tests/bench/bench_*.py; do $(BIN)/python $$each; done

# The variable silences an advertisement that Material for MkDocs prints in each build.
docs: $(STAMPS)/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict
	@echo "the site is in build/site: open build/site/index.html"

wheels: $(STAMPS)/wheels
	$(BIN)/python release/build_wheels.py $(ARGS)

release-check: wheels
	$(BIN)/python release/check_release.py "$$(ls -t dist/xpurt-*.whl | head -n 1)" --torch "$(TORCH)"

# Where PYTHONDONTWRITEBYTECODE is set, each process would compile the sources anew.
install: $(STAMPS)/extension
	@$(BIN)/python -m compileall -q xpurt tools/xpurt_tools xpurt_autoload.py pytest_xpurt.py

# Without --clear, `python -m venv` would accept a half-made environment.
$(STAMPS)/venv:
	@test -n "$(PYTHON)" || { \
	    echo "Python 3.11, 3.12, 3.13 or 3.14 is missing: install one, or name one with PYTHON=" >&2; exit 1; }
	@$(PYTHON) -c "$(AN_INTERPRETER)" || { \
	    echo "$(PYTHON) is not a Python 3.11, 3.12, 3.13 or 3.14: name one with PYTHON=" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	    echo "the venv module of $(PYTHON) is missing: install it (Debian, Ubuntu: apt install python3-venv)" >&2; exit 1; }
	@$(PYTHON) -c 'import os, sys, sysconfig; sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' || { \
	    echo "the headers of $(PYTHON) are missing: install them (Debian, Ubuntu: apt install python3-dev)" >&2; exit 1; }
	@$(CXX) -std=c++20 -fsyntax-only -x c++ - <<< '#include <version>' 2>/dev/null || { \
	    echo "a C++20 compiler is missing ($(CXX) is none): install g++ 11 or later (Debian, Ubuntu: apt install g++)" >&2; exit 1; }
	@echo "installing into $(VENV): this takes a few minutes, once"
	$(PYTHON) -m venv --clear $(VENV)
	@mkdir -p $(STAMPS) && touch $@

$(TORCH_STAMP): $(STAMPS)/venv
	@rm -f $(STAMPS)/torch-*
	$(PIP) install "$(TORCH)"
	@touch $@

# Without build isolation the extension is built for the torch that it will run on, and
# a second build reuses the objects of the first one in build/.
$(STAMPS)/package: $(TORCH_STAMP) pyproject.toml setup.py tools/pyproject.toml tools/setup.py xpurt/torch_versions.py $(wildcard release/*.py)
	@$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")' > $(STAMPS)/build-requires.txt
	$(PIP) install -r $(STAMPS)/build-requires.txt
	@$(BIN)/python release/build_backend.py > $(STAMPS)/compile-requires.txt
	$(PIP) install -r $(STAMPS)/compile-requires.txt
	$(EDITABLE) '.[demo]' --editable tools
	@touch $@ $(STAMPS)/extension

$(STAMPS)/extension: $(STAMPS)/package $(CPP) $(CPP_FOLDERS)
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python setup.py --quiet build_ext --inplace
	@touch $@

$(STAMPS)/tools: $(STAMPS)/package
	$(EDITABLE) '.[test,dev]' --editable tools
	@touch $@

$(STAMPS)/wheels: $(STAMPS)/package
	$(EDITABLE) '.[wheels]' --editable tools
	@touch $@

$(STAMPS)/docs: $(STAMPS)/package
	$(EDITABLE) '.[docs]' --editable tools
	@touch $@

clean:
	rm -rf $(VENV) $(CUDA_VENV) build dist *.egg-info tools/*.egg-info xpurt/_built_for.py .mypy_cache .ruff_cache .pytest_cache
	find xpurt -name '*.so' -delete
	find xpurt tools tests -name __pycache__ -type d -prune -exec rm -rf {} +
