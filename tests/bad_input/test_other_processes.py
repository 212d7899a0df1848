"""xpu tensors that are sent to another process, or saved."""

import copy
import pickle

import pytest
import torch
from own_process import output


def test_pickling_and_copying(xpu: torch.device) -> None:
    tensor = torch.arange(4.0, device=xpu)
    for made in (pickle.loads(pickle.dumps(tensor)), copy.deepcopy(tensor)):
        assert made.device == xpu
        assert made.tolist() == [0, 1, 2, 3]
        assert made.data_ptr() != tensor.data_ptr()


def test_a_queue_between_processes(tmp_path) -> None:  # type: ignore[no-untyped-def]
    program = tmp_path / "program.py"
    program.write_text(
        """
import torch, xpurt
import torch.multiprocessing as mp

def child(queue, answers, argument):
    for _ in range(4):
        got = queue.get(timeout=60)
        answers.put((type(got).__name__, str(got.device), got.requires_grad,
                     got.tolist()))
    answers.put(argument.sum().item())

if __name__ == "__main__":
    x = torch.arange(6.0, device="xpu").reshape(2, 3)
    spawn = mp.get_context("spawn")
    queue, answers = spawn.Queue(), spawn.Queue()
    process = spawn.Process(target=child, args=(queue, answers, x))
    process.start()
    for sent in (x, x[:, 1], torch.nn.Parameter(x[0].clone()), torch.ones(2)):
        queue.put(sent)
    for _ in range(5):
        print(answers.get(timeout=60))
    process.join(60)
    print(x.device, x.sum().item(), process.exitcode)
"""
    )
    code = f"import runpy; runpy.run_path({str(program)!r}, run_name='__main__')"
    assert output(code, timeout=120).splitlines() == [
        "('Tensor', 'xpu:0', False, [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]])",
        "('Tensor', 'xpu:0', False, [1.0, 4.0])",
        "('Parameter', 'xpu:0', True, [0.0, 1.0, 2.0])",
        "('Tensor', 'cpu', False, [1.0, 1.0])",
        "15.0",
        "xpu:0 15.0 0",
    ]


def test_memory_that_is_asked_to_be_shared(xpu: torch.device) -> None:
    from multiprocessing.reduction import ForkingPickler

    tensor = torch.ones(3, device=xpu)
    with pytest.raises(RuntimeError, match=r"share tensor\.cpu\(\)"):
        ForkingPickler.dumps(tensor.untyped_storage())
    with pytest.raises(RuntimeError, match=r"Send tensor\.detach\(\)"):
        ForkingPickler.dumps(tensor.requires_grad_() * 2)
    # The device still has its storage.
    assert tensor.untyped_storage().device == xpu
    assert (tensor + 1).tolist() == [2, 2, 2]
