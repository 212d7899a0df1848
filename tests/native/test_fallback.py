"""PyTorch's CPU kernels as the kernels of xpu: results are the CPU's, to the bit."""

import copy

import pytest
import torch
from torch import nn

import xpurt


def same(on_xpu: torch.Tensor, on_cpu: torch.Tensor) -> None:
    assert on_xpu.device.type == "xpu"
    assert on_xpu.stride() == on_cpu.stride()
    torch.testing.assert_close(on_xpu.detach().cpu(), on_cpu.detach(), rtol=0, atol=0)


def near(on_xpu: torch.Tensor, on_cpu: torch.Tensor) -> None:
    assert on_xpu.device.type == "xpu"
    torch.testing.assert_close(on_xpu.detach().cpu(), on_cpu.detach())


def train_beside(module: nn.Module, source: torch.Tensor, xpu: torch.device) -> None:
    """Results and gradients of a module on xpu are near those on the CPU."""
    other = copy.deepcopy(module).to(xpu)
    there = source.to(xpu).requires_grad_()
    here = source.clone().requires_grad_()
    results = [m(s) for m, s in ((module, here), (other, there))]
    cpu, on_xpu = (r[0] if isinstance(r, tuple) else r for r in results)
    near(on_xpu, cpu)
    weights = torch.randn_like(cpu)
    cpu.backward(weights)
    on_xpu.backward(weights.to(xpu))
    pairs = zip(module.parameters(), other.parameters(), strict=True)
    for a, b in [(here, there), *pairs]:
        assert a.grad is not None
        assert b.grad is not None
        near(b.grad, a.grad)


def test_a_convolutional_net_trains_as_on_the_cpu(xpu: torch.device) -> None:
    torch.manual_seed(0)
    net = nn.Sequential(
        # The gradient of a bias before a batch norm is zero but for rounding errors,
        # which Adam scales up.
        nn.Conv2d(1, 4, 3, padding=1, bias=False),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64, 10),
    )
    nets = {"cpu": net, "xpu": copy.deepcopy(net).to(xpu)}
    optimizers = {k: torch.optim.Adam(n.parameters(), lr=0.01) for k, n in nets.items()}
    images, labels = torch.randn(6, 1, 8, 8), torch.randint(10, (6,))
    for _ in range(3):
        for name, each in nets.items():
            optimizers[name].zero_grad()
            scores = each(images.to(name))
            nn.functional.cross_entropy(scores, labels.to(name)).backward()
            optimizers[name].step()
    # Not to the bit: on copies in other memory, the gradient of a convolution was seen to
    # differ in its last bit, rarely and for a reason that is not known.
    for key, value in nets["cpu"].state_dict().items():
        near(nets["xpu"].state_dict()[key], value)


@pytest.mark.parametrize(
    "memory_format", [torch.contiguous_format, torch.channels_last]
)
def test_a_convolution_has_the_cpu_s_layout(
    memory_format: torch.memory_format, xpu: torch.device
) -> None:
    source = torch.randn(2, 3, 8, 8).to(memory_format=memory_format)
    weight = torch.randn(4, 3, 3, 3)
    expected = nn.functional.conv2d(source, weight)
    same(nn.functional.conv2d(source.to(xpu), weight.to(xpu)), expected)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_layers(
    kind: type[nn.RNNBase], bias: bool, xpu: torch.device
) -> None:
    torch.manual_seed(1)
    layer = kind(4, 5, 2, bias=bias, bidirectional=True)
    train_beside(layer, torch.randn(3, 2, 4), xpu)


def test_a_packed_sequence_keeps_its_lengths_on_the_cpu(xpu: torch.device) -> None:
    pack = nn.utils.rnn.pack_padded_sequence
    packed = pack(torch.randn(3, 2, 4, device=xpu), torch.tensor([3, 2]))
    assert packed.batch_sizes.device.type == "cpu"
    assert packed.data.device == xpu


def test_a_transformer_layer(xpu: torch.device) -> None:
    torch.manual_seed(2)
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    train_beside(layer, torch.randn(2, 5, 8), xpu)


@pytest.mark.parametrize("causal", [False, True])
def test_attention(causal: bool, xpu: torch.device) -> None:
    attend = nn.functional.scaled_dot_product_attention
    q, k, v = (torch.randn(2, 2, 5, 8) for _ in range(3))
    on_xpu = attend(q.to(xpu), k.to(xpu), v.to(xpu), is_causal=causal)
    near(on_xpu, attend(q, k, v, is_causal=causal))
    mask = torch.ones(5, 5, dtype=torch.bool).tril()
    near(
        attend(q.to(xpu), k.to(xpu), v.to(xpu), attn_mask=mask.to(xpu)),
        attend(q, k, v, attn_mask=mask),
    )


def test_lists_of_tensors_are_changed_in_place(xpu: torch.device) -> None:
    whole = torch.arange(10.0, device=xpu)
    torch._foreach_mul_([whole[:5], whole[5:]], 2.0)
    assert whole.tolist() == [2.0 * i for i in range(10)]


def test_running_statistics_are_written(xpu: torch.device) -> None:
    mean, var = torch.zeros(3, device=xpu), torch.ones(3, device=xpu)
    source = torch.randn(8, 3) + 2
    nn.functional.batch_norm(source.to(xpu), mean, var, training=True)
    near(mean, source.mean(0) * 0.1)


def test_sparse_tensors(xpu: torch.device) -> None:
    dense = torch.tensor([[0.0, 1.0], [2.0, 0.0]])
    for layout in (torch.sparse_coo, torch.sparse_csr):
        sparse = dense.to(xpu).to_sparse(layout=layout)
        assert sparse.device == xpu
        assert sparse.values().device == xpu
        same(sparse @ dense.to(xpu), dense @ dense)
        assert torch.equal(sparse.cpu().to_dense(), dense)
        assert torch.equal(
            dense.to_sparse(layout=layout).to(xpu).to_dense().cpu(), dense
        )
    made = torch.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0], device=xpu)
    same(made.coalesce().to_dense(), dense)


def test_functional_transforms(xpu: torch.device) -> None:
    def f(t: torch.Tensor) -> torch.Tensor:
        return (t.sin() ** 2).sum()

    source = torch.randn(3)
    near(torch.func.hessian(f)(source.to(xpu)), torch.func.hessian(f)(source))
    near(
        torch.func.vmap(torch.func.grad(f))(source.to(xpu)[None]),
        torch.func.vmap(torch.func.grad(f))(source[None]),
    )


def test_an_op_without_a_cpu_kernel_says_so(xpu: torch.device) -> None:
    with pytest.raises(NotImplementedError, match="_cudnn_init_dropout_state"):
        torch._cudnn_init_dropout_state(
            0.1, True, 1, dtype=torch.uint8, device=xpu, layout=torch.strided
        )


def test_every_op_is_counted(xpu: torch.device) -> None:
    tensor = torch.ones(3, device=xpu)
    xpurt.op_report(reset=True)
    for _ in range(5):
        tensor = tensor + 1
    row = next(r for r in xpurt.op_report().rows if r.op == "aten::add.Tensor")
    assert row.calls == 5
    assert row.tier in ("native", "copy")
    assert row.device in {d.name for d in xpurt.physical_devices()}
    assert row.time_ms > 0
    assert "aten::add.Tensor" in str(xpurt.op_report())


def test_autocast_of_the_cpu_ignores_a_sparse_result(xpu: torch.device) -> None:
    made = torch.eye(3).to(xpu).to_sparse()
    keys = torch._C._dispatch_keys(made)
    assert keys.has(torch._C.DispatchKey.AutocastXPU)
    assert not keys.has(torch._C.DispatchKey.AutocastCPU)
