"""Checks the kernels of a conformance run on Oclgrind: `make test-oclgrind`.

    OCLGRIND=liboclgrind-rt.so python tests/oclgrind/run_oclgrind.py [--ops NAME ...]
        [--sample N] [--repeats N] [--spoilt N] [--folder FOLDER]

The launches are recorded on a strict virtual GPU, and each is replayed. The exit status is
1 if a kernel has a fault that is not known, or other results, or does not run. --spoilt N
then spoils N of the kernels, one change in each, and replays their launches: 95 of 100 have
to be found. A change counts if a plain device sees it (spoilt.py).
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from spoilt import spoil_and_check

from xpurt.testing.kernels import KernelCheck, check_recorded, recording

WANTED = 0.95
# Kernels with a fault of their inputs, and the reason.
KNOWN = {
    "native_batch_norm_1_f": "running statistics are expanded: all channels write one",
}
# One for each template and way of writing a custom kernel.
OPS = (
    *("add", "where", "sum", "amax", "var", "norm", "argmax", "cumsum", "logcumsumexp"),
    *("softmax", "bmm", "mv", "cat", "gather", "scatter_add", "index_put", "index_add"),
    *("sort", "topk", "kthvalue", "nonzero", "masked_select", "unique", "searchsorted"),
    *(
        "tril",
        "roll",
        "flip",
        "histc",
        "cdist",
        "take",
        "mode",
        "median",
        "multinomial",
    ),
    *("nn.functional.conv2d", "nn.functional.conv_transpose2d", "nn.functional.unfold"),
    *(
        "nn.functional.layer_norm",
        "nn.functional.batch_norm",
        "nn.functional.group_norm",
    ),
    *("nn.functional.max_pool2d", "nn.functional.avg_pool2d", "nn.functional.pad"),
    *("nn.functional.embedding_bag", "nn.functional.cross_entropy"),
    *("nn.functional.interpolate", "nn.functional.grid_sample"),
    *("nn.functional.scaled_dot_product_attention", "nn.functional.ctc_loss"),
)
CONFORMANCE = (
    *("-m", "xpurt", "conformance", "--mapping", "GPU", "--virtual-gpu", "strict"),
    *("--policy", "sycl", "--timeout", "600", "--dtypes", "float32", "int64"),
)


def record(folder: Path, sample: int, ops: Sequence[str]) -> None:
    command = [sys.executable, *CONFORMANCE, "--samples-per-pair", str(sample)]
    if ops:
        command += ["--ops", *ops]
    variables = {
        **os.environ,
        **recording(folder),
        "XPURT_CACHE_SIZE": "0",
    }
    done = subprocess.run(command, env=variables, check=False)
    if done.returncode != 0:
        print(f"the conformance run ended with {done.returncode}")


def tell(check: KernelCheck) -> None:
    print(f"launches {check.launches}, not run {sum(check.not_run.values())}")
    for reason, count in check.not_run.items():
        print(f"    {count}: {reason}")
    print(f"kernels whose results differ: {len(check.differing)}")
    for kernel, count in sorted(check.differing.items()):
        print(f"    {kernel}: {count}")
    print(f"kernels whose results are rounded otherwise: {len(check.rounded)}")
    for kernel, count in sorted(check.rounded.items()):
        print(f"    {kernel}: {count}")
    print(f"faults: {len(check.faults)}")
    for fault in check.faults:
        reason = KNOWN.get(fault.kernel, "")
        print(f"{fault.kind} in {fault.kernel}, launch {fault.launch} {reason}")
        print(f"    {fault.message}")


def main() -> int:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--ops", nargs="*", default=OPS, help="no name: all ops")
    parser.add_argument("--sample", type=int, default=2, help="calls of each op")
    parser.add_argument(
        "--repeats", type=int, help="launches that differ in their data alone: all"
    )
    parser.add_argument("--spoilt", type=int, default=0)
    parser.add_argument("--folder", type=Path, help="keeps what is recorded there")
    arguments = parser.parse_args()
    library = os.environ["OCLGRIND"]
    with TemporaryDirectory() as made:
        folder = arguments.folder or Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        if not any(folder.glob("*.launch")):
            record(folder, arguments.sample, arguments.ops)
        check = check_recorded(folder, library, 600, arguments.repeats)
        tell(check)
        wrong = bool(check.not_run) or bool(check.differing.keys() - KNOWN.keys())
        wrong |= any(each.kernel not in KNOWN for each in check.faults)
        if arguments.spoilt:
            found, run = spoil_and_check(folder, library, arguments.spoilt)
            print(f"spoilt kernels: {run}, found {found}")
            wrong |= found < WANTED * run
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
