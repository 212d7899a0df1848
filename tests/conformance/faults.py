"""Faults at boundaries: what planted_faults.py plants into kernels."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """what: the class of the fault. kind: of the calls that are swept. old, new: parts of
    the source of a kernel; all occurrences are changed. mapping: "CPU" with the policy
    sycl, or the strict virtual GPU, where oneDNN computes nothing. file: of the C++ code,
    in csrc/rows, where `old` is an expression that occurs once."""

    what: str
    kind: str
    old: str
    new: str
    mapping: str = "CPU"
    file: str = ""


ACROSS = "#define across(acc, combine) \\\n  for (uint far = LANES / 2"
X_Y = "if (x >= layout.kept_size[0] || row >= layout.rows) return;"
IN_KERNELS = (
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
    Fault("a pair left out", "transforms", "j <= RADIX / 2; ++j) v[0] += plus[j];",
          "j < RADIX / 2; ++j) v[0] += plus[j];"),
    Fault("an index of 16 bits", "transforms", "(ulong)i * i % period",
          "(ulong)(ushort)i * (ushort)i % period"),
    Fault("a row left out", "factorizations", "if (r < width || info_load(b) != 0) return;",
          "if (r <= width || info_load(b) != 0) return;"),
    Fault("a pivot not seen", "factorizations", "for (int r = j + lane; r < rows; r += LANES)",
          "for (int r = j + lane; r < rows - 1; r += LANES)"),
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


def launch(
    what: str, kind: str, file: str, old: str, new: str, mapping: str = "CPU"
) -> Fault:
    return Fault(what, kind, old, new, mapping, file)


# What the host computes: ranges, chunks, sizes.
IN_LAUNCHES = (
    launch("a group too few", "reductions", "reduction.cpp",
           "divide_up(rows * lanes, group) * group",
           "std::max<int64_t>(rows * lanes / group, 1) * group"),
    launch("a last chunk left out", "reductions", "reduction.cpp",
           "std::max<int64_t>(divide_up(inner_size, inner_chunk), 1)",
           "std::max<int64_t>(inner_size / inner_chunk, 1)"),
    launch("a last chunk left out, outer loop", "reductions", "reduction.cpp",
           "std::max<int64_t>(divide_up(outer_size, outer_chunk), 1)",
           "std::max<int64_t>(outer_size / outer_chunk, 1)"),
    launch("dimensions of the range left out", "reductions", "reduction.cpp",
           "size_of(kept, 1)", "(kept.size() > 1 ? kept[1].size : 1)"),
    launch("lines that are not adjacent taken as such", "reductions", "reduction.cpp",
           "(inner ? reduced[0].in : kept[0].in) == 1", "kept[0].in == 1"),
    launch("a group too few", "pointwise", "launch.cpp",
           "(std::max<size_t>(sizes[d], 1) + local - 1) / local * local",
           "std::max(sizes[d] / local, size_t{1}) * local"),
    launch("dimensions of the range left out", "pointwise", "pointwise.cpp",
           "static_cast<size_t>(layout[d])",
           "(d > 2 ? size_t{1} : static_cast<size_t>(layout[d]))"),
    launch("an inner dimension left out", "softmax", "softmax.cpp", "dim_ + 1", "dim_ + 2"),
    launch("a work-item for each line, not each lane", "softmax", "softmax.cpp",
           "static_cast<size_t>(outer) * lanes", "static_cast<size_t>(outer)", "GPU"),
    launch("a work-item for each line, not each lane", "extremes", "custom_kernel.cpp",
           "static_cast<size_t>(count) * lanes", "static_cast<size_t>(count)", "GPU"),
    launch("a last share left out", "random", "custom_kernel.cpp",
           "(count + share - 1) / share", "std::max<int64_t>(count / share, 1)"),
    launch("a last tile left out", "attention", "attention_tiles.cpp",
           "(length + kTile - 1) / kTile * kTile",
           "std::max<int64_t>(length / kTile, 1) * kTile", "GPU"),
    launch("a last tile left out", "products", "matmul_vectors.cpp",
           "parts(n, items * kEach)", "std::max<int64_t>(n / (items * kEach), 1)", "GPU"),
    launch("a last part left out", "products", "matmul_vectors.cpp",
           "parts(m, part.rows)", "std::max<int64_t>(m / part.rows, 1)", "GPU"),
    launch("a group too few", "compiled", "compiled_kernel.cpp",
           "(sizes[d] + range.local[d] - 1) / range.local[d] * range.local[d]",
           "std::max(sizes[d] / range.local[d], size_t{1}) * range.local[d]"),
)  # fmt: skip

FAULTS = (*IN_KERNELS, *IN_LAUNCHES)
