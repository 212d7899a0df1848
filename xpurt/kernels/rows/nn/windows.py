"""Texts of kernels over windows: the last two or three dimensions are the axes.

Forward, a work-item computes an element of the result, and loops over the elements of
its window. Backward, a work-item computes an element of the input's gradient, and loops
over the windows that contain it, so that no two work-items write to one element.
"""

# Lists have one number per axis, or one for all axes.
LISTS = """
#define of_axis(list, count, d) ((list)[(count) == 1 ? 0 : (d)])
#define KERNEL(d) of_axis(kernel_size, kernel_size_COUNT, d)
#if stride_COUNT == 0
#define STEP(d) KERNEL(d)
#else
#define STEP(d) of_axis(stride, stride_COUNT, d)
#endif
#define PADDING(d) of_axis(padding, padding_COUNT, d)
#ifdef dilation_COUNT
#define DILATION(d) of_axis(dilation, dilation_COUNT, d)
#else
#define DILATION(d) 1L
#endif

// The first of the windows that contain element y of an axis, and the one after the
// last.
#define FIRST_WINDOW(y, d) \\
  first_window((y) + PADDING(d) - (KERNEL(d) - 1) * DILATION(d), STEP(d))
#define LAST_WINDOW(y, d, windows) min((y + PADDING(d)) / STEP(d) + 1, windows)
static long first_window(long from, long spacing) {
  return from <= 0 ? 0 : (from + spacing - 1) / spacing;
}
"""

# Adaptive windows: the elements of window o of an axis, and the windows of element y.
ADAPTIVE = """
#define START(o, size, windows) ((o) * (size) / (windows))
#define END(o, size, windows) ((((o) + 1) * (size) + (windows) - 1) / (windows))
"""


def size(tensor: str, axes: int, d: int) -> str:
    """Size of a tensor along axis d of `axes`."""
    return f"{tensor}_size({tensor}_RANK - {axes - d})"


def offset(tensor: str, axes: int, names: str) -> str:
    """Offset of the element `names`0, `names`1, ... from the origin of the axes."""
    terms = (
        f"{names}{d} * {tensor}_stride({tensor}_RANK - {axes - d})" for d in range(axes)
    )
    return " + ".join(terms)


def place(tensor: str, axes: int, names: str) -> str:
    """Declares the coordinates of work-item i in `tensor`, and its offset `to`, and
    leaves the origin of the axes in `index`."""
    lines = ["  long index[8];", f"  const long to = {tensor}_unravel(i, index);"]
    for d in range(axes):
        at = f"index[{tensor}_RANK - {axes - d}]"
        lines.append(f"  const long {names}{d} = {at};")
    return "\n".join(lines)


def origin(tensor: str, axes: int) -> str:
    """Sets the coordinates along the axes to 0."""
    return "  " + " ".join(
        f"index[{tensor}_RANK - {axes - d}] = 0;" for d in range(axes)
    )


def loops(axes: int, head: str, body: str) -> str:
    """`body` in one loop per axis. `head` opens each loop, with {d} for the axis."""
    opened = "".join(head.format(d=d) for d in range(axes))
    return opened + body + "  " + "}" * axes


def flat(axes: int, tensor: str, names: str) -> str:
    """The number of an element among those of the axes, in row-major order."""
    text = f"{names}0"
    for d in range(1, axes):
        text = f"({text}) * {size(tensor, axes, d)} + {names}{d}"
    return text
