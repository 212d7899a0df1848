"""Tests that need a process of their own, because of what it remembers or how it ends."""

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
import zlib
from functools import cache, partial
from pathlib import Path
from typing import Any

# What is read after the import of PyTorch and of its compiler.
READ_LATE = (
    *("XPURT_", "OCL_ICD_", "OPENCL_LAYERS", "ONEAPI_DEVICE_SELECTOR"),
    *("TORCHINDUCTOR_CACHE_DIR", "TORCH_DEVICE_BACKEND_AUTOLOAD"),
)

# Inductor starts processes to compile in. They import PyTorch, which takes longer than
# to compile what these tests do.
ONE_COMPILER = {"TORCHINDUCTOR_COMPILE_THREADS": "1"}

# From 3.12 on Python warns of each fork of a process that has threads.
FORKS_ARE_MEANT = "ignore:This process:DeprecationWarning"

_starting = threading.Lock()


def run(
    code: str,
    *,
    timeout: float = 240,
    fresh: bool = False,
    compiles: bool = False,
    to_the_end: bool = False,
    **environment: str,
) -> subprocess.CompletedProcess[str]:
    """Runs Python code in a new process, by default under the mapping CPU.

    fresh: it imports PyTorch itself. Others are forked from one that has, but not
    xpurt. compiles: the process that it is forked from has imported Inductor, too.
    to_the_end: of the interpreter, as fresh ones and one in eight by the code; others
    leave before, if their code raises nothing.
    environment: variables on top of this process's own; an empty one counts as unset.
    Those that are not read late are for fresh processes.
    """
    defaults = {"XPURT_MAPPING": "CPU", "PYTHONWARNINGS": FORKS_ARE_MEANT}
    env = {**os.environ, **ONE_COMPILER, **defaults, **environment}
    env = {name: value for name, value in env.items() if value}
    code = textwrap.dedent(code)
    if fresh or not all(name.startswith(READ_LATE) for name in environment):
        return subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            timeout=timeout,
            env=env,
        )
    modules = ("torch._inductor.compile_fx",) if compiles else ()
    to_the_end = to_the_end or zlib.crc32(code.encode()) % 8 == 0
    return run_forked(code, timeout, env, modules, to_the_end)


def output(code: str, **options: Any) -> str:
    """The code's output; fails unless the process ends well and silently. options: of
    `run`.

    Triton's binding, which Inductor imports on a CUDA build, lists at the end what was
    not collected, and nothing of a fork server is.
    """
    ended = run(code, **options)
    assert ended.returncode == 0, f"exit {ended.returncode}\n{ended.stderr}"
    stderr = ended.stderr.partition("nanobind: leaked")[0]
    assert stderr == "", stderr
    return ended.stdout.strip()


# For what importing PyTorch does, and what it may depend on.
fresh_run = partial(run, fresh=True)
fresh_output = partial(output, fresh=True)

# For what is seen when the interpreter ends.
run_to_the_end = partial(run, to_the_end=True)
output_to_the_end = partial(output, to_the_end=True)

# Inductor takes longer to import than PyTorch.
compiling_run = partial(run, compiles=True)
compiling_output = partial(output, compiles=True)


def fork_server(modules: tuple[str, ...]) -> socket.socket:
    with _starting:
        return _fork_server(modules)


@cache
def _fork_server(modules: tuple[str, ...]) -> socket.socket:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    script = Path(__file__).with_name("fork_server.py")
    server = subprocess.Popen(
        [sys.executable, script, *modules],
        stdin=theirs,
        env={**os.environ, **ONE_COMPILER},
    )
    theirs.close()

    def end() -> None:
        ours.close()
        server.wait()

    atexit.register(end)
    return ours


def run_forked(
    code: str,
    timeout: float | None,
    environment: dict[str, str],
    modules: tuple[str, ...],
    to_the_end: bool = True,
) -> subprocess.CompletedProcess[str]:
    """Runs Python code in a process that is forked from one with PyTorch and `modules`."""
    request = {
        "code": code,
        "environment": environment,
        "folder": str(Path.cwd()),
        "to_the_end": to_the_end,
    }
    reports, report = os.pipe()
    with (
        os.fdopen(reports) as lines,
        tempfile.TemporaryFile("w+") as out,
        tempfile.TemporaryFile("w+") as err,
    ):
        descriptors = [out.fileno(), err.fileno(), report]
        server = fork_server(modules)
        socket.send_fds(server, [json.dumps(request).encode()], descriptors)
        os.close(report)
        child = int(lines.readline())
        in_time = bool(select.select([lines], [], [], timeout)[0])
        if not in_time:
            os.kill(child, signal.SIGKILL)
        code_of_end = int(lines.readline())
        for each in (out, err):
            each.seek(0)
        if not in_time:
            raise subprocess.TimeoutExpired(code, timeout or 0, out.read(), err.read())
        return subprocess.CompletedProcess(code, code_of_end, out.read(), err.read())
