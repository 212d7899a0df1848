"""Where the Python code of a package asks whether an xpu, or an accelerator, is there."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ASKS = re.compile(
    r"\bxpu\.(?:is_available|_is_compiled|device_count|is_initialized)\b"
    r"|\baccelerator\.(?:is_available|current_accelerator|device_count)\b"
    r"|\b_(?:get_accelerator|accelerator_getAccelerator|has_xpu)\b"
    r"|\b(?:get_gpu_type|_get_available_device_type|_get_device_attr)\("
    r"|\bis_(?:torch_)?xpu_available\("
)
# They are of the device itself, lists of names for Dynamo, or tests.
LEFT_OUT = ("xpu/", "accelerator/", "testing/", "_dynamo/trace_rules.py")


def places(package: Path) -> list[str]:
    """Each as "path: function", where the function is the outermost one, or a class and
    its method; "path" alone where the module asks at its import."""
    found = set()
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package).as_posix()
        if not name.startswith(LEFT_OUT):
            text = path.read_text(errors="replace")
            if ASKS.search(text):
                found |= {f"{name}: {each}" if each else name for each in _asking(text)}
    return sorted(found)


def _asking(text: str) -> Iterator[str]:
    """The functions that ask; an empty text for the module itself."""
    tree = ast.parse(text)
    lines = _without_texts(text, tree)
    spans = list(_functions(tree))
    for number, line in enumerate(lines, 1):
        if ASKS.search(line) and not line.lstrip().startswith("def "):
            names = [name for name, first, last in spans if first <= number <= last]
            yield names[0] if names else ""


def _functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, int, int]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield from _functions(node, f"{prefix}{node.name}.")
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield f"{prefix}{node.name}", node.lineno, node.end_lineno or node.lineno
        else:
            yield from _functions(node, prefix)


def _without_texts(text: str, tree: ast.AST) -> list[str]:
    """The lines, without comments and what is in docstrings."""
    lines = [line.partition("#")[0] for line in text.splitlines()]
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            for number in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                lines[number - 1] = ""
    return lines


if __name__ == "__main__":
    import sys

    print(*places(Path(sys.argv[1])), sep="\n")
