#!/usr/bin/env bash
# Runs kernels on PoCL, an OpenCL driver for CPUs of another vendor: `make test-pocl`.
# Arguments are pytest's, or Python's after the word `python`; without them, samples of the
# conformance run and of tests/kernels. PoCL takes 0.5 to 40 s to build a kernel, so all of
# both takes hours.
#
# tests/unpacked_driver.sh says where PoCL comes from: 160 MB of packages.
#
#   POCL_DIR     the folder; build/pocl
#   POCL_SUITE   the release of Debian; forky, which has PoCL 7
#   POCL_MIRROR  the address of a Debian archive; the one that apt uses
#   PYTHON       the interpreter of the environment that xpurt is installed in
#   XPURT_USM_ON_SVM   on: PoCL's unified shared memory is hidden, and made of its SVM
set -euo pipefail
cd "$(dirname "$0")/.."

name=PoCL package=pocl-opencl-icd size="160 MB"
folder=$(realpath -m "${POCL_DIR:-build/pocl}")
suite=${POCL_SUITE:-forky}
mirror=${POCL_MIRROR:-}
python=${PYTHON:-.venv/bin/python}
. tests/unpacked_driver.sh

[ -e "$libraries/libpocl.so.2" ] || unpack
export POCL_CACHE_DIR=$folder/cache
mkdir -p "$POCL_CACHE_DIR"
if [ "${XPURT_USM_ON_SVM:-off}" = on ]; then
    OPENCL_LAYERS=$(PYTHONPATH=tests "$python" -c "from pathlib import Path
from usm_on_svm.svm_child import compile_hiding_library
print(compile_hiding_library(Path('$folder')))")
    export OPENCL_LAYERS
fi
use_driver libpocl.so.2
run_arguments "$@"
run_samples alignment chunks complex embedding_bags fused_optimizers image_rows out_types \
    padding random_bits ranges reductions scattering sorting special_functions wrong_indices
