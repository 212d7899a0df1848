#!/usr/bin/env bash
# Checks kernels on Oclgrind, a simulator that finds races, accesses out of bounds and uses
# of what nothing wrote: `make test-oclgrind`. Arguments are those of run_oclgrind.py. It
# comes from packages of Debian 12, unpacked into a folder, once: 190 MB. No rights of root
# are needed.
#
#   OCLGRIND_DIR     the folder; build/oclgrind
#   OCLGRIND_MIRROR  the address of a Debian archive; the one that apt uses
#   PYTHON           the interpreter of the environment that xpurt is installed in
set -euo pipefail
cd "$(dirname "$0")/../.."

name=Oclgrind package=oclgrind suite=bookworm size="50 MB"
folder=$(realpath -m "${OCLGRIND_DIR:-build/oclgrind}")
mirror=${OCLGRIND_MIRROR:-}
python=${PYTHON:-.venv/bin/python}
source tests/unpacked_driver.sh

if [ ! -e "$folder/complete" ]; then
    unpack
    # Those of the system are as new, and the interpreter is linked with them.
    mkdir -p "$folder/lib"
    for each in "$libraries"/*.so.*; do
        case $(basename "$each") in
            libc.so* | ld-linux* | lib{m,dl,rt,pthread,stdc++,gcc_s,resolv,util}.so*) ;;
            *) ln -sfn "$each" "$folder/lib" ;;
        esac
    done
    touch "$folder/complete"
fi
export LD_LIBRARY_PATH=$folder/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export OCLGRIND=$folder/root/usr/lib/oclgrind/liboclgrind-rt.so
"$python" -m pytest -q tests/oclgrind
exec "$python" tests/oclgrind/run_oclgrind.py "$@"
