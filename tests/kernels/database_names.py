"""Which entry of PyTorch's operator database calls the op of a row."""

NAMES = {
    "_native_batch_norm_legit": "_native_batch_norm_legit",
    "_cummax_helper": "cummax",
    "_cummin_helper": "cummin",
    "cumprod": "cumprod",
    "cumsum": "cumsum",
    "glu": "nn.functional.glu",
    "native_batch_norm": "nn.functional.batch_norm",
    "native_batch_norm_backward": "nn.functional.batch_norm",
    "native_group_norm": "nn.functional.group_norm",
    "native_group_norm_backward": "nn.functional.group_norm",
    "native_layer_norm": "nn.functional.layer_norm",
    "native_layer_norm_backward": "nn.functional.layer_norm",
}

# Rows of images, in test_image_rows.py.
_FORWARD = (
    *(f"max_pool{axes}d_with_indices" for axes in (2, 3)),
    *(f"avg_pool{axes}d" for axes in (2, 3)),
    *(f"_adaptive_avg_pool{axes}d" for axes in (2, 3)),
    *(f"adaptive_max_pool{axes}d" for axes in (2, 3)),
    *(f"upsample_nearest{axes}d" for axes in (1, 2, 3)),
    *(f"_upsample_nearest_exact{axes}d" for axes in (1, 2, 3)),
    "upsample_linear1d",
    "upsample_bilinear2d",
    "upsample_bicubic2d",
    "upsample_trilinear3d",
    *(f"grid_sampler_{axes}d" for axes in (2, 3)),
)
OF_IMAGES = {
    *_FORWARD,
    *(f"{row}_backward" for row in _FORWARD),
    "im2col",
    "col2im",
    "convolution_overrideable",
    "convolution_backward_overrideable",
}

# Rows that no entry calls, or that need tests of their own.
TESTED_APART: set[str] = {*OF_IMAGES}
