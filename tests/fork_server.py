"""A process that has imported PyTorch, of which others are forked: that import is most
of what a short process takes.

Run as a program, with a socket of packets as its standard input, and the names of other
modules to import as its arguments. A packet is a request in JSON and three file
descriptors; the forked process runs the code as `python -c` would, `to_the_end` of the
interpreter if that is asked. Its number, and then how it ended, are written to the last
descriptor; the others are what it writes to.
"""

import atexit
import gc
import importlib
import json
import os
import socket
import sys
import threading
from types import ModuleType
from typing import Any

LARGEST_REQUEST = 1 << 17  # bytes


def serve(requests: socket.socket) -> dict[str, Any]:
    """Returns in the processes that are to run code, with the request."""
    while True:
        packet, descriptors, _, _ = socket.recv_fds(requests, LARGEST_REQUEST, 3)
        if not packet:
            os._exit(0)
        if os.fork() == 0:
            requests.close()
            watch(*descriptors)
            return json.loads(packet)
        for each in descriptors:
            os.close(each)
        forget_the_ended()


def watch(out: int, err: int, report: int) -> None:
    """Returns in a process of its own, and reports on it."""
    child = os.fork()
    if child == 0:
        os.dup2(out, 1)
        os.dup2(err, 2)
        for each in (out, err, report):
            os.close(each)
        return
    os.write(report, f"{child}\n".encode())
    _, status = os.waitpid(child, 0)
    os.write(report, f"{os.waitstatus_to_exitcode(status)}\n".encode())
    os._exit(0)


def forget_the_ended() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def leave() -> None:
    """Ends the process after its threads and what it registered. The interpreter's own
    end, with PyTorch's, takes as long as the import of xpurt and its first op."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def run(asked: dict[str, Any]) -> None:
    """Runs the code in a module of its own, whose names are none of this one's."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.environ.clear()
    os.environ.update(asked["environment"])
    os.chdir(asked["folder"])
    sys.argv, sys.path[0] = ["-c"], ""
    module = sys.modules["__main__"] = ModuleType("__main__")
    torch = importlib.import_module("torch")
    # The last step of `import torch`.
    if torch._is_device_backend_autoload_enabled():
        torch._import_device_backends()
    exec(compile(asked["code"], "<string>", "exec"), vars(module))
    if not asked["to_the_end"]:
        leave()


if __name__ == "__main__":
    os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    for name in ("torch", *sys.argv[1:]):
        importlib.import_module(name)
    gc.freeze()
    run(serve(socket.socket(fileno=os.dup(0))))
