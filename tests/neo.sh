#!/usr/bin/env bash
# Runs xpurt on NEO, Intel's driver of its GPUs, without a GPU: `make test-neo`. A library
# answers for an Arc A770 that runs no kernel (tests/neo/noop_gpu.h). So this tests all but
# results: that the device is listed and mapped, memory, copies, and that Intel's compiler
# builds the kernels and the driver launches them. Arguments are pytest's, or Python's after
# the word `python`; without them, the tests in tests/neo. The CPU driver is there, too.
#
# tests/unpacked_driver.sh says where NEO comes from: 77 MB of packages.
#
#   NEO_DIR     the folder; build/neo
#   NEO_SUITE   the release of Debian; forky, which has NEO 26.27
#   NEO_MIRROR  the address of a Debian archive; the one that apt uses
#   NEO_GPU     off: without the library, NEO lists no device
#   PYTHON      the interpreter of the environment that xpurt is installed in
set -euo pipefail
cd "$(dirname "$0")/.."

# linux-libc-dev has the structures that NEO and Linux exchange.
name=NEO package="intel-opencl-icd linux-libc-dev" size="77 MB"
folder=$(realpath -m "${NEO_DIR:-build/neo}")
suite=${NEO_SUITE:-forky}
mirror=${NEO_MIRROR:-}
python=${PYTHON:-.venv/bin/python}
mapping=GPU
. tests/unpacked_driver.sh

[ -e "$folder/root/usr/include/drm/i915_drm.h" ] || unpack

# The files that the driver looks for before it opens a device.
export NOOP_GPU_ROOT=$folder/files
pci=0000:03:00.0
card=$NOOP_GPU_ROOT/sys/bus/pci/devices/$pci/drm/card0
mkdir -p "$NOOP_GPU_ROOT/dev/dri/by-path" "$card"
touch "$NOOP_GPU_ROOT/dev/dri/by-path/pci-$pci-render"
echo 2400 > "$card/gt_max_freq_mhz"

if [ "${NEO_GPU:-on}" = on ]; then
    need "the library in tests/neo is in C: install a C compiler" cc
    # The system's own headers come first.
    cc -std=gnu17 -O2 -Wall -Wextra -Werror -shared -fPIC -idirafter "$folder/root/usr/include" \
        -o "$folder/libnoop_gpu.so" tests/neo/*.c -ldl
    export LD_PRELOAD=$folder/libnoop_gpu.so
fi
export NEO_CACHE_DIR=$folder/cache
mkdir -p "$NEO_CACHE_DIR"
use_driver intel-opencl/libigdrcl.so
cpu=$("$python" -c "from xpurt.startup import driver; print(driver.find_cpu_driver() or '')")
[ -n "$cpu" ] || stop "the CPU driver is missing beside SYCL: install intel-opencl-rt"
export OCL_ICD_FILENAMES=$OCL_ICD_FILENAMES:$cpu
run_arguments "$@"
exec "$python" -m pytest --xpu-mapping "$mapping" --xpu-required -q tests/neo
