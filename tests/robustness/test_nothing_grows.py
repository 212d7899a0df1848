"""What a process does again and again leaves nothing behind.

Memory of malloc is counted, which what Python keeps, registries of C++ and the driver
have in common: a list that grows with each round shows, and so does the time that it
takes to go through it.
"""

import json

import pytest
from own_process import output

# Bytes that a round may leave behind: amortized growth, as of a hash table, and a
# malloc that is not exact. A pointer in a list that is never cleared is as much in 16
# rounds.
MOST = 128
# The SYCL runtime keeps 4.7 KB of a graph with one kernel and of its replay (libsycl 9,
# alone). With a list of ours that grew by a pool for each graph it was 40 KB.
MOST_OF_GRAPHS = 12 << 10

COUNT = """
import ctypes, gc, sys, torch, xpurt

class Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in
                "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks "
                "keepcost".split()]

libc = ctypes.CDLL("libc.so.6")
libc.mallinfo2.restype = Info

def used():
    gc.collect()
    found = libc.mallinfo2()
    return found.uordblks + found.hblkhd

def grown(round, rounds):
    for number in range(rounds // 2):  # caches fill, threads start
        round(number)
    # What grows with each round does so in both halves; a thread that starts late, or a
    # table that doubles, is in one.
    half, leaves = rounds // 2, []
    for first in (0, half):
        torch.xpu.synchronize()
        before = used()
        for number in range(first, first + half):
            round(number)
        torch.xpu.synchronize()
        leaves.append((used() - before) / half)
    return min(leaves)
"""

ROUNDS = {
    "changes of the mapping": (
        200,
        """
        xpurt.set_xpu_mapping(("CPU", "AUTO", "explicit")[number % 3])
        x = torch.ones(3000, device="xpu")
        (x + x).sum().item()
        torch.xpu.Stream().synchronize()
        """,
    ),
    "mappings of parts": (
        60,
        """
        if number % 2:
            xpurt.set_xpu_mapping("explicit", devices="cpu", partition=2)
        else:
            xpurt.set_xpu_mapping("CPU")
        torch.ones(3000, device="xpu").sum().item()
        """,
    ),
    "blocks of another mapping": (
        100,
        """
        with xpurt.xpu_mapping("CPU"):
            x = torch.ones(300, device="xpu")
            assert len(xpurt.explain_silently(lambda: x + x)) == 1
            del x
        """,
    ),
    "streams": (
        10_000,
        """
        stream = torch.xpu.Stream()
        with stream:
            hash(stream)
        """,
    ),
    "events": (
        10_000,
        """
        torch.xpu.Event(enable_timing=number % 2 == 0).record()
        if number % 50 == 0:
            torch.xpu.synchronize()
        """,
    ),
    "generators": (
        10_000,
        """
        generator = torch.Generator("xpu").manual_seed(number)
        torch.rand(4, device="xpu", generator=generator)
        """,
    ),
    "preferences": (
        2_000,
        """
        with xpurt.prefer("CPU" if number % 2 else "GPU"):
            pass
        """,
    ),
    "explanations": (500, "xpurt.explain_silently(lambda: x_long + x_long)"),
    "sizes of tensors": (2_000, "(x_long[: number % 4000 + 1] + 1).sum()"),
    "graphs": (
        100,
        """
        if number == 0:
            xpurt.set_xpu_mapping("CPU")
        graph = torch.xpu.XPUGraph()
        x = torch.ones(64, device="xpu")
        with torch.xpu.graph(graph):
            y = x + 1
        graph.replay()
        """,
    ),
}

CODE = """
import contextlib, io, json, textwrap
def explain_silently(function):
    with contextlib.redirect_stdout(io.StringIO()):
        return xpurt.explain(function)
xpurt.explain_silently = explain_silently
for what, (rounds, body) in json.loads(cases).items():
    xpurt.set_xpu_mapping("AUTO")
    x_long = torch.ones(4096, device="xpu") if "x_long" in body else None
    exec("def round(number):" + textwrap.indent(textwrap.dedent(body), "    "))
    try:
        print(json.dumps([what, grown(round, rounds)]))
    except Exception as error:
        print(json.dumps([what, str(error)]))
    x_long = None
"""


@pytest.fixture(scope="module")
def growths() -> dict[str, float | str]:
    """Bytes a round of each, all in one process; the text of an error."""
    cases = json.dumps({what: (n, f"\n{body}") for what, (n, body) in ROUNDS.items()})
    lines = output(
        f"{COUNT}\ncases = {cases!r}\n{CODE}",
        timeout=400,
        fresh=True,
        XPURT_MAPPING="AUTO",
        XPURT_VIRTUAL_GPU="strict",
        OMP_NUM_THREADS="1",
    )
    return dict(json.loads(line) for line in lines.splitlines() if line[:1] == "[")


@pytest.mark.parametrize("what", ROUNDS)
def test_nothing_grows(what: str, growths: dict[str, float | str]) -> None:
    grown = growths[what]
    assert isinstance(grown, float), grown
    most = MOST_OF_GRAPHS if what == "graphs" else MOST
    assert grown < most, f"each of the {what} leaves {grown:.0f} bytes behind"
