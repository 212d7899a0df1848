"""The internals of PyTorch that xpurt's sources use: names and files.

Nothing here imports xpurt: `changed` checks a PyTorch that xpurt was not built for yet.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import torch

ROOT = Path(__file__).parents[2]
PYTHON = [
    *sorted((ROOT / "xpurt").rglob("*.py")),
    *sorted((ROOT / "tools" / "xpurt_tools").rglob("*.py")),
    ROOT / "pytest_xpurt.py",
]
CPP = sorted(
    path
    for path in (ROOT / "xpurt" / "csrc").rglob("*")
    if path.suffix in (".cpp", ".h")
)

Uses = dict[str, set[str]]  # a name, and the files that have it, below ROOT

# The objects in which a private name in a string is searched.
_HOLDERS = {
    "torch._C": torch._C,
    "torch.UntypedStorage": torch.UntypedStorage,
    "torch.Tensor": torch.Tensor,
}
# Set by xpurt, so that they are there or not: names of `torch.xpu`'s layer, and those that
# only CUDA builds have.
_OF_THE_LAYER = re.compile(
    r"_(xpu_|Xpu|XPU|has_xpu$)\w*|_(broadcast|gather|scatter)\w*"
)
# The names in PyTorch's source: xpurt adds others at run time.
_IN_TORCH_XPU = re.findall(
    r"^(?:\s*def )?(_[a-z]\w*)(?:\(| = )",
    Path(str(torch.xpu.__file__)).read_text(),
    re.MULTILINE,
)
_PRIVATE = re.compile(r"_[A-Za-z]\w*")


def _is_private(name: str) -> bool:
    return any(part.startswith("_") and part[1:2] != "_" for part in name.split("."))


def _imported(tree: ast.AST) -> dict[str, str]:
    """The names that a module imports, with their meaning: `fx` is torch.fx."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.partition(".")[0]
                found[alias.asname or first] = alias.name if alias.asname else first
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                found[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return found


def _dotted(node: ast.AST, imported: dict[str, str]) -> str | None:
    """torch._C._get_schema for that expression, whatever it was imported as."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.insert(0, node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in imported:
        return None
    return ".".join([imported[node.id], *parts])


def _names_in(tree: ast.AST) -> Iterator[str]:
    """Each private name of torch that a module reads or sets."""
    imported = _imported(tree)
    yield from imported.values()
    inner = {n.value for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node not in inner:
            yield _dotted(node, imported) or ""
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from _named_by(node.value)


def _named_by(text: str) -> Iterator[str]:
    """The meaning of a string that is a private name: of torch._C, or of another."""
    if re.fullmatch(r"torch(\.\w+)+", text):
        yield text
    if _OF_THE_LAYER.fullmatch(text):
        yield f"torch._C.{text}"
    elif text in _IN_TORCH_XPU:
        yield f"torch.xpu.{text}"
    elif _PRIVATE.fullmatch(text):
        for holder, value in _HOLDERS.items():
            if hasattr(value, text):
                yield f"{holder}.{text}"
                return


def python_names(source: str) -> set[str]:
    found = set(_names_in(ast.parse(source)))
    return {
        name for name in found if name.startswith("torch.") and _is_private(name)
    } - {"torch._C"}


def _base(target: ast.AST) -> ast.AST:
    while isinstance(target, ast.Attribute | ast.Subscript):
        target = target.value
    return target


def _is_foreign(node: ast.AST, foreign: set[str]) -> bool:
    """Whether an expression is a member of another package, or the table of one."""
    base = _base(node)
    if isinstance(base, ast.Call):
        return ast.unparse(base.func) in ("vars", "sys.modules.get")
    return isinstance(base, ast.Name) and base.id in foreign


def _foreign_names(tree: ast.AST) -> set[str]:
    """Imports from other packages, and local names for their members."""
    found = {name for name, origin in _imported(tree).items() if not _is_ours(origin)}
    size = -1
    while size != len(found):
        size = len(found)
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and _is_foreign(node.value, found):
                found |= {
                    each.id for each in node.targets if isinstance(each, ast.Name)
                }
    return found


def _is_ours(origin: str) -> bool:
    return origin.partition(".")[0] in ("xpurt", "xpurt_tools")


def patches(source: str) -> set[str]:
    """What a module sets, replaces or removes in other packages: the targets.

    Found are assignments to, and deletions of, members of what was imported, also by a
    local name of such a member; all `setattr`, `delattr` and `vars(...)[...] =` but those
    on `self`; and registrations in tables of other packages.
    """
    tree = ast.parse(source)
    foreign = _foreign_names(tree)
    found = set()
    for node in ast.walk(tree):
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign | ast.Delete):
            targets = node.targets
        elif isinstance(node, ast.AugAssign | ast.AnnAssign):
            targets = [node.target]
        for target in targets:
            member = isinstance(target, ast.Attribute | ast.Subscript)
            if member and _is_foreign(target, foreign):
                found.add(ast.unparse(target))
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called in ("setattr", "delattr") and ast.unparse(node.args[0]) != "self":
                target = f"{ast.unparse(node.args[0])}, {ast.unparse(node.args[1])}"
                found.add(f"{called}({target})")
            elif called.endswith(".register") and "atexit" not in called and node.args:
                found.add(f"{called}({ast.unparse(node.args[0])})")
            elif re.fullmatch(r"sys\.\w+\.(insert|append|update|pop)", called) or (
                called.endswith(".update") and called.partition(".")[0] in foreign
            ):
                found.add(called)
    # Python's own settings of this process are no internals.
    return {each for each in found if not each.startswith(("os.environ", "ctypes."))}


# What C++ takes that is no public interface: inner namespaces, inner headers, members
# by pointer, symbols by name.
_CPP = {
    "name": re.compile(
        r"\b((?:at::native|at::detail|at::meta|at::impl|c10::detail|c10::impl"
        r"|torch::(?!jit|headeronly)[a-z_]+|libkineto)::[A-Za-z_]\w*)"
    ),
    "header": re.compile(
        r"#include <((?:ATen/(?:native|detail|core/boxing/impl)|c10/core/impl"
        r"|torch/csrc|kineto)/[^>]+)>"
    ),
    "member": re.compile(r"&(\w+::\w+_|Tasks::c)\b"),
    "symbol": re.compile(r"\bdl(?:sym|vsym)\([^\"]*\"([^\"]+)\"|\"(_Z\w+)\""),
}
# Functions of torch._C, and of its types, whose C functions are replaced.
_GUARDED = re.compile(r'GuardedFunction\{(?:nullptr|"(\w+)"), "(\w+)"\}')
_KEY = re.compile(r"TORCH_LIBRARY_IMPL\((\w+), (\w+),")
# The constants of csrc/host/fallbacks.h.
_FALLBACK_KEYS = re.compile(r"constexpr c10::DispatchKey k\w+Keys?(?:\[\])? =([^;]+);")


def cpp_names(source: str) -> set[str]:
    code = re.sub(r"//[^\n]*", "", source)
    found = set()
    for kind, pattern in _CPP.items():
        for match in pattern.finditer(code):
            text = next(group for group in match.groups() if group)
            found.add({"header": f"<{text}>", "member": f"&{text}"}.get(kind, text))
    return found


def guarded_functions(source: str) -> set[str]:
    """torch._C.TensorBase.data_ptr for a row of the table of raw pointer guards."""
    return {
        ".".join(["torch._C", *filter(None, names)])
        for names in _GUARDED.findall(source)
    }


def dispatch_keys(source: str) -> set[str]:
    """`_ XPU` for a fallback of all ops, `aten XPU` for ops of a namespace."""
    found = {f"{namespace} {key}" for namespace, key in _KEY.findall(source)}
    for text in _FALLBACK_KEYS.findall(source):
        found |= {f"_ {key}" for key in re.findall(r"DispatchKey::(\w+)", text)}
    return found


def _collect(files: list[Path], find: object) -> Uses:
    found: Uses = defaultdict(set)
    for path in files:
        for name in find(path.read_text()):  # type: ignore[operator]
            found[name].add(path.relative_to(ROOT).as_posix())
    return dict(sorted(found.items()))


@cache
def all_uses() -> dict[str, Uses]:
    """By the kind of use."""
    return {
        "python": _collect(PYTHON, python_names) | _collect(CPP, guarded_functions),
        "patch": _collect(PYTHON, patches),
        "c++": _collect(CPP, cpp_names),
        "key": _collect(CPP, dispatch_keys),
    }
