"""The models of tests/kernels/test_models.py train on coarse-grained SVM, too."""

import json

import pytest
from kernels.model_zoo import CASES
from own_process import run

PROGRAM = """
import sys
sys.path.insert(0, {tests!r})
from usm_on_svm.train_models import main
sys.exit(main([{name!r}]))
"""


# Their kernels have to be built for this device.
@pytest.mark.rest
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name == "gpt" else [pytest.mark.slow])
        for name in CASES
    ],
)
def test_a_model_trains_to_the_losses_of_the_cpu(
    name: str, pytestconfig: pytest.Config
) -> None:
    if name in ("bert", "vit"):
        pytest.importorskip("transformers")
    tests = str(pytestconfig.rootpath / "tests")
    child = run(
        PROGRAM.format(tests=tests, name=name),
        timeout=600,
        XPURT_VIRTUAL_GPU="svm",
        XPURT_MAPPING="GPU",
        XPURT_FALLBACK="error",
    )
    assert child.returncode == 0, child.stderr
    found = json.loads(child.stdout.splitlines()[-1])
    assert found["device"] == "xpurt virtual GPU (svm)"
    assert found["xpu"] == pytest.approx(found["cpu"], rel=1e-4)


def test_operands_without_elements_have_no_address() -> None:
    child = run(
        """
        import json, torch
        x = torch.zeros(0, 3, device="xpu", requires_grad=True)
        weight = torch.ones(3, device="xpu", requires_grad=True)
        torch.nn.functional.rms_norm(x, (3,), weight).sum().backward()
        table = torch.zeros(2, device="xpu")
        for mask in ([True, False], [False, False]):  # by one kernel
            table.index_put_((torch.tensor(mask, device="xpu"),),
                             torch.ones((), device="xpu"), accumulate=True)
        print(json.dumps([weight.grad.tolist(), table.tolist()]))
        """,
        XPURT_VIRTUAL_GPU="svm",
        XPURT_MAPPING="GPU",
        XPURT_KERNEL_POLICY="sycl",
    )
    assert child.returncode == 0, child.stderr
    assert json.loads(child.stdout) == [[0, 0, 0], [1, 0]]


def test_pinned_memory_and_a_fault_of_a_kernel_reach_the_host() -> None:
    """Copies take pinned memory as it is; a kernel writes the word of a fault there."""
    child = run(
        """
        import json, torch, xpurt
        pinned = torch.arange(1000.0).pin_memory("xpu")
        there = (pinned.to("xpu", non_blocking=True) + 1).to("cpu")
        table = torch.zeros(4, 2, device="xpu")
        try:
            torch.nn.functional.embedding(torch.tensor([9], device="xpu"), table)
            torch.xpu.synchronize()
            error = ""
        except (IndexError, RuntimeError) as reason:
            error = f"{type(reason).__name__}: {reason}"
        print(json.dumps([pinned.is_pinned(), there.sum().item(), error]))
        """,
        XPURT_VIRTUAL_GPU="svm",
        XPURT_MAPPING="GPU",
        XPURT_KERNEL_POLICY="sycl",
    )
    assert child.returncode == 0, child.stderr
    pinned, total, error = json.loads(child.stdout.splitlines()[-1])
    assert pinned
    assert total == 500500
    assert "out of range" in error
