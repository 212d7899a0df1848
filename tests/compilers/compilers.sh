#!/usr/bin/env bash
# Compiles kernels by the compilers of vendors' GPUs: `make test-compilers`. Arguments are
# those of run_compilers.py. The compilers are unpacked into a folder, once: 900 MB. No
# rights of root and no GPU are needed.
#
#   COMPILERS_DIR     the folder; build/compilers
#   COMPILERS_MIRROR  the address of a Debian archive; the one that apt uses
#   COMPILERS_MISSING what happens where they can't be had: fail, or skip
#   PYTHON            the interpreter of the environment that xpurt is installed in
set -euo pipefail
cd "$(dirname "$0")/../.."

root=$(realpath -m "${COMPILERS_DIR:-build/compilers}")
export COMPILERS_DIR=$root
mirror=${COMPILERS_MIRROR:-}
python=${PYTHON:-.venv/bin/python}

# fetch NAME FOLDER SUITE SIZE PACKAGE...
fetch() {
    name=$1 folder=$root/$2 suite=$3 size=$4 package="${*:5}"
    . tests/unpacked_driver.sh
    [ ! -e "$folder/root/complete" ] || return 0
    unpack
    touch "$folder/root/complete"
}

# The assembler is a package of Python.
fetch_ptxas() {
    [ ! -e "$root/nvidia/complete" ] || return 0
    echo "fetching NVIDIA's assembler into $root/nvidia: 47 MB, once"
    "$python" -m pip --disable-pip-version-check -q install --no-deps \
        --target "$root/nvidia" nvidia-cuda-nvcc
    chmod +x "$root"/nvidia/nvidia/*/bin/ptxas
    touch "$root/nvidia/complete"
}

. tests/debian_archive.sh
part() { or_skip "$1" "${COMPILERS_MISSING:-fail}" "${@:2}"; }
part "Intel's compiler" fetch "Intel's compiler for GPUs" intel forky "70 MB" \
    intel-ocloc libigc2 libigdfcl2
part "clang" fetch "clang with libclc" clang bookworm "130 MB" clang-19 libclc-19
part "NVIDIA's assembler" fetch_ptxas
exec "$python" tests/compilers/run_compilers.py "$@"
