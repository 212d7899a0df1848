#!/usr/bin/env bash
# Checks kernels on Oclgrind, a simulator that finds races, accesses out of bounds and uses
# of what nothing wrote: `make test-oclgrind`. Arguments are those of run_oclgrind.py. It
# comes from packages of Debian 12, unpacked into a folder, once: 190 MB. No rights of root
# are needed.
#
#   OCLGRIND_DIR     the folder; build/oclgrind
#   OCLGRIND_MIRROR  the address of a Debian archive; the one that apt uses
#   OCLGRIND_MISSING what happens where it can't be had: fail, or skip
#   PYTHON           the interpreter of the environment that xpurt is installed in
set -euo pipefail
cd "$(dirname "$0")/../.."

name=Oclgrind package=oclgrind suite=bookworm size="50 MB"
folder=$(realpath -m "${OCLGRIND_DIR:-build/oclgrind}")
mirror=${OCLGRIND_MIRROR:-}
python=${PYTHON:-.venv/bin/python}
source tests/unpacked_driver.sh

fetch() {
    unpack
    # Not the C library and that of C++: the interpreter is linked with the system's.
    local each
    mkdir -p "$folder/lib"
    for each in "$libraries" "$folder/root/lib/x86_64-linux-gnu"; do
        find "$each" -name 'liboclgrind*.so' -o -name 'lib*.so.*' \
            -regex '.*/lib\(LLVM\|edit\|z3\|tinfo\|bsd\|md\|xml2\|icu\|ffi\|zstd\|z\.\|lzma\).*' \
            | xargs -r ln -sf -t "$folder/lib"
    done
    touch "$folder/complete"
}

[ -e "$folder/complete" ] || or_skip Oclgrind "${OCLGRIND_MISSING:-fail}" fetch
export LD_LIBRARY_PATH=$folder/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export OCLGRIND=$folder/root/usr/lib/oclgrind/liboclgrind-rt.so
"$python" -m pytest -q tests/oclgrind
exec "$python" tests/oclgrind/run_oclgrind.py "$@"
