"""Tests that need a process of their own, because of what it remembers or how it ends."""

import os
import subprocess
import sys
import textwrap


def run(
    code: str, *, timeout: float = 60, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Runs Python code in a new process, by default under the mapping CPU.

    environment: variables on top of this process's own; an empty one counts as unset.
    """
    env = {**os.environ, "XPURT_MAPPING": "CPU", **environment}
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=timeout,
        env={name: value for name, value in env.items() if value},
    )


def output(code: str, *, timeout: float = 60, **environment: str) -> str:
    """What the code prints; fails unless the process ends well and silently."""
    ended = run(code, timeout=timeout, **environment)
    assert ended.returncode == 0, f"exit {ended.returncode}\n{ended.stderr}"
    assert ended.stderr == "", ended.stderr
    return ended.stdout.strip()
