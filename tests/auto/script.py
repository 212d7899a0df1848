"""Scripts under AUTO, in processes of their own."""

from typing import Any

from own_process import output

BEGIN = """
import time, torch, xpurt
from xpurt import _C, mapping
devices = mapping.current_placement().ordinals[0]
kinds = [d.kind for d in devices]
names = {d.name: d.kind for d in devices}
def costs(cpu_us, gpu_us, copy_us=0):
    times = {"cpu": cpu_us, "gpu": gpu_us}
    _C.set_device_costs(0, [(times[k], 1e9, 1e9, copy_us, 1e9) for k in kinds])
def times(cpu_us, gpu_us):
    # What a timed call takes from now on, by a clock that stands between these.
    of = {"cpu": cpu_us, "gpu": gpu_us}
    _C.testing.pretend_times([of[k] for k in kinds] + [cpu_us])
def ran_on(op):
    rows = xpurt.op_report(reset=True)
    return {names[row.device]: row.calls for row in rows if row.op == op}
"""


def auto(code: str, **options: Any) -> list[str]:
    settings = {
        "XPURT_MAPPING": "AUTO",
        "XPURT_VIRTUAL_GPU": "strict",
        "XPURT_LEARN": "1",
        **options,
    }
    return output(BEGIN + code, **settings).splitlines()
