"""A rank whose peer, rank 1, has a fault of the kind in the first argument.

Rank 0 prints its error as a JSON object, with the seconds until it was raised.
"""

import json
import os
import signal
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist

TIMEOUT = timedelta(seconds=4)


def main(kind: str) -> None:
    fails = int(os.environ["RANK"]) == 1
    if fails and kind == "absent":
        os._exit(1)
    begin = time.monotonic()
    try:
        dist.init_process_group(timeout=TIMEOUT)
        given = torch.ones(9 << 20, device="xpu")
        dist.all_reduce(given)
        begin = time.monotonic()
        if fails and kind == "other_shape":
            given = given[1:].contiguous()
        work = dist.all_reduce(given, async_op=kind.startswith("killed"))
        if fails and kind.startswith("killed"):
            os.kill(os.getpid(), signal.SIGKILL)
        if kind == "killed, then read":
            work.wait()
            print((given + 1).sum().item())
        if fails and kind == "late":
            time.sleep(2 * TIMEOUT.seconds)
        for _ in range(20):
            dist.all_reduce(given)
        if work is not None:
            work.wait()
        torch.xpu.synchronize()
    except Exception as error:
        seconds = time.monotonic() - begin
        print(json.dumps([type(error).__name__, str(error), seconds]), flush=True)
    # A group with a broken connection can't be destroyed in order.
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1])
