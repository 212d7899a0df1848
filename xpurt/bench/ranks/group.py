"""The ranks of a process group, seen from their parent.

Each rank has one processor, as far as there are enough, and one thread for ops. The
ranks talk to each other on 127.0.0.1 alone.
"""

import atexit
import functools
import json
import os
import socket
import subprocess
import sys
from typing import Any

import xpurt

ONE_CORE = {"DPCPP_CPU_NUM_CUS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class RankGroup:
    """Runs `xpurt.bench.ranks.worker` once for each rank.

    Raises RuntimeError, from each method, if a rank has ended, with its last words.
    """

    def __init__(self, ranks: int, mapping: str) -> None:
        common = {
            **os.environ,
            **ONE_CORE,
            "XPURT_MAPPING": mapping,
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(_free_port()),
            "GLOO_SOCKET_IFNAME": "lo",
            "WORLD_SIZE": str(ranks),
        }
        self.processes = [
            subprocess.Popen(
                [sys.executable, "-m", "xpurt.bench.ranks.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env={**common, "RANK": str(rank)},
            )
            for rank in range(ranks)
        ]
        atexit.register(self.close)

    def run(self, work: str, device: str = "xpu", calls: int = 1) -> list[float]:
        """Runs the work, a name of `worker.WORK`, so many times on each rank.

        Returns a number for each rank: seconds, or what the work returns instead.
        """
        request = json.dumps({"work": work, "device": device, "calls": calls})
        for process in self.processes:
            assert process.stdin is not None
            process.stdin.write(f"{request}\n")
            process.stdin.flush()
        answers = [self._answer(rank) for rank in range(len(self.processes))]
        for rank, answer in enumerate(answers):
            if "error" in answer:
                raise RuntimeError(f"{work} on rank {rank}: {answer['error']}")
        return [float(answer["found"]) for answer in answers]

    def _answer(self, rank: int) -> dict[str, Any]:
        process = self.processes[rank]
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            code = process.wait(timeout=60)
            raise RuntimeError(f"rank {rank} ended with {code}; its output is above")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        for process in self.processes:
            assert process.stdin is not None
            process.stdin.close()
        for process in self.processes:
            try:
                process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()
        atexit.unregister(self.close)


@functools.cache
def group_of_two() -> RankGroup:
    """The ranks of the suite, under the mapping of this process. They end with it."""
    return RankGroup(2, xpurt.get_xpu_mapping())
