"""The ops of torchaudio, whose kernels are for the CPU and CUDA, and its transforms."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import xpurt
from programs.training_steps import Batch, check
from xpurt.testing.oracle import agree

AF = pytest.importorskip("torchaudio.functional")
models = pytest.importorskip("torchaudio.models")
transforms = pytest.importorskip("torchaudio.transforms")

RATE = 8000  # samples a second


def sound() -> Tensor:
    return torch.rand(2, 1200) * 1.6 - 0.8


def emission() -> Tensor:
    return torch.randn(1, 12, 6).log_softmax(-1)


def filtered(wave: Tensor, a: Tensor, b: Tensor) -> Tensor:
    return AF.lfilter(wave, a, b, clamp=False)


CALLS: dict[str, Callable[[], tuple[Callable[..., Any], tuple[Any, ...]]]] = {
    "_lfilter_core_loop": lambda: (
        filtered,
        (
            sound()[:, :60].requires_grad_(),
            torch.tensor([1.0, -0.4, 0.1], requires_grad=True),
            torch.tensor([0.3, 0.2, 0.1], requires_grad=True),
        ),
    ),
    "_overdrive_core_loop": lambda: (AF.overdrive, (sound()[:, :30],)),
    "forced_align": lambda: (
        AF.forced_align,
        (emission(), torch.tensor([[1, 3, 3, 5]])),
    ),
    "rnnt_loss_forward": lambda: (
        AF.rnnt_loss,
        (
            torch.randn(2, 6, 4, 5, requires_grad=True),
            torch.randint(1, 5, (2, 3), dtype=torch.int32),
            torch.tensor([6, 5], dtype=torch.int32),
            torch.tensor([3, 2], dtype=torch.int32),
            0,
        ),
    ),
    "biquad": lambda: (AF.lowpass_biquad, (sound(), RATE, 1000.0)),
    "resample": lambda: (AF.resample, (sound().requires_grad_(), RATE, 6000)),
}
# The name of a call with a C++ kernel is the op's.
NATIVE = ["_lfilter_core_loop", "forced_align", "rnnt_loss_forward"]


@pytest.mark.parametrize("name", CALLS)
def test_ops_and_their_gradients(name: str, xpu: torch.device) -> None:
    function, arguments = CALLS[name]()
    xpurt.op_report(reset=True)
    agree(function, *arguments, device=xpu, rtol=1e-4, atol=1e-4)
    if name in NATIVE:
        found = {row.op: row.tier for row in xpurt.op_report().rows}
        on_gpu = xpurt.get_xpu_mapping() in ("explicit", "GPU")
        expected = "copy" if on_gpu else "native"
        assert found[f"torchaudio::{name}"] == expected


TRANSFORMS: dict[str, Callable[[], nn.Module]] = {
    "spectrogram": lambda: transforms.Spectrogram(n_fft=128),
    "mel spectrogram": lambda: transforms.MelSpectrogram(RATE, n_fft=128, n_mels=16),
    "mfcc": lambda: transforms.MFCC(
        RATE, n_mfcc=8, melkwargs={"n_fft": 128, "n_mels": 16}
    ),
    "griffin-lim": lambda: nn.Sequential(
        transforms.Spectrogram(n_fft=128),
        transforms.GriffinLim(n_fft=128, n_iter=4, rand_init=False),
    ),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(name: str, xpu: torch.device) -> None:
    module = TRANSFORMS[name]()
    expected = module(sound := torch.rand(2, 1200))
    found = module.to(xpu)(sound.to(xpu))
    assert found.device == xpu
    scale = float(expected.abs().max())
    torch.testing.assert_close(found.cpu(), expected, rtol=1e-3, atol=1e-4 * scale)


def transcription_loss(model: nn.Module, batch: Batch) -> Tensor:
    output, lengths = model(batch["sound"], batch["lengths"])
    loss: Tensor = AF.rnnt_loss(
        output[:, :, None].expand(-1, -1, 4, -1).contiguous(),
        batch["targets"],
        lengths.int(),
        torch.full_like(lengths, 3).int(),
        blank=0,
    )
    return loss


def test_a_conformer_trains(xpu: torch.device) -> None:
    torch.manual_seed(0)
    model = models.Conformer(
        input_dim=16,
        num_heads=2,
        ffn_dim=32,
        num_layers=1,
        depthwise_conv_kernel_size=7,
        dropout=0.0,
    )
    batch = {
        "sound": torch.rand(2, 10, 16),
        "lengths": torch.tensor([10, 8]),
        "targets": torch.randint(1, 16, (2, 3), dtype=torch.int32),
    }
    check(model, batch, transcription_loss, xpu)
