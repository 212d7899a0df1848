"""Scripts on two ranks that torchrun starts."""

import os
import signal
import subprocess
import sys

TIMEOUT_S = 200


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
