"""The ranks of a process group, seen from their parent.

Each rank has one processor, as far as there are enough, and one thread for ops. The
ranks talk to each other on 127.0.0.1 alone.
"""

import atexit
import functools
import json
import socket
import subprocess
from typing import Any

import xpurt
from xpurt_tools.bench.line_process import LineProcess


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class RankGroup:
    """Runs `xpurt_tools.bench.ranks.worker` once for each rank.

    Raises RuntimeError, from each method, if a rank has ended.
    """

    def __init__(self, ranks: int, mapping: str) -> None:
        common = {
            "XPURT_MAPPING": mapping,
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(_free_port()),
            "GLOO_SOCKET_IFNAME": "lo",
            "WORLD_SIZE": str(ranks),
        }
        self.processes = [
            LineProcess("xpurt_tools.bench.ranks.worker", {**common, "RANK": str(rank)})
            for rank in range(ranks)
        ]
        atexit.register(self.close)

    def run(self, work: str, device: str = "xpu", calls: int = 1) -> list[float]:
        """Runs the work so many times on each rank. Returns the seconds of each.

        work: a name of `worker.WORK` and its argument, as in "DDP GPT".
        """
        return [float(each) for each in self.ask(work, device, calls)]

    def ask(self, work: str, device: str = "xpu", calls: int = 1) -> list[Any]:
        """The same; or what each rank returns, for a name of `worker.ANSWERS`."""
        request = json.dumps({"work": work, "device": device, "calls": calls})
        for process in self.processes:
            process.send(request)
        answers: list[dict[str, Any]] = [
            json.loads(process.answer()) for process in self.processes
        ]
        for rank, answer in enumerate(answers):
            if "error" in answer:
                raise RuntimeError(f"{work} on rank {rank}: {answer['error']}")
        return [answer["found"] for answer in answers]

    def close(self) -> None:
        for process in self.processes:
            process.end()
        for process in self.processes:
            try:
                process.process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                process.process.kill()
        atexit.unregister(self.close)


@functools.cache
def group_of_two(mapping: str = "") -> RankGroup:
    """The ranks of the suite; without a mapping, under that of this process. They end
    with it."""
    return RankGroup(2, mapping or xpurt.get_xpu_mapping())
