"""Starts the ranks of a process group, and collects what each one found."""

import json
import os
import socket
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from own_process import ONE_COMPILER, run_forked
from ranks import RANKS

START_S = 240.0

Found = dict[str, str]


def environments(mapping: str, **variables: str) -> Iterator[dict[str, str]]:
    """The environment of each rank. They talk to each other on 127.0.0.1 alone. No op of
    theirs may be computed by the host on copies, unless `host_copies` allows it.

    variables: more of them; WORLD_SIZE is the number of ranks, LOCAL_WORLD_SIZE numbers
    them as a launcher does.
    """
    launched = "LOCAL_WORLD_SIZE" in variables
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    ranks = int(variables.get("WORLD_SIZE", RANKS))
    for rank in range(ranks):
        yield {
            **os.environ,
            **ONE_COMPILER,
            "XPURT_MAPPING": mapping,
            "XPURT_FALLBACK": "error",
            "OMP_NUM_THREADS": "1",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
            "GLOO_SOCKET_IFNAME": "lo",
            "RANK": str(rank),
            "WORLD_SIZE": str(ranks),
            **({"LOCAL_RANK": str(rank)} if launched else {}),
            **variables,
        }


FORKED = """
import runpy, sys, torch
# Variables that were read before.
torch.set_num_threads(1)
torch.distributed.set_debug_level_from_env()
sys.argv = {arguments}
sys.path[0] = {folder!r}
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def ended(
    script: Path, mapping: str, *arguments: str, **variables: str
) -> list[subprocess.CompletedProcess[str]]:
    """The ranks of `script` at their end. They are forked from a process that has
    imported PyTorch."""
    code = FORKED.format(arguments=[str(script), *arguments], folder=str(script.parent))

    def rank(environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
        return run_forked(code, START_S, environment, ())

    all_of_them = list(environments(mapping, **variables))
    with ThreadPoolExecutor(len(all_of_them)) as at_once:
        return list(at_once.map(rank, all_of_them))


def run(script: Path, mapping: str, *arguments: str, **variables: str) -> list[Found]:
    """What the cases of each rank found: "ok", or the error."""
    ranks = ended(script, mapping, *arguments, **variables)
    for rank in ranks:
        assert rank.returncode == 0, rank.stderr
    return [json.loads(rank.stdout.splitlines()[-1]) for rank in ranks]
