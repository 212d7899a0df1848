"""Values that a sweep leaves out, with the reason."""

import torch


def left_out(name: str, operands: list[torch.Tensor]) -> torch.Tensor:
    """Where there are operands on which neither PyTorch's kernel nor float64 is right, or
    that take too long."""
    none = torch.zeros(len(operands[0]), dtype=torch.bool)
    if operands[0].dtype == torch.bool:
        return none
    x = operands[-1]
    if not x.dtype.is_floating_point:
        if name == "lcm":
            # PyTorch's kernel ends the process: it divides the smallest number by -1.
            least = torch.iinfo(x.dtype).min
            return (x == least) | (operands[0] == least)
        if name == "special_airy_ai":
            return x < -1000
        if name == "special_zeta":
            return (x.abs() > 60) | (x < -2) | (operands[0] > 10**4)
        return x.abs() > 60 if "polynomial" in name else none
    if name == "special_airy_ai":
        # Its phase grows as x^1.5: the digits of float64 end here.
        return (x < -1e4) | ((x.abs() > 12) & (x.dtype == torch.float64))
    if "polynomial" in name:
        # A step per degree; beyond the largest number PyTorch's recurrences give NaN.
        first = operands[0].double().abs()
        degree = x.double().abs()
        if x.dtype == torch.float64 and "chebyshev" in name:
            # Near the ends PyTorch's quotients of sines have 8 digits.
            ends = torch.tensor([0.0, 1.0], dtype=x.dtype)
            near = (first[:, None] - ends).abs().amin(1) < 1e-12
            degree = torch.where(near & (x.abs() > 6), 100.0, degree)
        return (
            (degree > 60) | (degree * first.clamp(min=2).log2() > 100) | first.isnan()
        )
    if name == "special_zeta":
        # A step per whole number from a negative q on, at which terms cancel. Of a large s
        # and of an infinite q PyTorch's kernel gives NaN for what is 0.
        return (x.abs() > 1000) | (x < -2.6) | (operands[0] > 1e4)
    if name == "softplus_backward" and x.dtype == torch.float64:
        return operands[0].abs() > torch.finfo(x.dtype).max / 4  # infinite too soon
    if name in ("igamma", "igammac"):
        # PyTorch's kernel of float64 takes subnormal numbers for 0, and gives NaN for
        # what is far from the largest.
        tiny, most = torch.finfo(x.dtype).tiny, torch.finfo(x.dtype).max
        a = operands[0].abs()
        if x.dtype == torch.float64:
            # Near x = a its expansion has 9 digits: test_special_functions.py is for it.
            near = (a > 19) & ((x - a).abs() < 0.35 * a)
            return near | ((a <= 2 * tiny) & (a > 0)) | ((a >= most / 4) & a.isfinite())
    return none
