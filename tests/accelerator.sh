#!/usr/bin/env bash
# Runs xpurt on an accelerator, OpenCL's third type of device: `make test-accelerator`. It is
# Intel's emulation of an FPGA, which computes on the CPU. Arguments are pytest's, or Python's
# after the word `python`; without them, the tests of accelerators, the demo, models, and
# samples of the conformance run and of tests/kernels. The emulation has OpenCL 1.2,
# sub-groups of one work-item, and no half precision.
#
# It comes from three packages of Python, 300 MB, which are unpacked and not installed: the
# driver, its compiler, and a library that the compiler is linked with.
#
#   ACCELERATOR_DIR  the folder; build/accelerator
#   PYTHON           the interpreter of the environment that xpurt is installed in
set -euo pipefail
cd "$(dirname "$0")/.."

name="the emulation of an FPGA"
folder=$(realpath -m "${ACCELERATOR_DIR:-build/accelerator}")
python=${PYTHON:-.venv/bin/python}
mapping=AUTO:accelerator marks="not programs"
. tests/unpacked_driver.sh

version=2025.0.5
packages=(intel-opencl-fpga-emu-rt intel-opencl-rt intel-cmplr-lib-rt)

fetch_packages() {
    local each
    [ "$(uname -m)" = x86_64 ] || stop "this machine is $(uname -m): the packages are for x86_64"
    echo "fetching $name into $folder: 300 MB, once"
    rm -rf "$folder/lib" "$folder/unpacked"
    mkdir -p "$folder/lib"
    "$python" -m pip --disable-pip-version-check -q download --no-deps \
        --dest "$folder/wheels" "${packages[@]/%/==$version}" ||
        stop "$name can't be had: pip found no ${packages[*]} $version. Allow pip an index \
that has them, or put their wheels into a folder and set PIP_FIND_LINKS to it."
    for each in "$folder"/wheels/*.whl; do
        "$python" -m zipfile -e "$each" "$folder/unpacked"
    done
    # Of the last package one library; the others are those of the environment.
    mv "$folder"/unpacked/intel_opencl_*.data/data/lib/* "$folder/lib"
    mv "$folder"/unpacked/intel_cmplr_*.data/data/lib/libonnxruntime.* "$folder/lib"
    # The loader and the CPU driver are those of the environment, too.
    rm -r "$folder"/lib/libOpenCL.* "$folder"/lib/libintelocl.so* "$folder"/{wheels,unpacked}
    touch "$folder/complete"
}

[ -e "$folder/complete" ] || fetch_packages
cpu=$("$python" -c "from xpurt.startup import driver; print(driver.find_cpu_driver() or '')")
[ -n "$cpu" ] || stop "the CPU driver is missing beside SYCL: install intel-opencl-rt"
export OCL_ICD_FILENAMES=$folder/lib/libintelocl_emu.so:$cpu OCL_ICD_VENDORS=/nonexistent
export XPURT_CACHE_DIR=$folder/xpurt-cache XPURT_VIRTUAL_GPU=off XPURT_MAPPING=$mapping
"$python" -m xpurt devices
run_arguments "$@"

models=(resnet gpt)
! "$python" -c "import transformers" 2> /dev/null || models+=(bert vit)

status=0
"$python" -m pytest -q tests/accelerators || status=$?
for each in "$mapping" AUTO; do
    echo "mapping $each"
    "$python" -m xpurt demo --mapping "$each" --epochs 2 || status=$?
    XPURT_MAPPING=$each "$python" tests/usm_on_svm/train_models.py "${models[@]}" || status=$?
done
(run_samples chunks ranges scattering sorting) || status=$?
exit $status
