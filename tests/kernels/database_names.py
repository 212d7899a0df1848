"""Which entry of PyTorch's operator database calls the op of a row."""

NAMES = {
    "_cummax_helper": "cummax",
    "_cummin_helper": "cummin",
    "cumprod": "cumprod",
    "cumsum": "cumsum",
    "glu": "nn.functional.glu",
    "native_layer_norm": "nn.functional.layer_norm",
    "native_layer_norm_backward": "nn.functional.layer_norm",
}

# Rows that no entry calls, or that need tests of their own.
TESTED_APART: set[str] = set()
