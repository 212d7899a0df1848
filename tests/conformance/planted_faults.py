"""Faults at boundaries, planted into kernels: the sweep of shapes has to find each.

    python tests/conformance/planted_faults.py            # all: about 10 minutes
    python tests/conformance/planted_faults.py 3 17       # these

A fault is a change of the text that the templates, the steps of rows and the compiler
make. Each runs in a process of its own, since a kernel is built once per process.
"""

import os
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

TIMEOUT_S = 300
CASES = 400  # of each call, at most


@dataclass(frozen=True)
class Fault:
    """what: the class of the fault. kind: of the calls that are swept. old, new: parts of
    the source of a kernel; all occurrences are changed. mapping: "CPU" with the policy
    sycl, or the strict virtual GPU, where oneDNN computes nothing."""

    what: str
    kind: str
    old: str
    new: str
    mapping: str = "CPU"


ACROSS = "#define across(acc, combine) \\\n  for (uint far = LANES / 2"
X_Y = "if (x >= layout.kept_size[0] || row >= layout.rows) return;"
FAULTS = (
    Fault("no bound of a dimension", "reductions", X_Y, "if (x >= layout.kept_size[0]) return;"),
    Fault("a bound one too late", "reductions", X_Y,
          X_Y.replace("x >= ", "x > ")),
    Fault("a tail not cut", "reductions", "min(first + layout.inner_chunk, layout.inner)",
          "first + layout.inner_chunk"),
    Fault("a tail not cut, outer loop", "reductions",
          "min(outer_first + layout.outer_chunk, layout.outer)",
          "outer_first + layout.outer_chunk"),
    Fault("a tail left out", "reductions", "if (j + lane < last) acc", "if (0) acc"),
    Fault("a tail one short", "reductions", "if (j + lane < last) acc",
          "if (j + lane < last - 1) acc"),
    Fault("a step too far", "reductions", "j + LANES <= last;", "j + LANES <= last + 1;"),
    Fault("lines of a group not bounded", "reductions", "if (row >= layout.rows) return;", ""),
    Fault("partial results one short", "reductions", "chunk * layout->rows + row",
          "chunk * (layout->rows - 1) + row"),
    Fault("half of the lanes", "reductions", "uint far = LANES / 2", "uint far = LANES / 4"),
    Fault("a chunk one late", "reductions", "const long first = chunk % layout.inner_chunks * "
          "layout.inner_chunk;", "const long first = chunk % layout.inner_chunks * "
          "layout.inner_chunk + (chunk > 0);"),
    Fault("a last dimension left out", "reductions", "for (int d = 1; d < REDUCED; ++d)",
          "for (int d = 1; d < REDUCED - 1; ++d)"),
    Fault("an index of 16 bits", "reductions", "const long row = x + y * layout.kept_size[0];",
          "const long row = (ushort)(x + y * layout.kept_size[0]);"),
    Fault("no bound of a dimension", "pointwise", "if (i1 >= layout.size[1]) return;", ""),
    Fault("a bound one too late", "pointwise", "if (x < columns)", "if (x <= columns)"),
    Fault("a bound one too early", "pointwise", "if (x < columns)", "if (x + 1 < columns)"),
    Fault("a wrong period", "pointwise", "rest % layout.size[2]", "rest % (layout.size[2] + 1)"),
    Fault("an index of 16 bits", "pointwise", "const size_t x = get_global_id(0);",
          "const size_t x = (ushort)get_global_id(0);"),
    Fault("a tail one short", "softmax", "if (whole + lane < line)",
          "if (whole + lane < line - 1)"),
    Fault("a tail not cut", "softmax", "line / LANES * LANES", "(line + LANES - 1) / LANES * LANES"),
    Fault("lines of a group not bounded", "softmax", "if (row >= outer) return;", ""),
    Fault("no bound of a dimension", "softmax", "if (x >= inner || y >= outer) return;",
          "if (x >= inner) return;"),
    Fault("a bound one too late", "rearranging", "if (i >= a.work_items) return;",
          "if (i > a.work_items) return;"),
    Fault("a bound one too early", "tables", "if (i >= a.work_items) return;",
          "if (i >= a.work_items - 1) return;"),
    Fault("an index of 16 bits", "rearranging", "const long* stride, uint i,",
          "const long* stride, ushort i,"),
    Fault("half of the lanes", "normalization", ACROSS, ACROSS.replace("/ 2", "/ 4"), "GPU"),
    Fault("a step too far", "normalization", "before + LANES <= (last);",
          "before + LANES <= (last) + 1;", "GPU"),
    Fault("a tail left out", "normalization", "if (before + lane < (last))", "if (0)", "GPU"),
    Fault("parts too short", "normalization", "(lines + 15) / 16", "lines / 16", "GPU"),
    Fault("a part not cut", "normalization", "min(lines, (part + 1) * share)",
          "(part + 1) * share", "GPU"),
    Fault("a part left out", "normalization", "part < 16", "part < 15", "GPU"),
    Fault("a part not cut, channels", "normalization", "min(count, first + share)",
          "first + share", "GPU"),
    Fault("parts too short, channels", "normalization", "(count + 16 - 1) / 16", "count / 16",
          "GPU"),
    Fault("runs one short", "sorting", "j % 16 > 0", "j % 15 > 0"),
    Fault("a run not cut", "sorting", "high = min(low + 2 * width, n)", "high = low + 2 * width"),
    Fault("a merge left out", "sorting", "width < n; width *= 2", "2 * width < n; width *= 2"),
    Fault("a tail one short", "extremes", "k < n; k += LANES", "k < n - 1; k += LANES"),
    Fault("a tail one short", "scans", "k < n; ++k", "k < n - 1; ++k"),
    Fault("a sequence one short", "sorting", "long high = sorted_sequence_size(d);",
          "long high = max(sorted_sequence_size(d) - 1, 0L);"),
    Fault("a tile not cut", "attention", "first + r < count ?", "first + r <= count ?", "GPU"),
    Fault("keys not bounded", "attention", "(key) < layout.keys &&", "", "GPU"),
    Fault("columns of a tile left out", "attention", "((EMBED + TILE - 1) / TILE)",
          "(EMBED / TILE + (EMBED < TILE))", "GPU"),
    Fault("a slice not cut", "products", "min((long)DEPTH, layout.k - k0)", "(long)DEPTH", "GPU"),
    Fault("rows of a block not cut", "products", "min(layout.rows, layout.m - row0)",
          "layout.rows", "GPU"),
    Fault("columns beyond the last not cleared", "products",
          "min((long)STRIP, rest), min((long)WIDTH, columns - c)",
          "min((long)STRIP, rest), (long)WIDTH", "GPU"),
    Fault("a last slice left out", "products", "} while (k0 < layout.k);",
          "} while (k0 + DEPTH <= layout.k);", "GPU"),
    Fault("a tile not cut, complex", "products", "column < layout.n && k < layout.k",
          "column < layout.n", "GPU"),
    Fault("a block of numbers one short", "random", "if (e >= self_numel) return;",
          "if (e >= self_numel - 1) return;"),
    Fault("no bound", "compiled", "row < 16; ++row", "row < 15; ++row"),
    Fault("a tile at the edge not cut", "compiled", "xfirst + 16 <=", "xfirst + 8 <="),
)  # fmt: skip


def plant(fault: Fault) -> list[str]:
    """Changes the kernels that this process builds. Returns the keys of those changed."""
    from xpurt import _C
    from xpurt.kernels import fail, make_source

    changed: list[str] = []

    def planted(key: str, traits: Any) -> tuple[str, str]:
        entry, text = make_source(key, traits)
        if fault.old in text:
            changed.append(key)
        return entry, text.replace(fault.old, fault.new)

    _C.set_source_callbacks(planted, fail)
    return changed


def swept(fault: Fault) -> int:
    """0 if a case of the kind's calls is wrong, 2 if the fault is in no kernel."""
    import random

    import torch

    import xpurt
    from xpurt.conformance.record import Record
    from xpurt.conformance.sweeps import shapes
    from xpurt.conformance.sweeps.shapes_calls import CALLS
    from xpurt.conformance.sweeps.shapes_cases import whole
    from xpurt.conformance.sweeps.shapes_constants import constants

    xpurt.set_kernel_policy("sycl")
    torch.set_num_threads(1)
    torch.zeros(1, device="xpu")
    changed = plant(fault)
    calls = [call for call in CALLS if call.kind == fault.kind]
    cases = []
    for call in calls:
        of_call = list(whole(call, constants()))
        random.Random(0).shuffle(of_call)
        cases.append([(call, case) for case in of_call[:CASES]])
    for number, turn in enumerate(zip(*cases, strict=False)):
        for call, case in turn:
            record = Record(call.name, "", "", lambda where: None)
            shapes.run_case(call, case, getattr(torch, call.dtypes[0]), record, number)
            if record.result().failed:
                print(f"found: {call.name}, case {number}: {case}")
                return 0
    print("not found" if changed else "no kernel has the text")
    return 1 if changed else 2


def main() -> int:
    if sys.argv[1:2] == ["--one"]:
        return swept(FAULTS[int(sys.argv[2])])
    chosen = [int(each) for each in sys.argv[1:]] or range(len(FAULTS))
    found = 0
    for number in chosen:
        fault = FAULTS[number]
        # Wrong kernels do not stay in the user's cache.
        environment = {**os.environ, "XPURT_VIRTUAL_GPU": "strict"}
        environment |= {"XPURT_MAPPING": fault.mapping, "XPURT_CACHE_SIZE": "0"}
        command = [sys.executable, __file__, "--one", str(number)]
        try:
            done = subprocess.run(
                command,
                env=environment,
                capture_output=True,
                text=True,
                timeout=TIMEOUT_S,
            )
            lines = done.stdout.strip().splitlines() or [done.stderr.strip()[-200:]]
            said, is_found = lines[-1], done.returncode == 0
            if done.returncode < 0:
                said, is_found = f"found: ended by signal {-done.returncode}", True
        except subprocess.TimeoutExpired:
            said, is_found = "timeout", False
        found += is_found
        print(f"{number:2} {fault.kind}, {fault.what}: {said}", flush=True)
    print(f"{found} of {len(chosen)} found")
    return 0 if found == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
