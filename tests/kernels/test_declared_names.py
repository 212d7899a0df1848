"""No template or generator has what compilers of OpenCL C refuse, and Intel's takes.
refused_sources.py checks the sources of rows, as tests build them."""

import ast
from pathlib import Path

import pytest
from own_process import output

import xpurt
from kernels.declared_names import declared_names, functions_of_opencl
from kernels.refused_sources import is_refused

PACKAGE = Path(xpurt.__file__).parent
TEMPLATES = sorted((PACKAGE / "kernels" / "sources" / "templates").rglob("*.cl"))
GENERATORS = sorted((PACKAGE / "compiler").rglob("*.py"))


def texts_in(path: Path) -> list[str]:
    """The strings of a module that may have OpenCL C in them."""
    tree = ast.parse(path.read_text())
    prose = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    strings = []
    for node in ast.walk(tree):
        if node in prose:
            continue
        if isinstance(node, ast.JoinedStr):
            parts = (
                str(part.value) if isinstance(part, ast.Constant) else " filled_in "
                for part in node.values
            )
            strings.append("".join(parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            strings.append(node.value)
    return strings


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_templates(path: Path) -> None:
    assert not is_refused(path.read_text())


@pytest.mark.parametrize("path", GENERATORS, ids=lambda path: path.stem)
def test_generated_kernels(path: Path) -> None:
    assert not any(map(is_refused, texts_in(path)))


def test_a_variadic_macro_is_found() -> None:
    assert is_refused("#define along(first, last, ...) \\\n  { __VA_ARGS__ }")
    assert not is_refused("#define along(first, last, statements) { statements }")


def test_the_functions_are_those_of_opencl() -> None:
    assert {"step", "sign", "max", "sub_group_broadcast"} <= functions_of_opencl()
    assert not {"if", "defined", "long", "pitch"} & functions_of_opencl()


@pytest.mark.parametrize(
    "text",
    [
        "#define step (a.step)",
        "#define f(step) (step + 1)",
        "#define LINE(statement) \\\n  for (int step = 0; step < 3; ++step) statement",
        "static float step(float x) { return x; }",
        "static float f(float x, __global const float* step) { return x; }",
        "struct { long first[3], step; };",
        "void f() { const long from = g(1, h(2)), step = 3; }",
        "void f() { float16 x; uint *step; }",
    ],
)
def test_a_declaration_is_found(text: str) -> None:
    assert "step" in declared_names(text)


@pytest.mark.parametrize(
    "text",
    [
        "// long step\nfloat y = step(x, 1);",
        "void f() { return step(x); }",
        "void f() { if (x) y = 1; else step(x); }",
        "void f() { float y = x * step(a, b); }",
        "void f() { combined(acc, step); float y = max(x, step(a, b)), z; }",
    ],
)
def test_a_call_is_no_declaration(text: str) -> None:
    assert "step" not in declared_names(text)


def test_sources_of_kernels_are_checked(tmp_path: Path) -> None:
    """In a process that has no kernels in its cache. `p0` is declared by pointwise
    kernels."""
    code = f"""
import sys, torch, xpurt
sys.path.append({str(Path(__file__).parents[1])!r})
from kernels import refused_sources
refused_sources.check_sources()
xpurt.set_kernel_policy("sycl")
x = torch.ones(3, device="xpu")
x.tanh()
refused_sources.KEYWORDS.add("p0")
try: x.exp()
except AssertionError as error: print(error)
"""
    assert "compilers refuse a name" in output(code, XPURT_CACHE_DIR=str(tmp_path))
