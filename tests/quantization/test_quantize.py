"""What `quantize` replaces, folds, leaves, and says of it."""

import copy
import io
import pickle
from typing import Any

import pytest
import torch
from networks import GPT, calibration_images, trained_digits, windows
from torch import Tensor, nn

import xpurt
from xpurt.quantization import QuantizationReport
from xpurt.quantization.layers import Int8Convolution, Int8Linear

KINDS = ["dynamic", "static", "int8_weight_only", "int4_weight_only"]


def report_of(model: nn.Module) -> QuantizationReport:
    report = model.quantization_report
    assert isinstance(report, QuantizationReport)
    return report


def mlp() -> nn.Sequential:
    return nn.Sequential(nn.Linear(64, 48), nn.GELU(), nn.Linear(48, 10)).eval()


def quantized(model: nn.Module, kind: str, device: str = "cpu") -> nn.Module:
    x = [torch.randn(8, 64, device=device)]
    return xpurt.quantize(model, kind, calibration=x, group_size=16)


def test_the_model_itself_stays_unless_asked() -> None:
    model = mlp()
    before = copy.deepcopy(model.state_dict())
    made = xpurt.quantize(model, "dynamic")
    assert made is not model
    assert type(model[0]) is nn.Linear
    assert all(torch.equal(a, before[n]) for n, a in model.state_dict().items())
    assert xpurt.quantize(model, "dynamic", inplace=True) is model
    assert type(model[0]) is Int8Linear


def test_batch_norms_and_relus_are_folded(device: str) -> None:
    network = copy.deepcopy(trained_digits()).to(device)
    made = xpurt.quantize(network, "static", calibration=calibration_images(device))
    kinds = [type(layer) for layer in made.features]
    assert kinds[:3] == [Int8Convolution, nn.Identity, nn.Identity]
    assert made.features[0].relu
    (first, *_) = report_of(made).quantized
    assert (first.name, first.note) == ("features.0", "with features.1, features.2")


class Shortcut(nn.Module):
    """What comes before the batch norm and the ReLU is needed again."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.relu = nn.ReLU()
        self.norm.running_mean = torch.full((4,), 0.5)

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv(x)
        z = self.norm(y)
        result: Tensor = self.relu(z) + y + 2 * z
        return result


def test_a_fold_that_would_change_the_result_is_undone() -> None:
    model = Shortcut().eval()
    x = torch.randn(2, 3, 8, 8)
    made = xpurt.quantize(model, "static", calibration=[x])
    assert type(made.norm) is nn.BatchNorm2d
    assert type(made.relu) is nn.ReLU
    assert not made.conv.relu
    with torch.no_grad():
        assert (made(x) - model(x)).abs().max() < 0.1


class Rectified(nn.Module):
    """What comes before the ReLU is needed again."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.relu = nn.Conv2d(3, 4, 3), nn.ReLU()
        self.then = nn.Conv2d(4, 4, 1)

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv(x)
        result: Tensor = self.then(self.relu(y) / 8 + y)
        return result


def test_a_relu_that_can_not_be_folded_leaves_later_layers_their_ranges() -> None:
    model = Rectified().eval()
    x = torch.randn(2, 3, 8, 8)
    made = xpurt.quantize(model, "static", calibration=[x])
    assert type(made.relu) is nn.ReLU
    with torch.no_grad():
        assert (made(x) - model(x)).abs().max() < 0.1


def test_of_two_folds_the_one_that_holds_is_done() -> None:
    holds = nn.Sequential(nn.Conv2d(4, 4, 3), nn.BatchNorm2d(4), nn.ReLU())
    model = nn.Sequential(Shortcut(), holds).eval()
    x = torch.randn(2, 3, 8, 8)
    made = xpurt.quantize(model, "static", calibration=[x])
    assert type(made[0].norm) is nn.BatchNorm2d
    assert [type(each) for each in made[1][1:]] == [nn.Identity, nn.Identity]
    assert made[1][0].relu
    assert not made[0].conv.relu


def test_smooth_quant_moves_outliers_from_activations_to_weights(device: str) -> None:
    torch.manual_seed(0)
    norm, linear = nn.LayerNorm(64), nn.Linear(64, 32)
    with torch.no_grad():
        norm.weight[::16] *= 100
        linear.weight[:, ::16] /= 100
    model = nn.Sequential(norm, linear).eval().to(device)
    x = torch.randn(64, 64, device=device)
    wanted = model(x).detach()
    errors = []
    for alpha in (None, 0.5):
        made = xpurt.quantize(model, "static", calibration=[x], smooth_quant=alpha)
        errors.append((made(x) - wanted).abs().max().item())
    assert errors[1] < errors[0] / 3
    assert report_of(made).quantized[0].note == "with 0"


def test_the_scales_of_smooth_quant() -> None:
    norm, linear = nn.LayerNorm(64), nn.Linear(64, 32)
    with torch.no_grad():
        norm.bias.normal_()
        norm.weight[3] = norm.bias[3] = 0  # a channel that is always 0 stays
    model = nn.Sequential(norm, linear).eval()
    batches = [torch.randn(16, 64) * scale for scale in (1, 4, 1)]
    made = xpurt.quantize(model, "dynamic", calibration=batches, smooth_quant=0.75)
    largest = torch.cat([norm(x) for x in batches]).abs().amax(0)
    scale = largest**0.75 / linear.weight.abs().amax(0) ** 0.25
    scale[3] = 1
    torch.testing.assert_close(made[0].weight, norm.weight / scale)
    torch.testing.assert_close(made[0].bias, norm.bias / scale)
    assert report_of(made).quantized[0].note == "with 0"


def test_a_batch_norm_without_a_relu_is_folded_alone() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)).eval()
    x = torch.randn(2, 3, 8, 8)
    made = xpurt.quantize(model, "static", calibration=[x])
    assert type(made[1]) is nn.Identity
    assert not made[0].relu
    with torch.no_grad():
        assert model(x).min() < -0.5  # which a ReLU would take away
        assert (made(x) - model(x)).abs().max() < 0.1


class Odd(nn.Linear):
    """A subclass."""


def test_what_can_not_be_quantized_stays_and_is_named() -> None:
    hooked, spoilt, watched = (nn.Linear(64, 64) for _ in range(3))
    hooked.register_forward_hook(lambda _, __, x: x)
    watched.register_forward_pre_hook(lambda _, x: x)
    with torch.no_grad():
        spoilt.weight[0, 0] = float("nan")
    model = nn.Sequential(
        nn.Linear(64, 64), hooked, spoilt, Odd(64, 64), nn.Linear(64, 64).double(),
        nn.Linear(40, 8), nn.Conv2d(1, 1, 1), nn.ConvTranspose2d(1, 1, 1),
        nn.MultiheadAttention(8, 2), nn.Linear(64, 64), watched,
    ).eval()  # fmt: skip
    made = xpurt.quantize(model, "int4_weight_only", skip=["9"])
    report = report_of(made)
    assert [layer.name for layer in report.quantized] == ["0"]
    notes = {layer.name: layer.note for layer in report.kept}
    words = ["hooks", "finite", "subclass", "float64", "multiple", "linear layers"]
    for name, word in zip("123456", words, strict=True):
        assert word in notes[name]
    assert "not quantized by xpurt" in notes["7"]
    assert "not quantized by xpurt" in notes["8"]
    assert "subclass" in notes["8.out_proj"]
    assert "skip" in notes["9"]
    assert "hooks" in notes["10"]
    assert "int4_weight_only: 1 of 12 layers" in str(report)
    assert all(name in str(report) for name in notes)


def test_circular_padding_and_lopsided_padding_stay() -> None:
    model = nn.Sequential(
        nn.Conv2d(1, 1, 3, padding=1, padding_mode="circular"),
        nn.Conv2d(1, 1, 2, padding="same"),
        nn.Conv2d(1, 1, 3),
        nn.Conv2d(1, 1, 2, padding="same", dilation=2),  # one zero on each side
    ).eval()
    kept = report_of(xpurt.quantize(model, "dynamic")).kept
    assert [each.name for each in kept] == ["0", "1"]
    assert ["circular" in kept[0].note, "same" in kept[1].note] == [True, True]


def test_a_layer_in_two_places_is_one() -> None:
    shared = nn.Linear(64, 64)
    model = nn.Sequential(shared, nn.GELU(), shared).eval()
    made = xpurt.quantize(model, "dynamic")
    assert type(made[0]) is Int8Linear
    assert made[0] is made[2]


def test_an_encoder_of_pytorch_runs(device: str) -> None:
    layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    model = nn.TransformerEncoder(layer, 2).eval().to(device)
    x = torch.randn(2, 5, 64, device=device)
    mask = torch.zeros(2, 5, dtype=torch.bool, device=device)
    made = xpurt.quantize(model, "dynamic")
    with torch.no_grad():
        found, wanted = (m(x, src_key_padding_mask=mask) for m in (made, model))
    assert (found - wanted).abs().max() < 0.1
    assert len(report_of(made).quantized) == 4


def test_a_model_that_reads_the_weight_is_told_what_to_do() -> None:
    made = xpurt.quantize(mlp(), "dynamic")
    with pytest.raises(AttributeError, match="skip="):
        _ = made[0].weight


@pytest.mark.parametrize("kind", KINDS)
def test_state_copies_and_pickles(device: str, kind: str) -> None:
    made = quantized(mlp().to(device), kind, device)
    x = torch.randn(4, 64, device=device)
    wanted = made(x)
    other = quantized(mlp().to(device), kind, device)
    assert not torch.equal(other(x), wanted)
    other.load_state_dict(made.state_dict())
    file = io.BytesIO()
    torch.save(made, file)
    file.seek(0)
    copies = [
        copy.deepcopy(made),
        pickle.loads(pickle.dumps(made)),
        torch.load(file, weights_only=False),
        other,
    ]
    for each in copies:
        assert torch.equal(each(x), wanted)
    assert str(report_of(copies[0])) == str(report_of(made))


@pytest.mark.parametrize("kind", KINDS)
def test_moving_between_devices_and_types(on_xpu: torch.device, kind: str) -> None:
    made = quantized(mlp(), kind)
    x = torch.randn(4, 64)
    wanted = made(x)
    moved = copy.deepcopy(made).to(on_xpu)
    torch.testing.assert_close(moved(x.to(on_xpu)).cpu(), wanted, rtol=1e-3, atol=1e-3)
    back = moved.cpu()
    assert torch.equal(back(x), wanted)
    assert torch.equal(back.half()(x), wanted)


@pytest.mark.parametrize("kind", KINDS)
def test_in_inference_mode(device: str, kind: str) -> None:
    with torch.inference_mode():
        made = quantized(mlp().to(device), kind, device)
        x = torch.randn(4, 64, device=device)
        first = made(x)
        assert torch.equal(made(x), first)
    assert torch.equal(made(x.clone()), first)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("kind", KINDS)
def test_compiled_code_computes_the_same(device: str, kind: str) -> None:
    made = quantized(mlp().to(device), kind, device)
    x = torch.randn(4, 64, device=device)
    with torch.no_grad():
        found = torch.compile(made, fullgraph=True)(x)
        torch.testing.assert_close(found, made(x), rtol=1e-4, atol=1e-4)
    torch.compiler.reset()


BAD: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"kind": "int8"}, ValueError, "dynamic"),
    ({"kind": "statc"}, ValueError, 'Did you mean "static"'),
    ({"kind": 8}, TypeError, "found int 8"),
    ({"kind": "static"}, ValueError, "calibration="),
    ({"kind": "static", "calibration": []}, ValueError, "at least one input"),
    ({"kind": "static", "calibration": 3}, TypeError, "iterable of inputs"),
    ({"kind": "static", "calibration": torch.ones(2, 64)}, TypeError, "iterable"),
    ({"smooth_quant": 0.5}, ValueError, "calibration="),
    ({"smooth_quant": 2}, ValueError, "from 0 to 1"),
    ({"smooth_quant": "half"}, TypeError, "from 0 to 1"),
    ({"kind": "int8_weight_only", "smooth_quant": 0.5}, ValueError, "activations"),
    ({"group_size": 24}, ValueError, "multiple of 16"),
    ({"group_size": "all"}, TypeError, "group_size"),
    ({"observer": "max"}, ValueError, "minmax"),
    ({"skip": "0"}, TypeError, "skip="),
    ({"skip": ["7"]}, ValueError, "named_modules"),
    ({"inplace": "yes"}, TypeError, "True or False"),
    ({"model": mlp().train()}, ValueError, "eval"),
    ({"model": "mlp"}, TypeError, "a module"),
    ({"model": nn.Sequential(nn.GELU()).eval()}, ValueError, "no layer"),
    ({"model": xpurt.quantize(mlp(), "dynamic")}, ValueError, "already"),
    ({"model": mlp().to("meta")}, ValueError, "found meta"),
    ({"kind": "int4_weight_only", "group_size": 256}, ValueError, "multiple of"),
]


@pytest.mark.parametrize(("change", "error", "words"), BAD, ids=str)
def test_bad_arguments(
    change: dict[str, Any], error: type[Exception], words: str
) -> None:
    arguments = {"model": mlp(), "kind": "dynamic", **change}
    with pytest.raises(error, match=words):
        xpurt.quantize(**arguments)


def test_a_calibration_on_another_device(on_xpu: torch.device) -> None:
    with pytest.raises(ValueError, match="input 1 is on xpu"):
        xpurt.quantize(
            mlp(),
            "static",
            calibration=[torch.ones(1, 64), torch.ones(1, 64).to(on_xpu)],
        )


def test_a_layer_that_the_calibration_does_not_reach_stays() -> None:
    model = mlp()
    model.spare = nn.Linear(4, 4)

    def forward(x: Tensor) -> Tensor:
        result: Tensor = model[2](model[1](model[0](x)))
        return result

    model.forward = forward
    made = xpurt.quantize(
        model, "static", calibration=[torch.randn(2, 64)], inplace=True
    )
    kept = {layer.name: layer.note for layer in report_of(made).kept}
    assert kept == {"spare": "it was not called in the calibration"}


class ReadsWeight(nn.Module):
    """Its layer is never called."""

    def __init__(self) -> None:
        super().__init__()
        self.read, self.called = nn.Linear(64, 64), nn.Linear(64, 64)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.called(x @ self.read.weight)
        return result


@pytest.mark.parametrize("kind", KINDS)
def test_a_layer_whose_weight_its_parent_reads_stays(kind: str) -> None:
    made = quantized(ReadsWeight().eval(), kind)
    kept = {layer.name: layer.note for layer in report_of(made).kept}
    assert kept == {"read": "it was not called in the calibration"}
    made(torch.randn(8, 64))


def test_inputs_may_be_tuples_and_mappings() -> None:
    model = GPT(30, 48, width=32, heads=2, layers=1).eval()
    tokens = windows("cpu")[0].clamp(max=29)
    for given in ((tokens,), [tokens], {"tokens": tokens}):
        made = xpurt.quantize(model, "static", calibration=[given])
        assert len(report_of(made).quantized) == 5


class Difference(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(64, 64)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        result: Tensor = self.linear(x - y.clamp(max=0))
        return result


def test_named_inputs_are_given_by_name() -> None:
    x, y = torch.rand(4, 64), torch.rand(4, 64) * 100
    made = xpurt.quantize(Difference().eval(), "static", calibration=[{"y": y, "x": x}])
    assert made.linear.x_scale.item() < 0.01  # of x, from 0 to 1
