"""Scripts on two ranks that torchrun starts."""

import os
import signal
import subprocess
import sys

TIMEOUT_S = 200

# The begin of a script that trains a small network, in one process and then on ranks.
NETWORK = """
import sys
import torch
from torch import nn
from torch.nn.functional import mse_loss

(strategy,) = sys.argv[1:]
seed = torch.Generator().manual_seed(0)
# All samples are in each step, and their order does not matter.
x, y = torch.rand(16, 8, generator=seed), torch.rand(16, 3, generator=seed)

def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))

def sgd(module):
    return torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)

def alone():
    # The trained network of one process, and its losses.
    module = network()
    optimizer = sgd(module)
    losses = []
    for _ in range(4):
        optimizer.zero_grad()
        loss = mse_loss(module(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return module, torch.tensor(losses)
"""


def torchrun(script: str, *arguments: str, restarts: int = 0, **variables: str) -> str:
    """Runs a script on two ranks, without a mapping asked for. Returns what they print.

    They are in a session of their own: torchrun ends its group, and no rank outlives
    the test.
    """
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", **variables}
    environment.pop("XPURT_MAPPING", None)
    options = ["--nproc-per-node", "2", "--standalone", "--local-addr", "127.0.0.1"]
    options += ["--max-restarts", str(restarts)]
    launch = subprocess.Popen(
        [
            *(sys.executable, "-m", "torch.distributed.run"),
            *(*options, script, *arguments),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    )
    try:
        out, err = launch.communicate(timeout=TIMEOUT_S)
    finally:
        if launch.poll() is None:
            os.killpg(launch.pid, signal.SIGKILL)
            launch.communicate()
    assert launch.returncode == 0, err
    return out
