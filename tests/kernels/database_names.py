"""Which entry of PyTorch's operator database calls the op of a row."""

NAMES = {
    "_cummax_helper": "cummax",
    "_cummin_helper": "cummin",
    "cumprod": "cumprod",
    "cumsum": "cumsum",
    "glu": "nn.functional.glu",
    "binary_cross_entropy": "nn.functional.binary_cross_entropy",
    "binary_cross_entropy_backward": "nn.functional.binary_cross_entropy",
    "huber_loss": "nn.functional.huber_loss",
    "huber_loss_backward": "nn.functional.huber_loss",
    "mse_loss": "nn.functional.mse_loss",
    "mse_loss_backward": "nn.functional.mse_loss",
    "multi_margin_loss": "nn.functional.multi_margin_loss",
    "multi_margin_loss_backward": "nn.functional.multi_margin_loss",
    "multilabel_margin_loss_backward": "nn.functional.multilabel_margin_loss",
    "multilabel_margin_loss_forward": "nn.functional.multilabel_margin_loss",
    "nll_loss_backward": "nn.functional.nll_loss",
    "nll_loss_forward": "nn.functional.nll_loss",
    "nll_loss2d_backward": "nn.functional.nll_loss",
    "nll_loss2d_forward": "nn.functional.nll_loss",
    "smooth_l1_loss": "nn.functional.smooth_l1_loss",
    "smooth_l1_loss_backward": "nn.functional.smooth_l1_loss",
    "native_layer_norm": "nn.functional.layer_norm",
    "native_layer_norm_backward": "nn.functional.layer_norm",
    "polygamma": "polygamma.polygamma_n_2",
    "xpurt::trigamma": "polygamma.polygamma_n_1",
}

# Rows that no entry calls, or that need tests of their own.
TESTED_APART: set[str] = {
    "_amp_foreach_non_finite_check_and_unscale_",  # test_fused_optimizers.py
    "_amp_update_scale_",
    "_fused_adagrad_",
    "_fused_adam_",
    "_fused_adamw_",
    "_fused_sgd_",
    "xpurt::adagrad",
    "xpurt::adam",
    "xpurt::sgd",
    "xpurt::unscale",
}
