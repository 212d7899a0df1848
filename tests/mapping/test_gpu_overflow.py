"""A model larger than the GPU's memory, under the mapping GPU with overflow.

The GPU is the virtual one, with 256 MiB of memory; the model has 640 MiB.
"""

import textwrap

import pytest
from own_process import output, run

pytest.importorskip("xpurt.virtual_gpu", reason="this build has no virtual GPU")

MIB = 1 << 20

BEGIN = """
    import torch, xpurt
    mib = 1 << 20
    def model(layers=40):  # 16 MiB each
        torch.manual_seed(0)
        made = []
        for _ in range(layers):
            made += [torch.nn.Linear(2048, 2048, bias=False), torch.nn.Tanh()]
        return torch.nn.Sequential(*made)
    def evicted():
        return sum(row.bytes_evicted for row in xpurt.op_report().devices) // mib
    def ran_on():
        return sorted({row.device for row in xpurt.op_report()})
"""


def with_memory(code: str, mib: int = 256, **environment: str) -> list[str]:
    settings = {
        "XPURT_MAPPING": "GPU",
        "XPURT_GPU_OVERFLOW": "host",
        "XPURT_VIRTUAL_GPU": "strict",
        "XPURT_VIRTUAL_GPU_MEMORY": str(mib * MIB),
    }
    program = textwrap.dedent(BEGIN) + textwrap.dedent(code)
    return output(program, **{**settings, **environment}).splitlines()


FORWARD = """
    net = model().to("xpu")
    x = torch.randn(4, 2048, generator=torch.Generator().manual_seed(1)).to("xpu")
    with torch.no_grad():
        for _ in range(2):
            y = net(x)
    print(y.cpu().double().sum().item(), y.cpu().abs().sum().item())
    print(evicted() > 0)
"""

TRAINING = """
    net = model().to("xpu")
    x = torch.randn(4, 2048, generator=torch.Generator().manual_seed(1)).to("xpu")
    steps = torch.optim.OPTIMIZER(net.parameters(), lr=1e-3)
    for _ in range(2):
        loss = net(x).square().sum()
        loss.backward()
        steps.step()
        steps.zero_grad()
    print(loss.item())
    print(*(p.detach().cpu().double().sum().item() for p in net.parameters()))
    print(evicted() > 0)
"""


def large_and_small(code: str) -> None:
    """The results are those of a GPU that has room for all."""
    *wanted, none = with_memory(code, 8192, XPURT_GPU_OVERFLOW="")
    *found, some = with_memory(code)
    assert (none, some) == ("False", "True")
    assert found == wanted


def test_a_larger_model_runs_forward() -> None:
    large_and_small(FORWARD)


@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
def test_a_larger_model_is_trained(optimizer: str) -> None:
    large_and_small(TRAINING.replace("OPTIMIZER", optimizer))


def test_without_overflow_it_has_no_room() -> None:
    (line,) = with_memory(
        """
        try:
            model().to("xpu")
        except torch.OutOfMemoryError:
            print("no room")
        """,
        XPURT_GPU_OVERFLOW="off",
    )
    assert line == "no room"


def test_the_gpu_runs_what_it_can() -> None:
    assert with_memory(
        """
        gpu = xpurt.physical_devices()[0].name
        x = torch.randn(64, 64, device="xpu")
        y = torch.softmax(x @ x, dim=1).sum() + torch.ones((), device="xpu")
        print(ran_on() == [gpu], round(y.item()))
        print({row.op for row in xpurt.op_report() if row.device != gpu})
        """
    ) == ["True 65", "{'aten::_local_scalar_dense'}"]


def test_the_device_is_the_gpu() -> None:
    assert with_memory(
        """
        gpu = xpurt.physical_devices()[0]
        found = torch.xpu.get_device_properties(0)
        print(xpurt.get_xpu_mapping(), torch.xpu.device_count())
        print(found.name == gpu.name, found.type, found.total_memory // mib)
        free, total = torch.xpu.mem_get_info()
        print(free // mib, total // mib)
        x = torch.ones(8 * mib, device="xpu") + 1
        print(torch.xpu.mem_get_info()[0] // mib < 256, torch.xpu.memory_allocated() // mib)
        """
    ) == ["GPU 1", "True gpu 256", "256 256", "True 32"]


def test_statistics_have_what_is_resident_and_what_was_moved() -> None:
    assert with_memory(
        """
        x = torch.ones(8 * mib).to("xpu")  # 32 MiB
        y = x + 1
        stats = torch.xpu.memory_stats()
        def count(name): return stats["replica_bytes.opencl:gpu:0." + name] // mib
        print(*map(count, ("resident", "moved_to", "moved_from", "evicted")))
        y.cpu()
        many = [torch.ones(8 * mib, device="xpu") for _ in range(8)]
        stats = torch.xpu.memory_stats()
        print(count("moved_from") >= 32, count("resident") <= 256, count("evicted") > 0)
        print(sum(row.bytes_moved for row in xpurt.op_report().devices) // mib >= 64)
        """
    ) == ["64 32 0 0", "True True True", "True"]


def test_operands_of_one_op_have_to_fit() -> None:
    (line,) = with_memory(
        """
        x = torch.ones(40 * mib).to("xpu")  # 160 MiB
        try:
            x + 1
        except torch.OutOfMemoryError as error:
            print("has no room" in str(error), '"AUTO"' in str(error))
        """
    )
    assert line == "True True"


def test_threads_streams_and_pinned_memory() -> None:
    assert with_memory(
        """
        from torch.utils.data import DataLoader, TensorDataset
        data = TensorDataset(torch.arange(64.0).repeat_interleave(4096).view(64, 4096))
        total = torch.zeros(4096, device="xpu")
        for (batch,) in DataLoader(data, batch_size=8, pin_memory=True):
            total += batch.to("xpu", non_blocking=True).sum(0)
        print(total.cpu().unique().tolist())
        weights = [torch.full((4 * mib,), float(i)).to("xpu") for i in range(24)]
        streams = [torch.xpu.Stream() for _ in range(2)]
        sums = []
        torch.xpu.synchronize()
        for stream in streams:
            with torch.xpu.stream(stream):
                sums.append(sum(weight.mul(2).mean() for weight in weights))
        torch.xpu.synchronize()
        print([each.item() for each in sums])
        """
    ) == ["[2016.0]", "[552.0, 552.0]"]


def test_the_argument_does_the_same() -> None:
    assert with_memory(
        """
        xpurt.set_xpu_mapping("GPU", overflow="host")
        print([d.kind for d in xpurt.mapping.current_placement().ordinals[0]])
        with xpurt.xpu_mapping("GPU"):
            print([d.kind for d in xpurt.mapping.current_placement().ordinals[0]])
        print([d.kind for d in xpurt.mapping.current_placement().ordinals[0]])
        xpurt.set_xpu_mapping("AUTO")
        x = torch.ones(4, device="xpu")
        print(torch.xpu.get_device_properties(0).total_memory // mib > 256)
        """,
        XPURT_MAPPING="",
        XPURT_GPU_OVERFLOW="",
    ) == ["['gpu', 'cpu']", "['gpu']", "['gpu', 'cpu']", "True"]


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"XPURT_GPU_OVERFLOW": "disk"}, "it may be off or host"),
        (
            {"XPURT_GPU_OVERFLOW": "host", "XPURT_MAPPING": "AUTO"},
            'belongs to the mapping "GPU", and XPURT_MAPPING is "AUTO"',
        ),
    ],
)
def test_bad_variables(environment: dict[str, str], message: str) -> None:
    ended = run(
        "import torch, xpurt; torch.ones(1, device='xpu')",
        **{"XPURT_VIRTUAL_GPU": "strict", "XPURT_MAPPING": "GPU", **environment},
    )
    assert ended.returncode != 0
    assert message in ended.stderr


def test_captured_and_compiled_work() -> None:
    assert with_memory(
        """
        xpurt.set_kernel_policy("auto")
        @torch.compile
        def both(x): return (x * 2).tanh().sum()
        x = torch.ones(1000, device="xpu")
        torch.testing.assert_close(both(x).cpu(), (torch.ones(1000) * 2).tanh().sum())
        print("same")
        """
    ) == ["same"]
