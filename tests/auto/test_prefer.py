"""`prefer()`: the user's word in AUTO's choice."""

import threading

import pytest
import torch

import xpurt
from auto.choices import Choices, calls
from xpurt import _C


def ran_on(function) -> str:
    xpurt.op_report()
    before = {kind: calls("aten::tanh", kind) for kind in ("cpu", "gpu")}
    function()
    (kind,) = (k for k in before if calls("aten::tanh", k) > before[k])
    return kind


@pytest.fixture
def x(choices: Choices) -> torch.Tensor:
    choices.cpu()
    return torch.ones(64, device="xpu")


def test_nesting(x: torch.Tensor) -> None:
    assert ran_on(x.tanh) == "cpu"
    with xpurt.prefer("GPU"):
        assert ran_on(x.tanh) == "gpu"
        with xpurt.prefer("cpu"):
            assert ran_on(x.tanh) == "cpu"
        assert ran_on(x.tanh) == "gpu"
    assert ran_on(x.tanh) == "cpu"


def test_an_exception_ends_it(x: torch.Tensor) -> None:
    with pytest.raises(KeyError), xpurt.prefer("gpu"):
        raise KeyError
    assert ran_on(x.tanh) == "cpu"


def test_it_is_the_thread_s_own(x: torch.Tensor) -> None:
    found = []
    with xpurt.prefer("gpu"):
        thread = threading.Thread(target=lambda: found.append(ran_on(x.tanh)))
        thread.start()
        thread.join()
    assert found == ["cpu"]


def test_a_copy_behind_pending_work(x: torch.Tensor) -> None:
    copied = torch.zeros_like(x)
    torch.xpu.synchronize()
    stream = torch.xpu.current_stream()
    _C._submit_sleep(stream.stream_id, stream.device_index, 0.05)
    before = calls("aten::copy_", "gpu")
    with xpurt.prefer("gpu"):
        copied.copy_(x)
    assert calls("aten::copy_", "gpu") == before + 1
    assert copied.tolist() == [1.0] * 64


def test_what_has_no_kernel_there_runs_where_it_can(x: torch.Tensor) -> None:
    with xpurt.prefer("gpu"):
        y = torch.cumsum(x.tanh(), 0)
    torch.testing.assert_close(y.cpu(), torch.cumsum(torch.ones(64).tanh(), 0))


def test_backward_of_what_was_made_under_it(x: torch.Tensor) -> None:
    leaf = x.clone().requires_grad_()
    with xpurt.prefer("gpu"):
        loss = (leaf.tanh() * 3).sum()
    loss.backward()
    expected = 3 * (1 - torch.ones(64).tanh() ** 2)
    torch.testing.assert_close(leaf.grad.cpu(), expected)


def test_errors(x: torch.Tensor) -> None:
    with pytest.raises(xpurt.MappingError, match="one of"), xpurt.prefer("tpu"):
        pass
    with (
        pytest.raises(xpurt.MappingError, match="has devices of kind"),
        xpurt.prefer("accelerator"),
    ):
        pass


def test_a_backward_has_the_preference_of_the_thread_that_asked(
    x: torch.Tensor,
) -> None:
    leaf = x.clone().requires_grad_()
    loss = leaf.sin().sum()
    before = calls("aten::cos", "gpu")
    with xpurt.prefer("gpu"):
        loss.backward()
    assert calls("aten::cos", "gpu") == before + 1


def test_it_costs_nothing_once_it_is_over(x: torch.Tensor) -> None:
    """Small ops check for a preference only while some thread has one."""

    def nested() -> None:
        with xpurt.prefer("gpu"):
            assert _C.testing.preferences_held() == 1
            with xpurt.prefer("cpu"):
                assert (
                    _C.testing.preferences_held() == 1
                )  # of this thread, the inner one's
            found = []
            thread = threading.Thread(target=lambda: found.append(held_elsewhere(x)))
            thread.start()
            thread.join()
            assert found == [2]
            raise KeyError

    assert _C.testing.preferences_held() == 0
    with pytest.raises(KeyError):
        nested()
    assert _C.testing.preferences_held() == 0


def held_elsewhere(x: torch.Tensor) -> int:
    with xpurt.prefer("gpu"):
        x.tanh()
        return _C.testing.preferences_held()
