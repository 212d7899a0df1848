"""A process that checks pairs, one after the other. A crash or a hang affects one pair.

Requests come on stdin. Answers go to the original stdout, a JSON object per line:

    -> {"name": "add", "dtype": "float32", "most_samples": null, "timeout_s": 300}
    <- {"at": "call, sample 0"}
    <- {"result": {...}}

The first answer is {"ready": "CPU"}, with the mapping. All other output goes to stderr.
"""

import argparse
import faulthandler
import json
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import torch

import xpurt
from xpurt.conformance import tested_device
from xpurt.conformance.check_compiled import check_compiled
from xpurt.conformance.check_module import check_module
from xpurt.conformance.check_op import check_op
from xpurt.conformance.check_optimizer import check_optimizer
from xpurt.conformance.databases import Entry, Kind, load
from xpurt.conformance.gpu_types import CATEGORY
from xpurt.conformance.record import Record
from xpurt.conformance.results import Result

Check = Callable[[Entry, torch.dtype, Record, int | None], None]

CHECKS: dict[Kind, Check] = {
    "op": check_op,
    "module": check_module,
    "optimizer": check_optimizer,
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--database", required=True)
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("--device", default="xpu")
    options = parser.parse_args()

    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    faulthandler.enable()
    warnings.simplefilter("ignore")

    def answer(data: dict[str, Any]) -> None:
        answers.write(json.dumps(data) + "\n")
        answers.flush()

    entries = load(options.database)
    checks = {**CHECKS, "op": check_compiled} if options.compiled else CHECKS
    tested_device.use(options.device)
    torch.zeros(1, device=tested_device.tested_device()).cpu()
    answer({"ready": xpurt.get_xpu_mapping()})
    for line in sys.stdin:
        asked = json.loads(line)
        # A little before the parent's timeout. faulthandler uses a thread: a signal
        # does not reach Python once a driver has replaced its handler.
        faulthandler.dump_traceback_later(0.9 * asked["timeout_s"])
        result = check(
            entries[asked["name"]],
            asked["dtype"],
            asked["most_samples"],
            lambda where: answer({"at": where}),
            checks,
        )
        faulthandler.cancel_dump_traceback_later()
        answer({"result": result.as_data()})
    # Skips destructors: a crash in one would cost a result.
    os._exit(0)


def check(
    entry: Entry,
    dtype: str,
    most_samples: int | None,
    tell: Callable[[str], None],
    checks: Mapping[Kind, Check] = CHECKS,
) -> Result:
    """The result of one pair. An exception outside of the trials is a failure, too."""
    kind = getattr(torch, dtype)
    category = CATEGORY if kind in entry.gpu_dtypes else entry.category
    record = Record(entry.name, dtype, category, tell)
    try:
        checks[entry.kind](entry, kind, record, most_samples)
    except Exception:
        record.failed("harness", -1, None, traceback.format_exc()[-700:])
    return record.result()


if __name__ == "__main__":
    main()
