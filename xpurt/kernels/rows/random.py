"""Rows of random numbers: see Note [Random numbers] in templates/random.cl.

Each is an op of xpurt's own, which fills existing tensors from a seed and an offset.
csrc/dispatch/random_ops.cpp calls them for the ops of aten, and does the checks of
these ops. csrc/random/forms.cpp has their host forms, which call the same functions.
"""

from typing import Any

from xpurt.kernels.kinds.custom_kernel import CustomKernel, Step
from xpurt.kernels.kinds.element_types import BOOL, FLOATS, INTS
from xpurt.kernels.kinds.row import FLOATING_ONLY, INTEGRAL, Kind

ALL = Kind(FLOATS + INTS + BOOL)
NUMBERS = (4, 2)  # elements per block of four words; the second number if C is double
WORDS = (4, 4)
WIDE = (2, 2)

OFFSET_OF = """
static long offset_of(int rank, long numel, const long* sizes, const long* strides,
                      long i) {
  long at = 0;
  if (numel >> 31 == 0) {
    uint left = i;
    for (int d = rank - 1; d >= 0; --d) {
      const uint whole = left / (uint)sizes[d];
      at += (left - whole * (uint)sizes[d]) * strides[d];
      left = whole;
    }
    return at;
  }
  for (int d = rank - 1; d >= 0; --d) {
    at += i % sizes[d] * strides[d];
    i /= sizes[d];
  }
  return at;
}
"""


SHARED: dict[str, Any] = {
    "functions": OFFSET_OF,
    "templates": ("random_types", "random", "counts"),
    "draws": True,
}


# In the replay of a graph, the tensor `from` holds the seed and the offset.
FROM = """
#if HAS_from
  const ulong key = from_load(0), start = from_load(1) + offset;
#else
  const ulong key = seed, start = offset;
#endif
"""


def drawing(
    name: str,
    arguments: str,
    text: str,
    kind: Kind = FLOATING_ONLY,
    share: tuple[int, int] = NUMBERS,
    before: str = "",
    over: str = "self",
    flops: float = 30,
    fault: str = "",
) -> CustomKernel:
    """A row that runs `text` for element `e`, the `k`-th of block `i`, and `before`
    once per block. Both can read the block's random `words`."""
    per = "NUMBERS" if share == NUMBERS else share[0]
    loop = f"""{FROM}
  const Words words = words_of(key, start, i, 0);
  {before}
#pragma unroll
  for (int k = 0; k < {per}; ++k) {{
    const long e = i * {per} + k;
    if (e >= {over}_numel) return;
    {text.strip()}
  }}
"""
    return CustomKernel(
        f"xpurt::{name}",
        (Step(over=over, text=loop, share=share),),
        kind,
        schema=f"({arguments}, int seed, int offset, Tensor? from) -> ()",
        **SHARED,
        flops=flops,
        fault=fault,
    )


def filling(
    name: str, arguments: str, value: str, *rest: Any, **more: Any
) -> CustomKernel:
    """A row that sets each element of self to `value`."""
    text = f"self_store(self_element(e), {value});"
    return drawing(name, f"Tensor(a!) self, {arguments}", text, *rest, **more)


FILLING = (
    filling(
        "uniform_",
        "float low, float high, float last, int digits",
        "uniform_of(number_of(words, k), low, high, last, digits)",
    ),
    filling(
        "normal_",
        "float mean, float std",
        "mean + std * normals.value[k]",
        before="const Reals normals = normals_of(words);",
    ),
    filling(
        "log_normal_",
        "float mean, float std",
        "exp_of(mean + std * normals.value[k])",
        before="const Reals normals = normals_of(words);",
    ),
    filling(
        "exponential_",
        "float scale, float least",
        "exponential_of(number_of(words, k), scale, least)",
    ),
    filling(
        "geometric_", "float scale", "geometric_of(number_of(words, k), scale)", ALL
    ),
    filling(
        "cauchy_",
        "float median, float sigma",
        "cauchy_of(number_of(words, k), median, sigma)",
    ),
    filling(
        "random_",
        "int base, int range",
        "base + (long)scaled_down(wide_number_of(words, k), range)",
        ALL,
        WIDE,
    ),
    filling(
        "bernoulli_", "int threshold", "words.word[k] < (ulong)threshold", ALL, WORDS
    ),
    drawing(
        "bernoulli_tensor_",
        "Tensor p, Tensor(a!) self",
        """
    const REAL chance = p_load(p_element(e));
    if (!(chance >= 0 && chance <= 1)) FAULT;
    self_store(self_element(e), words.word[k] < threshold_of(chance));
""",
        share=WORDS,
        fault="bernoulli expects all probabilities to be in [0, 1]",
    ),
    drawing(
        "dropout",
        "Tensor input, Tensor(a!) out, Tensor(b!) mask, int threshold, float scale",
        """
    const int kept = words.word[k] < (ulong)threshold;
    mask_store(mask_element(e), kept);
    out_store(out_element(e), input_load(input_element(e)) * (REAL)kept * scale);
""",
        share=WORDS,
        over="input",
    ),
    drawing(
        "rrelu",
        "Tensor input, Tensor(a!) out, Tensor(b!) noise, float low, float high, "
        "float last, int digits",
        """
    const REAL x = input_load(input_element(e));
    const REAL drawn = uniform_of(number_of(words, k), low, high, last, digits);
    const REAL slope = x <= 0 ? drawn : 1;
    noise_store(noise_element(e), slope);
    out_store(out_element(e), x * slope);
""",
        over="input",
    ),
)

# Each work-item draws as many numbers as it needs, from a sequence of its own.
SAMPLES = (
    CustomKernel(
        "xpurt::poisson",
        (
            Step(
                over="rate",
                text=FROM
                + """
  Supply supply = supply_of(key, start, i);
  const REAL mean = rate_load(rate_element(i));
  if (!(mean >= 0)) FAULT;
  out_store(out_element(i), poisson_of(&supply, mean));
""",
            ),
        ),
        FLOATING_ONLY,
        schema="(Tensor rate, Tensor(a!) out, int seed, int offset, Tensor? from) -> ()",
        **SHARED,
        flops=200,
        fault="invalid Poisson rate, expected rate to be non-negative",
    ),
    CustomKernel(
        "xpurt::binomial",
        (
            Step(
                over="count",
                text=FROM
                + """
  Supply supply = supply_of(key, start, i);
  const REAL trials = count_load(count_element(i)), p = prob_load(prob_element(i));
  out_store(out_element(i), binomial_of(&supply, trials, p));
""",
            ),
        ),
        FLOATING_ONLY,
        schema="(Tensor count, Tensor prob, Tensor(a!) out, int seed, int offset, Tensor? from) -> ()",
        **SHARED,
        flops=200,
    ),
    CustomKernel(
        "xpurt::gamma",
        (
            Step(
                over="alpha",
                text=FROM
                + """
  Supply supply = supply_of(key, start, i);
  const REAL value = gamma_of(&supply, alpha_load(alpha_element(i)));
  out_store(out_element(i), value < least ? (REAL)least : value);
""",
            ),
        ),
        FLOATING_ONLY,
        schema="(Tensor alpha, Tensor(a!) out, float least, int seed, int offset, Tensor? from) -> ()",
        **SHARED,
        flops=200,
    ),
)

# The parts of multinomial, which csrc/dispatch/random_choices.cpp combines. Choices
# without replacement are the first places of a race. Choices with replacement are found
# in cumulative sums of weights scaled to integers, which are exact in any order.
CHOICES = (
    drawing(
        "race",
        "Tensor weights, Tensor(a!) places, int categories",
        """
    const REAL weight = weights_load(weights_element(e));
    const long place = place_of(number_of(words, k), weight, e % categories);
    places_store(places_element(e), place);
""",
        over="weights",
    ),
    CustomKernel(
        "xpurt::whole_weights",
        (
            Step(
                over="weights",
                text="""
  const REAL weight = weights_load(weights_element(i));
  out_store(out_element(i), whole_weight_of(weight, most_load(most_element(i))));
""",
            ),
        ),
        FLOATING_ONLY,
        schema="(Tensor weights, Tensor most, Tensor(a!) out) -> ()",
        **SHARED,
    ),
    drawing(
        "choose",
        "Tensor sums, Tensor(a!) out, int categories, int samples",
        """
    const long row = e / samples * categories;
    const ulong total = sums_load(row + categories - 1);
    const ulong drawn = scaled_down(wide_number_of(words, k), total);
    long low = 0, high = categories - 1;
    while (low < high) {
      const long middle = low + (high - low) / 2;
      if ((ulong)sums_load(row + middle) > drawn) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    out_store(out_element(e), low);
""",
        INTEGRAL,
        WIDE,
        over="out",
    ),
)

ROWS = (*FILLING, *SAMPLES, *CHOICES)
