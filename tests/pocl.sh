#!/usr/bin/env bash
# Runs kernels on PoCL, an OpenCL driver for CPUs of another vendor: `make test-pocl`.
# Arguments are pytest's; without them, samples of the conformance run and of tests/kernels.
# PoCL takes 0.5 to 40 s to build a kernel, so all of both takes hours.
#
# PoCL and its C library come from Debian's packages, 160 MB, and are unpacked into a folder
# once. Nothing is installed, and no rights of root are needed. A script there starts Python
# with that C library, so the system's own may be older.
#
#   POCL_DIR     the folder; build/pocl
#   POCL_SUITE   the release of Debian; forky, which has PoCL 7
#   POCL_MIRROR  the address of a Debian archive; the one that apt uses
#   PYTHON       the interpreter of the environment that xpurt is installed in
set -euo pipefail
cd "$(dirname "$0")/.."

folder=$(realpath -m "${POCL_DIR:-build/pocl}")
suite=${POCL_SUITE:-forky}
python=${PYTHON:-.venv/bin/python}
libraries=$folder/root/usr/lib/x86_64-linux-gnu

stop() {
    echo "$1" >&2
    exit 1
}

unpack() {
    local tool
    for tool in apt-get dpkg-deb; do
        command -v $tool > /dev/null || stop "$tool is missing: PoCL comes from Debian's \
packages. Run this on Debian or Ubuntu, or unpack PoCL with its libraries into $folder/root."
    done
    [ "$(uname -m)" = x86_64 ] || stop "this machine is $(uname -m): the packages are for x86_64"
    local keys=/usr/share/keyrings/debian-archive-keyring.gpg
    [ -e $keys ] || stop "$keys is missing: install debian-archive-keyring"
    local mirror=${POCL_MIRROR:-}
    [ -n "$mirror" ] || mirror=$(apt-get indextargets --format '$(REPO_URI)' \
        'Created-By: Packages' 'Origin: Debian' | sed -n 1p)
    [ -n "$mirror" ] || stop "apt uses no archive of Debian here: name one by POCL_MIRROR"
    echo "fetching PoCL of Debian $suite into $folder: 160 MB, once"
    local apt=$folder/apt
    mkdir -p "$apt"/{lists,archives}/partial
    touch "$apt/status"
    echo "deb [arch=amd64 signed-by=$keys] $mirror $suite main" \
        > "$apt/sources.list"
    # The lists, the state and the packages of this run alone: the system's stay as they are.
    cat > "$apt/apt.conf" <<END
APT::Architecture "amd64";
APT::Sandbox::User "";
Debug::NoLocking "true";
Dir::State "$apt";
Dir::State::status "$apt/status";
Dir::Cache "$apt";
Dir::Etc::SourceList "$apt/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::Etc::PreferencesParts "/dev/null";
END
    APT_CONFIG=$apt/apt.conf apt-get -qq update
    APT_CONFIG=$apt/apt.conf apt-get -qq --download-only --no-install-recommends \
        install pocl-opencl-icd
    local package
    for package in "$apt"/archives/*.deb; do
        dpkg-deb -x "$package" "$folder/root"
    done
    rm -r "$apt"
}

# An environment like that of PYTHON, whose interpreter starts with PoCL's C library.
make_environment() {
    local prefix base
    prefix=$("$python" -c 'import sys; print(sys.prefix)')
    base=$("$python" -c 'import os, sys; print(os.path.realpath(sys._base_executable))')
    mkdir -p "$folder/venv/bin" "$folder/venv/lib"
    cp "$prefix/pyvenv.cfg" "$folder/venv"
    ln -sfn "$prefix"/lib/* "$folder/venv/lib"
    ln -sfn "$prefix"/bin/ninja "$folder/venv/bin"
    cat > "$folder/venv/bin/python" <<END
#!/bin/sh
exec $libraries/ld-linux-x86-64.so.2 --argv0 "\$0" \\
    --library-path $libraries:$(dirname "$base")/../lib:/usr/lib/x86_64-linux-gnu $base "\$@"
END
    chmod +x "$folder/venv/bin/python"
}

[ -e "$libraries/libpocl.so.2" ] || unpack
make_environment

# The only driver: xpurt leaves a list of drivers alone that the user has set.
export OCL_ICD_FILENAMES=$libraries/libpocl.so.2 OCL_ICD_VENDORS=/nonexistent
export POCL_CACHE_DIR=$folder/cache XPURT_CACHE_DIR=$folder/xpurt-cache
export XPURT_VIRTUAL_GPU=off PYTHONPATH=$PWD
mkdir -p "$POCL_CACHE_DIR"
python=$folder/venv/bin/python
"$python" -c 'import torch, xpurt
xpurt.set_xpu_mapping("CPU")
print("PoCL device:", torch.xpu.get_device_name(0))'

if [ $# -gt 0 ]; then
    exec "$python" -m pytest --xpu-mapping CPU --xpu-required "$@"
fi
# Ops of each kind of kernel.
ops=(add amax arange argmax argsort bmm cat cdist clamp copysign cumprod cumsum div erfinv
    exp gather histc index_add index_put index_select kthvalue lgamma linspace log_softmax
    logcumsumexp logsumexp masked_scatter masked_select matmul mean median mode nansum
    'nn.functional.*norm' 'nn.functional.*pool2d' nn.functional.{conv2d,cross_entropy}
    nn.functional.{ctc_loss,embedding,embedding_bag,gelu,grid_sample,interpolate,pad}
    nn.functional.scaled_dot_product_attention nonzero norm polygamma prod roll scatter
    scatter_add scatter_reduce searchsorted softmax sort std sum take topk tril unique
    unique_consecutive var where)
files=(alignment chunks complex embedding_bags fused_optimizers image_rows out_types padding
    random_bits ranges reductions scattering sorting special_functions wrong_indices)
paths=("${files[@]/#/tests/kernels/test_}")
# Both run, and each may fail.
status=0
"$python" -m xpurt conformance --policy sycl --dtypes float32 int64 --sample 8 \
    --samples-per-pair 3 --ops "${ops[@]}" || status=$?
"$python" -m pytest --xpu-mapping CPU --xpu-required -q \
    "${paths[@]/%/.py}" || status=$?
exit $status
