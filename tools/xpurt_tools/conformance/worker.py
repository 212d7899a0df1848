"""A process that checks pairs, one after the other. A crash or a hang affects one pair.

Requests come on stdin. Answers go to the original stdout, a JSON object per line:

    -> {"name": "add", "dtype": "float32", "category": "ops", "timeout_s": 300}
    <- {"at": "call, sample 0"}
    <- {"result": {...}}

The argument is the run's settings in JSON. The first answer is {"ready": "CPU"}, with the
mapping. All other output goes to stderr.
"""

import faulthandler
import json
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

import torch

import xpurt
from xpurt_tools.conformance import tested_device
from xpurt_tools.conformance.check_compiled import check_compiled
from xpurt_tools.conformance.check_module import check_module
from xpurt_tools.conformance.check_op import check_op
from xpurt_tools.conformance.check_optimizer import check_optimizer
from xpurt_tools.conformance.check_through import SOURCES, check_through
from xpurt_tools.conformance.databases import Entry, Kind, load
from xpurt_tools.conformance.gpu_types import CATEGORY
from xpurt_tools.conformance.layers_above import LAYERS
from xpurt_tools.conformance.pairs import Pair
from xpurt_tools.conformance.record import Record
from xpurt_tools.conformance.results import Result
from xpurt_tools.conformance.settings import Settings
from xpurt_tools.conformance.sweeps import SWEEPS

Check = Callable[..., None]

CHECKS: dict[Kind, Check] = {
    "op": check_op,
    "module": check_module,
    "optimizer": check_optimizer,
}


def main() -> None:
    settings = Settings(**json.loads(sys.argv[1]))
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    faulthandler.enable()
    warnings.simplefilter("ignore")

    def answer(data: dict[str, Any]) -> None:
        answers.write(json.dumps(data) + "\n")
        answers.flush()

    entries = {} if settings.sweep else load(settings.database)
    checks = CHECKS.copy()
    if settings.compiled:
        checks["op"] = check_compiled
    if settings.through is not None:
        through = partial(check_through, layers=LAYERS[settings.through])
        checks.update(dict.fromkeys(SOURCES, through))
    tested_device.use(settings.device)
    torch.zeros(1, device=tested_device.tested_device()).cpu()
    answer({"ready": xpurt.get_xpu_mapping()})

    def tell(where: str) -> None:
        answer({"at": where})

    for line in sys.stdin:
        asked = json.loads(line)
        # A little before the parent's timeout. faulthandler uses a thread: a signal
        # does not reach Python once a driver has replaced its handler.
        faulthandler.dump_traceback_later(0.9 * asked["timeout_s"])
        pair = Pair(asked["name"], asked["dtype"], asked["category"])
        if settings.sweep:
            result = check_sweep(pair, settings, tell, asked["skip"])
        else:
            most = settings.samples_per_pair
            result = check(entries[pair.name], pair.dtype, most, tell, checks)
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
        checks[entry.kind](entry, kind, record, most_samples=most_samples)
    except Exception:
        record.failed("harness", -1, None, traceback.format_exc()[-700:])
    return record.result()


def check_sweep(
    pair: Pair,
    settings: Settings,
    tell: Callable[[str], None] = lambda where: None,
    skip: Collection[str] = (),
) -> Result:
    """The result of a pair of the sweep that `settings` name, without the trials of
    `skip`."""
    assert settings.sweep is not None
    record = Record(pair.name, pair.dtype, pair.category, tell, skip, swept=True)
    try:
        SWEEPS[settings.sweep].check(pair, record, settings)
    except Exception:
        record.failed("harness", -1, None, traceback.format_exc()[-700:])
    return record.result()


if __name__ == "__main__":
    main()
