"""No kernel declares a name of a function of OpenCL C."""

import ast
from pathlib import Path

import pytest

import xpurt
from kernels.declared_names import declared_names, functions_of_opencl
from kernels.sources_of_rows import SOURCES, sources_of
from xpurt.kernels.rows.table import ROWS, AnyRow

PACKAGE = Path(xpurt.__file__).parent
TEMPLATES = sorted((PACKAGE / "kernels" / "sources" / "templates").rglob("*.cl"))
GENERATORS = sorted((PACKAGE / "compiler").rglob("*.py"))
ROWS_WITH_SOURCES = [row for row in ROWS if isinstance(row, SOURCES)]


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


@pytest.mark.parametrize("row", ROWS_WITH_SOURCES, ids=lambda row: row.aten)
def test_sources_of_rows(row: AnyRow) -> None:
    for source in sources_of(row):
        assert declared_names(source.text) & functions_of_opencl() == set()
        assert "__kernel void" in source.text


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_templates(path: Path) -> None:
    assert declared_names(path.read_text()) & functions_of_opencl() == set()


@pytest.mark.parametrize("path", GENERATORS, ids=lambda path: path.stem)
def test_generated_kernels(path: Path) -> None:
    names = {name for text in texts_in(path) for name in declared_names(text)}
    assert names & functions_of_opencl() == set()


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
