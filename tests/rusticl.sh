#!/usr/bin/env bash
# Runs kernels on rusticl, Mesa's OpenCL driver, with llvmpipe, which computes on the CPU:
# `make test-rusticl`. rusticl has no unified shared memory, so this needs and tests
# XPURT_USM_ON_SVM=on. Arguments are pytest's, or Python's after the word `python`; without
# them, samples of the conformance run and of tests/kernels.
#
# tests/unpacked_driver.sh says where rusticl comes from: 80 MB of packages.
#
#   RUSTICL_DIR     the folder; build/rusticl
#   RUSTICL_SUITE   the release of Debian; forky, which has Mesa 26
#   RUSTICL_MIRROR  the address of a Debian archive; the one that apt uses
#   PYTHON          the interpreter of the environment that xpurt is installed in
set -euo pipefail
cd "$(dirname "$0")/.."

name=rusticl package=mesa-opencl-icd size="80 MB"
folder=$(realpath -m "${RUSTICL_DIR:-build/rusticl}")
suite=${RUSTICL_SUITE:-forky}
mirror=${RUSTICL_MIRROR:-}
python=${PYTHON:-.venv/bin/python}
. tests/unpacked_driver.sh

[ -e "$libraries/libRusticlOpenCL.so.1" ] || unpack

# rusticl finds libclc and Clang's headers in /usr/lib only. So the rest of this script runs
# in a mount namespace of its own, where the packages' folders lie over those of /usr/lib.
# A user namespace gives the right to mount there. Both end with the script.
if [ "${RUSTICL_NAMESPACE:-}" != entered ]; then
    over=$folder/over
    mkdir -p "$over"
    (cd "$folder/root/usr/lib" && cp -rlf --parents clc llvm-*/lib/clang "$over")
    enter=(unshare --map-root-user --mount bash -c 'mount -t overlay overlay \
        -o "lowerdir=$1:/usr/lib" /usr/lib && shift && exec "$@"' bash "$over")
    "${enter[@]}" true || stop "rusticl needs an overlay over /usr/lib in a user namespace and \
a mount namespace, which 'unshare --map-root-user --mount' can't make here: allow user \
namespaces, on Linux 5.11 or later. Containers often forbid them."
    RUSTICL_NAMESPACE=entered exec "${enter[@]}" tests/rusticl.sh "$@"
fi
export RUSTICL_ENABLE=llvmpipe XPURT_USM_ON_SVM=on
use_driver libRusticlOpenCL.so.1
run_arguments "$@"
run_samples chunks ranges scattering sorting
