"""Rows of pooling: maximum or mean of windows of given or adaptive size."""

from xpurt.kernels.kinds.custom_kernel import CustomKernel, Step
from xpurt.kernels.kinds.element_types import FLOATS
from xpurt.kernels.kinds.row import FLOATING_ONLY, NUMERIC, Kind
from xpurt.kernels.rows.nn.windows import (
    ADAPTIVE,
    LISTS,
    flat,
    loops,
    offset,
    origin,
    place,
)

AVERAGED = Kind(FLOATS + "l")

# The numbers of elements of window o along an axis: with padding, and without.
DIVISOR = """
#define BEGIN(o, d) ((o) * STEP(d) - PADDING(d))
#define SPAN(o, d, size) (min(BEGIN(o, d) + KERNEL(d), (size) + PADDING(d)) - BEGIN(o, d))
#define INSIDE(o, d, size) \\
  (min(BEGIN(o, d) + KERNEL(d), (size)) - max(BEGIN(o, d), 0L))
#if HAS_divisor_override
#define DIVISOR(padded, inside) divisor_override
#else
#define DIVISOR(padded, inside) (count_include_pad ? (padded) : (inside))
#endif
"""


def largest(axes: int, head: str) -> Step:
    """The last NaN wins; of equal elements the first one."""
    body = f"""
    const C x = self_load(base + {offset("self", axes, "y")});
    if (best < 0 || x > most || x != x) {{
      most = x;
      best = {flat(axes, "self", "y")};
    }}
"""
    return Step(
        over="out0",
        text=f"""
{place("out0", axes, "o")}
  const long beside = out1_at(index);
{origin("out0", axes)}
  const long base = self_at(index);
  C most = LOWEST;
  long best = -1;
{loops(axes, head, body)}
  out0_store(to, most);
  out1_store(beside, best);
""",
    )


def largest_backward(axes: int, head: str) -> Step:
    body = f"""
    if (indices_load(beside + {offset("indices", axes, "o")}) == own) {{
      sum += grad_output_load(base + {offset("grad_output", axes, "o")});
    }}
"""
    return Step(
        over="out",
        text=f"""
{place("out", axes, "y")}
{origin("out", axes)}
  const long base = grad_output_at(index), beside = indices_at(index);
  const long own = {flat(axes, "self", "y")};
  C sum = 0;
{loops(axes, head, body)}
  out_store(to, sum);
""",
    )


def mean(axes: int, head: str, divisor: str) -> Step:
    body = f"""
    sum += self_load(base + {offset("self", axes, "y")});
    ++count;
"""
    return Step(
        over="out",
        text=f"""
{place("out", axes, "o")}
{origin("out", axes)}
  const long base = self_at(index);
  C sum = 0;
  long count = 0;
{loops(axes, head, body)}
  out_store(to, count == 0 ? 0 : sum / {divisor});
""",
    )


def mean_backward(axes: int, head: str, divisor: str) -> Step:
    body = f"""
    const C g = grad_output_load(base + {offset("grad_output", axes, "o")});
    sum += g / {divisor};
"""
    return Step(
        over="out",
        text=f"""
{place("out", axes, "y")}
{origin("out", axes)}
  const long base = grad_output_at(index);
  C sum = 0;
{loops(axes, head, body)}
  out_store(to, sum);
""",
    )


def product(factor: str, axes: int) -> str:
    return "(" + " * ".join(factor.format(d=d) for d in range(axes)) + ")"


def rows(axes: int) -> tuple[CustomKernel, ...]:
    """Rows for the given number of axes."""
    beneath = (  # elements y{d} of window o{d}
        "  for (long k{d} = 0; k{d} < KERNEL({d}); ++k{d}) {{\n"
        "    const long y{d} = o{d} * STEP({d}) - PADDING({d}) + k{d} * DILATION({d});"
        f"\n    if (y{{d}} < 0 || y{{d}} >= self_size(self_RANK - {axes} + {{d}})) "
        "continue;\n"
    )
    above = (  # windows o{d} that element y{d} is in
        f"  const long windows{{d}} = grad_output_size(self_RANK - {axes} + {{d}});\n"
        "  for (long o{d} = FIRST_WINDOW(y{d}, {d});\n"
        "       o{d} < LAST_WINDOW(y{d}, {d}, windows{d}); ++o{d}) {{\n"
    )
    sizes = f"self_size(self_RANK - {axes} + {{d}})"
    adaptive_beneath = (
        f"  const long windows{{d}} = RESULT_size(self_RANK - {axes} + {{d}});\n"
        f"  const long end{{d}} = END(o{{d}}, {sizes}, windows{{d}});\n"
        f"  for (long y{{d}} = START(o{{d}}, {sizes}, windows{{d}});\n"
        "       y{d} < end{d}; ++y{d}) {{\n"
    )
    adaptive_above = (
        f"  const long windows{{d}} = grad_output_size(self_RANK - {axes} + {{d}});\n"
        f"  const long end{{d}} = END(y{{d}}, windows{{d}}, {sizes});\n"
        f"  for (long o{{d}} = START(y{{d}}, windows{{d}}, {sizes});\n"
        "       o{d} < end{d}; ++o{d}) {{\n"
    )
    # The number of elements of a window, with padding and without.
    padded = f"SPAN(o{{d}}, {{d}}, {sizes})"
    inside = f"INSIDE(o{{d}}, {{d}}, {sizes})"
    divisor = f"DIVISOR({product(padded, axes)}, {product(inside, axes)})"
    share = product(
        f"(END(o{{d}}, {sizes}, windows{{d}}) - START(o{{d}}, {sizes}, windows{{d}}))",
        axes,
    )
    suffix = f"{axes}d"
    largest_of, means = f"max_pool{suffix}_with_indices", f"avg_pool{suffix}"
    adaptive_mean = f"_adaptive_avg_pool{suffix}"
    adaptive_max = f"adaptive_max_pool{suffix}"
    of_out = adaptive_beneath.replace("RESULT", "out")
    of_out0 = adaptive_beneath.replace("RESULT", "out0")
    return (
        CustomKernel(largest_of, (largest(axes, beneath),), NUMERIC, functions=LISTS),
        CustomKernel(
            f"{largest_of}_backward",
            (largest_backward(axes, above),),
            FLOATING_ONLY,
            functions=LISTS,
        ),
        CustomKernel(
            means,
            (mean(axes, beneath, divisor),),
            AVERAGED,
            functions=LISTS + DIVISOR,
            primitive="average",
        ),
        CustomKernel(
            f"{means}_backward",
            (mean_backward(axes, above, divisor),),
            FLOATING_ONLY,
            functions=LISTS + DIVISOR,
            primitive="average_backward",
        ),
        CustomKernel(
            adaptive_mean,
            (mean(axes, of_out, "count"),),
            FLOATING_ONLY,
            functions=ADAPTIVE,
        ),
        CustomKernel(
            f"{adaptive_mean}_backward",
            (mean_backward(axes, adaptive_above, share),),
            FLOATING_ONLY,
            functions=ADAPTIVE,
        ),
        CustomKernel(
            adaptive_max, (largest(axes, of_out0),), FLOATING_ONLY, functions=ADAPTIVE
        ),
        CustomKernel(
            f"{adaptive_max}_backward",
            (largest_backward(axes, adaptive_above),),
            FLOATING_ONLY,
            functions=ADAPTIVE,
        ),
    )


ROWS = (*rows(2), *rows(3))
