# For tests/pocl.sh, tests/rusticl.sh and tests/neo.sh, which source it: an OpenCL driver
# from Debian's packages, with the C library that it is linked with, unpacked into a folder
# once. Nothing is installed, and no rights of root are needed. They set these first:
#
#   name      what messages call the driver
#   package   the packages of Debian, which bring the others
#   folder    where it goes; $folder/root is the root of the packages' files
#   suite     the release of Debian
#   mirror    the address of a Debian archive; empty for the one that apt uses
#   size      of the download, for the message
#   python    the interpreter of the environment that xpurt is installed in
#
# tests/accelerator.sh has a driver from elsewhere; of this it uses what runs tests. It sets
# `mapping`, under which they run, instead of CPU. The tests of kernels are marked `slow`
# under a mapping of its kind, so it sets `marks`, too.
mapping=${mapping:-CPU}
marks=${marks:-not slow and not programs and not rest}
libraries=$folder/root/usr/lib/x86_64-linux-gnu

source "$(dirname "${BASH_SOURCE[0]}")/debian_archive.sh"

unpack() {
    need "$name comes from Debian's packages. Run this on Debian or Ubuntu, or unpack $name \
with its libraries into $folder/root." apt-get dpkg-deb
    [ "$(uname -m)" = x86_64 ] || stop "this machine is $(uname -m): the packages are for x86_64"
    echo "fetching $name of Debian $suite into $folder: $size, once"
    open_archive deb
    apt-get -qq --download-only --no-install-recommends install $package
    local each
    for each in "$folder"/apt/archives/*.deb; do
        dpkg-deb -x "$each" "$folder/root"
    done
    close_archive
}

# An environment like that of `python`, whose interpreter starts with the driver's C library.
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
    python=$folder/venv/bin/python
}

# The library of the driver is the only driver: xpurt leaves a list alone that the user has
# set. Makes the environment, and prints the device.
use_driver() {
    export OCL_ICD_FILENAMES=$libraries/$1 OCL_ICD_VENDORS=/nonexistent
    export XPURT_CACHE_DIR=$folder/xpurt-cache XPURT_VIRTUAL_GPU=off PYTHONPATH=$PWD
    export XPURT_MAPPING=$mapping
    make_environment
    "$python" -c "import torch, xpurt
print('$name device:', torch.xpu.get_device_name(0))
print('driver:', xpurt.physical_devices()[0].driver_version)"
}

# Runs what the arguments of the script ask for, and ends it; without arguments it returns.
run_arguments() {
    [ $# -gt 0 ] || return 0
    if [ "$1" = python ]; then
        shift
        exec "$python" "$@"
    fi
    exec "$python" -m pytest --xpu-mapping "$mapping" --xpu-required "$@"
}

# Samples of the conformance run and of tests/kernels: ops of each kind of kernel. The
# arguments are the names of the files of tests/kernels, without test_ and .py.
run_samples() {
    local ops paths status=0
    ops=(add amax arange argmax argsort bmm cat cdist clamp copysign cumprod cumsum div erfinv
        exp gather histc index_add index_put index_select kthvalue lgamma linspace log_softmax
        logcumsumexp logsumexp masked_scatter masked_select matmul mean median mode nansum
        'nn.functional.*norm' 'nn.functional.*pool2d' nn.functional.{conv2d,cross_entropy}
        nn.functional.{ctc_loss,embedding,embedding_bag,gelu,grid_sample,interpolate,pad}
        nn.functional.scaled_dot_product_attention nonzero norm polygamma prod roll scatter
        scatter_add scatter_reduce searchsorted softmax sort std sum take topk tril unique
        unique_consecutive var where)
    paths=("${@/#/tests/kernels/test_}")
    # Both run, and each may fail.
    "$python" -m xpurt conformance --mapping "$mapping" --policy sycl --sample 8 \
        --dtypes float32 int64 --samples-per-pair 3 --ops "${ops[@]}" || status=$?
    "$python" -m pytest --xpu-mapping "$mapping" --xpu-required -m "$marks" -q \
        "${paths[@]/%/.py}" || status=$?
    exit $status
}
