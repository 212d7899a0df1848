"""Devices that read the host's memory: one copy, and nothing moves."""

from own_process import output

from auto.test_own_process import BEGIN


def coherent(code: str, **environment: str) -> list[str]:
    return output(
        BEGIN + code,
        XPURT_MAPPING="AUTO",
        XPURT_VIRTUAL_GPU="coherent",
        XPURT_LEARN="0",
        **environment,
    ).splitlines()


def test_nothing_is_copied() -> None:
    assert coherent(
        """
x = torch.arange(1000.0, device="xpu")
y = x * 2
print(ran_on("aten::mul"))
only("cpu"); y.add_(1)
print(ran_on("aten::add_"))
only("gpu"); z = (y * y).sum()
print(ran_on("aten::sum"))
print(_C.testing.transfers_to(0), _C.testing.replica_bytes(0, kinds.index("gpu")))
print(len(xpurt.where(x)), len(xpurt.where(y)))
expected = torch.arange(1000.0) * 2 + 1
print(torch.equal(y.cpu(), expected), torch.allclose(z.cpu(), expected @ expected))
"""
    ) == ["['gpu']", "['cpu']", "['gpu']", "[(0, 0), (0, 0)] 0", "2 2", "True True"]


def test_the_order_is_that_of_the_data() -> None:
    assert coherent(
        """
x, y = torch.zeros(100, device="xpu"), torch.ones(100, device="xpu")
only("cpu"); y.mul_(2); only("gpu"); x.add_(0); torch.xpu.synchronize()
x.add_(1)                               # the GPU takes its time
only("cpu"); y.mul_(3)
stream = torch.xpu.current_stream()
print(y.cpu()[0].item(), stream.query())
x.mul_(5)                               # behind the GPU's kernel
print(x.cpu()[0].item())
print(torch.flip(y, [0])[0].item())
""",
        XPURT_VIRTUAL_GPU_DELAY_US="500000",
    ) == ["6.0 False", "5.0", "6.0"]


def test_pieces_of_one_result() -> None:
    assert coherent(
        """
x = torch.arange(1 << 16, device="xpu").float()
_C.testing.set_split_proportions([0.5, 0.5])
y = ((x + 1) * 2).view(256, 256).sum(1)
_C.testing.set_split_proportions([])
expected = ((torch.arange(1 << 16).float() + 1) * 2).view(256, 256).sum(1)
print(torch.equal(y.cpu(), expected), min(_C.testing.shards_run(0)) >= 3)
"""
    ) == ["True True"]
