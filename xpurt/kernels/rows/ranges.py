"""Rows of ops that make a tensor from numbers only."""

from xpurt.kernels.kinds.custom_kernel import CustomKernel, Step
from xpurt.kernels.kinds.row import ARITHMETIC, FLOATING_ONLY, NUMERIC

# An integral range has integral numbers: start and step are truncated first.
ARANGE = Step(
    over="out",
    text="""
  long at[8];
  const long to = out_unravel(i, at);
  if ((C)0.5 == 0) {
    out_store(to, (long)start + i * (long)a.arg_step);
  } else {
    out_store(to, (C)start + (C)i * (C)a.arg_step);
  }
""",
)

# Each half is counted from its own end, so that both ends are exact.
LINSPACE = """
  long at[8];
  const long to = out_unravel(i, at);
  const C first = start, last = end;
  const C spacing = steps > 1 ? (last - first) / (C)(steps - 1) : 0;
  const C value = i < steps / 2 || steps == 1 ? first + spacing * (C)i
                                              : last - spacing * (C)(steps - 1 - i);
"""

EYE = Step(
    over="out",
    text="""
  long at[8];
  const long to = out_unravel(i, at);
  out_store(to, at[0] == at[1]);
""",
)

ROWS = (
    CustomKernel("arange", (ARANGE,), NUMERIC, overloads=("start_out",)),
    CustomKernel("range", (ARANGE,), NUMERIC, overloads=("out",)),
    CustomKernel(
        "linspace",
        (Step(over="out", text=f"{LINSPACE}  out_store(to, value);\n"),),
        FLOATING_ONLY,
        overloads=("out",),
    ),
    CustomKernel(
        "logspace",
        (Step(over="out", text=f"{LINSPACE}  out_store(to, pow((C)base, value));\n"),),
        FLOATING_ONLY,
        overloads=("out",),
    ),
    CustomKernel("eye", (EYE,), ARITHMETIC, overloads=("out", "m_out")),
)
