"""Which entry of PyTorch's operator database calls the op of a row."""

NAMES = {
    "_cummax_helper": "cummax",
    "_cummin_helper": "cummin",
    "cumprod": "cumprod",
    "cumsum": "cumsum",
    "glu": "nn.functional.glu",
    "native_layer_norm": "nn.functional.layer_norm",
    "native_layer_norm_backward": "nn.functional.layer_norm",
    "polygamma": "polygamma.polygamma_n_2",
    "xpurt::trigamma": "polygamma.polygamma_n_1",
}

# Rows that no entry calls, or that need tests of their own.
TESTED_APART: set[str] = set()
