"""Rows of fused ops of transformers. The ops of `xpurt.fused_ops` call them.

The callers check the operands, and make the results. Numbers of a half are computed
as float.
"""

from xpurt.kernels.kinds.custom_kernel import CustomKernel, Scratch, Step
from xpurt.kernels.kinds.row import FLOATING_ONLY
from xpurt.kernels.rows.nn.normalization import PARTS, SHARED

# Operands are matrices whose rows are adjacent elements. A sub-group computes a row.
SWIGLU = Step(
    over="out",
    along=("-1",),
    lanes=True,
    text="""
  const long n = out_size(1), base = i * n;
  const long g = i * gate_stride(0), u = i * up_stride(0);
  along(0, n,
    const C x = gate_load(g + j);
    out_store(base + j, x / (1 + exp(-x)) * up_load(u + j));
  )
""",
)

SWIGLU_BACKWARD = Step(
    over="grad_gate",
    along=("-1",),
    lanes=True,
    text="""
  const long n = grad_gate_size(1), base = i * n, d = i * grad_stride(0);
  const long g = i * gate_stride(0), u = i * up_stride(0);
  along(0, n,
    const C x = gate_load(g + j);
    const C dy = grad_load(d + j);
    const C s = 1 / (1 + exp(-x));
    grad_gate_store(base + j, dy * up_load(u + j) * s * (1 + x * (1 - s)));
    grad_up_store(base + j, dy * x * s);
  )
""",
)

# A sub-group rotates the pairs of a line. Elements of a line are adjacent; `cos` and
# `sin` are expanded to all lines.
ROTATE = Step(
    over="self",
    along=("-1",),
    lanes=True,
    text="""
  long index[8];
  const long x = self_line(i, -1, index);
  const long c = cos_at(index), s = sin_at(index), to = out_at(index);
  const long pairs = cos_size(cos_RANK - 1);
#define rotate_pairs(far, second)                                     \\
  along(0, pairs,                                                     \\
    const C first = self_load(x + (far) * j);                         \\
    const C next = self_load(x + (far) * j + (second));               \\
    const C cosine = cos_load(c + j);                                 \\
    const C sine = sin_load(s + j);                                   \\
    out_store(to + (far) * j, first * cosine - next * sine);          \\
    out_store(to + (far) * j + (second), next * cosine + first * sine); \\
  )
  if (interleaved) {
    rotate_pairs(2, 1)
  } else {
    rotate_pairs(1, pairs)
  }
""",
)

# The sum is rounded to its type before it is normalized: the next layer reads it so.
RMS_NORM_ADD = Step(
    over="added",
    along=("-1",),
    lanes=True,
    also_reads=("residual",),
    text="""
#if HAS_residual
#define residual_of(o) residual_load(o)
#else
#define residual_of(o) 0
#endif
  const long n = x_size(1), base = i * n;
  C squares = 0;
  along(0, n,
    added_store(base + j, x_load(base + j) + residual_of(base + j));
    const C value = added_load(base + j);
    squares += value * value;
  )
  across(squares, plus)
  const C scale = 1 / sqrt(squares / n + (C)eps);
  along(0, n, normed_store(base + j, added_load(base + j) * scale * weight_load(j));)
""",
)

RMS_NORM_TO_INPUT = Step(
    over="added",
    along=("-1",),
    lanes=True,
    also_reads=("grad_added",),
    text="""
#if HAS_grad_added
#define grad_added_of(o) grad_added_load(o)
#else
#define grad_added_of(o) 0
#endif
  const long n = added_size(1), base = i * n;
  C squares = 0, product = 0;
  along(0, n,
    const C x = added_load(base + j);
    squares += x * x;
    product += grad_normed_load(base + j) * weight_load(j) * x;
  )
  across(squares, plus)
  across(product, plus)
  const C scale = 1 / sqrt(squares / n + (C)eps);
  const C share = product * scale * scale * scale / n;
  along(0, n,
    const C g = grad_normed_load(base + j) * weight_load(j) * scale;
    grad_x_store(base + j, g - added_load(base + j) * share + grad_added_of(base + j));
  )
  if (lane == 0) scales_store(i, scale);
""",
)

# Each part has a share of the lines; a work-item computes one column of one part.
RMS_NORM_TO_PARTS = Step(
    over="weight_parts",
    text=f"""
  const long n = added_size(1), lines = added_size(0);
  const long part = i / n, column = i % n;
  const long share = (lines + {PARTS - 1}) / {PARTS};
  const long last = min(lines, (part + 1) * share);
  C total = 0;
  for (long m = part * share; m < last; ++m) {{
    const long o = m * n + column;
    total += grad_normed_load(o) * added_load(o) * scales_load(m);
  }}
  weight_parts_store(i, total);
""",
)

RMS_NORM_TO_WEIGHT = Step(
    over="grad_weight",
    text=f"""
  C total = 0;
  for (long part = 0; part < {PARTS}; ++part) {{
    total += weight_parts_load(part * grad_weight_numel + i);
  }}
  grad_weight_store(i, total);
""",
)

# Where the blocks of a sequence begin: query head h of sequence b. Both tensors may have
# int32, and OpenCL C has no `min` of an int and a long.
BLOCKS = """
#define LENGTH(b) (long)context_lengths_load((b) * context_lengths_stride(0))
#define BLOCK(b, n) \\
  (long)block_tables_load((b) * block_tables_stride(0) + (n) * block_tables_stride(1))
#define EXISTS(block) ((block) >= 0 && (block) < key_cache_size(0))
"""

# `scores` is (sequences, heads, groups, positions of a group). A sub-group computes those
# of a group.
PAGED_SCORES = Step(
    over="scores",
    along=("-1",),
    lanes=True,
    also_reads=("block_tables", "context_lengths"),
    text="""
  const long size = scores_size(3), groups = scores_size(2), heads = scores_size(1);
  const long first = i % groups * size, head = i / groups % heads;
  const long b = i / (groups * heads), context = LENGTH(b);
  const long in_block = key_cache_size(1);
  if (context < 0 || context > block_tables_size(1) * in_block) {
    FAULT;
    return;
  }
  const long kv_head = head / (heads / key_cache_size(2));
  const long q = b * query_stride(0) + head * query_stride(1);
  const long last = min(first + size, context);
  for (long slot = first; slot < last; ++slot) {
    const long block = BLOCK(b, slot / in_block);
    if (!EXISTS(block)) {
      FAULT;
      return;
    }
    const long key = block * key_cache_stride(0) +
                     slot % in_block * key_cache_stride(1) +
                     kv_head * key_cache_stride(2);
    C product = 0;
    along(0, query_size(2), product += query_load(q + j) * key_cache_load(key + j);)
    across(product, plus)
    if (lane == 0) scores_store(i * size + slot - first, product * (C)scale);
  }
""",
)

# Of the scores of a query. Those beyond the context are neither read nor written.
PAGED_SOFTMAX = Step(
    over="scores",
    along=("-1", "-2"),
    lanes=True,
    also_reads=("context_lengths",),
    text="""
#define larger(a, b) fmax(a, b)
  const long slots = scores_size(2) * scores_size(3), base = i * slots;
  const long context = min(LENGTH(i / scores_size(1)), slots);
  C most = -INFINITY, total = 0;
  along(0, context, most = fmax(most, scores_load(base + j));)
  across(most, larger)
  along(0, context,
    const C weight = exp(scores_load(base + j) - most);
    scores_store(base + j, weight);
    total += weight;
  )
  across(total, plus)
  along(0, context, scores_store(base + j, scores_load(base + j) / total);)
""",
)

# A sub-group computes the result of a query; its lanes read adjacent values.
PAGED_VALUES = Step(
    over="out",
    along=("-1",),
    lanes=True,
    also_reads=("block_tables", "context_lengths"),
    text="""
  const long size = out_size(2), heads = out_size(1), in_block = key_cache_size(1);
  const long slots = scores_size(2) * scores_size(3);
  const long head = i % heads, b = i / heads, context = min(LENGTH(b), slots);
  const long kv_head = head / (heads / key_cache_size(2));
  along(0, size,
    C total = 0;
    for (long first = 0; first < context; first += in_block) {
      const long block = BLOCK(b, first / in_block);
      if (!EXISTS(block)) break;
      const long value = block * value_cache_stride(0) +
                         kv_head * value_cache_stride(2) + j;
      const long count = min(in_block, context - first);
      const long from = i * slots + first;
      for (long k = 0; k < count; ++k) {
        total += scores_load(from + k) *
                 value_cache_load(value + k * value_cache_stride(1));
      }
    }
    out_store(i * size + j, total);
  )
""",
)

ROWS = (
    CustomKernel(
        "xpurt::swiglu_out",
        (SWIGLU,),
        FLOATING_ONLY,
        schema="(Tensor gate, Tensor up, Tensor(a!) out) -> ()",
        functions=SHARED,
        flops=16,
    ),
    CustomKernel(
        "xpurt::swiglu_backward_out",
        (SWIGLU_BACKWARD,),
        FLOATING_ONLY,
        schema="(Tensor grad, Tensor gate, Tensor up, Tensor(a!) grad_gate, "
        "Tensor(b!) grad_up) -> ()",
        functions=SHARED,
        flops=20,
    ),
    CustomKernel(
        "xpurt::rotate_out",
        (ROTATE,),
        FLOATING_ONLY,
        schema="(Tensor self, Tensor cos, Tensor sin, bool interleaved, Tensor(a!) out)"
        " -> ()",
        functions=SHARED,
        flops=6,
    ),
    CustomKernel(
        "xpurt::rms_norm_add_out",
        (RMS_NORM_ADD,),
        FLOATING_ONLY,
        schema="(Tensor x, Tensor? residual, Tensor weight, float eps, "
        "Tensor(a!) normed, Tensor(b!) added) -> ()",
        functions=SHARED,
        contiguous=("x", "residual", "weight"),
        flops=6,
    ),
    CustomKernel(
        "xpurt::rms_norm_add_backward_out",
        (RMS_NORM_TO_INPUT, RMS_NORM_TO_PARTS, RMS_NORM_TO_WEIGHT),
        FLOATING_ONLY,
        schema="(Tensor grad_normed, Tensor? grad_added, Tensor added, Tensor weight, "
        "float eps, Tensor(a!) grad_x, Tensor(b!) grad_weight) -> ()",
        scratch=(
            Scratch("scales", "added", dims=(0,)),
            Scratch("weight_parts", "weight", copies=PARTS),
        ),
        functions=SHARED,
        contiguous=("grad_normed", "grad_added", "added", "weight"),
        flops=16,
    ),
    CustomKernel(
        "xpurt::paged_attention_out",
        (PAGED_SCORES, PAGED_SOFTMAX, PAGED_VALUES),
        FLOATING_ONLY,
        schema="(Tensor query, Tensor key_cache, Tensor value_cache, "
        "Tensor block_tables, Tensor context_lengths, float scale, Tensor(a!) scores, "
        "Tensor(b!) out) -> ()",
        functions=SHARED + BLOCKS,
        flops=200,
    ),
)
