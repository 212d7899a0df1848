"""Writes docs/pytorch_internals.md: `cd tests && python -m pytorch_internals.page`."""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from itertools import starmap

from pytorch_internals.assumptions import CHECKED_WITH, MEMBERS
from pytorch_internals.cpp_names import NATIVE
from pytorch_internals.dispatch_keys import KEYS
from pytorch_internals.kinds import Expects
from pytorch_internals.patches import PATCHES
from pytorch_internals.used import ROOT, Uses, all_uses
from xpurt.torch_versions import listed

PAGE = ROOT / "docs" / "pytorch_internals.md"
# Written by hand, and read by the tests beside them.
TABLES = [
    ROOT / "tests" / "native" / "device_type_branches.md",
    ROOT / "tests" / "bystander" / "asked_places.md",
]

HEAD = f"""\
# PyTorch internals that xpurt relies on

Written by `cd tests && python -m pytorch_internals.page` from the rows in
`tests/pytorch_internals`, and checked with PyTorch {listed(CHECKED_WITH, "and")}. Where these
differ, the table has both forms, with the first series that has the second one.

In an environment that has a new version, xpurt need not be built for it:

```sh
cd tests && python -m pytorch_internals.changed
```

prints a line for each change: a member that is gone or takes other arguments, a function
that a header no longer declares or the wheel no longer exports, a name that `torch.xpu`
needs and xpurt lacks, a virtual function of the CUDA hooks that is not forwarded, a
dispatch key that has kernels of PyTorch's own now. `tests/pytorch_internals` runs the
same checks, and fails for a use in the sources that has no row. A function that keeps its
name and arguments and does something else is found by the other tests only.
"""

LAZY = """
## The TorchScript backend of lazy tensors

PyTorch may be built without it. Of it `xpurt.lazy` needs:

- `InitTorchScriptBackend`: the kernels of the Lazy key that record nodes;
- `GetTSBackendImpl`: its `IrBuilder`, and the data of a node;
- `TSData`, `TsNode`, `TSLoweringContext` and `TSComputation`, which xpurt's classes hold or extend;
- of the lazy core `LazyGraphExecutor`, `LazyTensor`, `BackendRegistrar` and the metrics;
- `torch._C._lazy` and `torch._C._lazy_ts_backend` in Python.

If one is missing, `xpurt.lazy.init()` raises a RuntimeError that names it, and the rest of xpurt works.
"""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def code(text: str) -> str:
    return f"`{text}`"


def form(expects: Expects) -> str:
    if isinstance(expects, str):
        return code(expects) if expects else ""
    first, *others = expects.items()
    later = (f"; since {series} {code(each)}" for series, each in others)
    return code(first[1]) + "".join(later)


def member(name: str, expects: Expects) -> str:
    """With the series in which its parameters changed."""
    text = code(name.replace(":", "."))
    if isinstance(expects, str):
        return text
    return f"{text} (other parameters since {', '.join([*expects][1:])})"


def files_of(names: Iterable[str], uses: Uses) -> str:
    """At most four, below the package's folder."""
    files = sorted(
        {file.removeprefix("xpurt/") for name in names for file in uses[name]}
    )
    more = [f"{len(files) - 4} more"] if len(files) > 4 else []
    return ", ".join([*files[:4], *more])


def split(patterns: Sequence[str], uses: Uses) -> dict[str, list[str]]:
    """The names that belong to each pattern: to the first one that fits."""
    found: dict[str, list[str]] = {pattern: [] for pattern in patterns}
    for name in uses:
        for pattern in patterns:
            if fnmatchcase(name, pattern):
                found[pattern].append(name)
                break
    return found


def shown(pattern: str, names: Sequence[str]) -> str:
    """A pattern, with how many it stands for."""
    if "*" not in pattern:
        return code(pattern)
    if len(names) == 1:
        return code(names[0])
    return f"{code(pattern)} ({len(names)})"


def page() -> str:
    uses = all_uses()
    members = split([row.name for row in MEMBERS], uses["python"])
    native = split([row.name for row in NATIVE], uses["c++"])
    parts = [
        HEAD,
        "## Private members of Python modules\n",
        "The check reports a name that is gone, or has another type or other "
        "parameters.\n",
        table(
            ("what", "what it is", "where", "why"),
            (
                (
                    shown(row.name, members[row.name]),
                    form(row.expects),
                    files_of(members[row.name], uses["python"]),
                    row.why,
                )
                for row in MEMBERS
            ),
        ),
        "\n## Python that is set, replaced or removed\n",
        "As the sources write it. The check reports what is gone, or takes other "
        "arguments.\n",
        table(
            ("what", "what has to be there", "where", "why"),
            (
                (
                    ", ".join(map(code, row.targets)),
                    ", ".join(starmap(member, row.members)),
                    files_of(row.targets, uses["patch"]),
                    row.why,
                )
                for row in PATCHES
            ),
        ),
        "\n## C++ that is no public interface\n",
        "The check reports what a header no longer declares, and a mangled name that the "
        "wheel no longer exports; other changes fail the build. xpurt looks up no symbol of PyTorch by name at run "
        "time.\n",
        table(
            ("what", "declared in", "where", "why"),
            (
                (
                    shown(row.name, native[row.name]),
                    code(row.header) if row.header else "",
                    files_of(native[row.name], uses["c++"]),
                    row.why,
                )
                for row in NATIVE
            ),
        ),
        LAZY,
        "## Dispatch keys\n",
        "`_` is the fallback of all ops. The check reports a key that "
        "was empty and has kernels of aten in PyTorch now.\n",
        table(
            ("namespace and key", "empty in PyTorch", "where", "why"),
            (
                (
                    code(row.name),
                    "yes" if row.empty else "no",
                    files_of([row.name], uses["key"]),
                    row.why,
                )
                for row in KEYS
            ),
        ),
    ]
    parts += [f"\n{each.read_text().rstrip()}" for each in TABLES]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
