"""The handwritten digits of scikit-learn, with a fixed split."""

from dataclasses import dataclass

import numpy as np
import torch

from xpurt.startup.extras import needs

SPLIT_SEED = 20
TEST_IMAGES = 360


@dataclass(frozen=True)
class Digits:
    """Images are float32 `(n, 1, 8, 8)` in 0..1, labels int64 `(n,)` in 0..9."""

    train_images: torch.Tensor
    train_labels: torch.Tensor
    test_images: torch.Tensor
    test_labels: torch.Tensor

    def to(self, device: torch.device) -> "Digits":
        return Digits(
            self.train_images.to(device),
            self.train_labels.to(device),
            self.test_images.to(device),
            self.test_labels.to(device),
        )


def load_digits() -> Digits:
    """The 1,797 images as CPU tensors: 1,437 to train on, 360 to test with.

    The split depends on `SPLIT_SEED` only, so that every run and every mapping is
    tested on the same images.
    Raises `MissingExtra` if scikit-learn is not installed.
    """
    bunch = needs("sklearn.datasets", "the demo", "scikit-learn").load_digits()
    order = np.random.default_rng(SPLIT_SEED).permutation(len(bunch.target))
    images = torch.from_numpy((bunch.images / 16.0).astype(np.float32)[order])
    labels = torch.from_numpy(bunch.target.astype(np.int64)[order])
    images = images.unsqueeze(1)
    return Digits(
        train_images=images[TEST_IMAGES:].contiguous(),
        train_labels=labels[TEST_IMAGES:].contiguous(),
        test_images=images[:TEST_IMAGES].contiguous(),
        test_labels=labels[:TEST_IMAGES].contiguous(),
    )
