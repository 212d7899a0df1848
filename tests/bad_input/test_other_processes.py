"""xpu tensors that other processes use, or that are saved."""

import copy
import pickle
from multiprocessing.reduction import ForkingPickler
from pathlib import Path

import pytest
import torch
from own_process import output

import xpurt

REFUSED = r'cannot be shared with another process: .* mapping "CPU", or share'


def can_share(device: torch.device) -> bool:
    kinds = {"cpu"}
    found = xpurt.physical_devices()
    where = xpurt.where(torch.empty(1, device=device))
    if xpurt.get_xpu_mapping() == "AUTO":
        return {each.kind for each in found} == kinds
    return all(each.kind in kinds for each in found if each.filter_string in where)


def test_pickling_and_copying(xpu: torch.device) -> None:
    tensor = torch.arange(4.0, device=xpu)
    for made in (pickle.loads(pickle.dumps(tensor)), copy.deepcopy(tensor)):
        assert made.device == xpu
        assert made.tolist() == [0, 1, 2, 3]
        assert made.data_ptr() != tensor.data_ptr()


def test_shared_memory(xpu: torch.device) -> None:
    tensor = torch.arange(6.0, device=xpu)
    part = tensor[2:4]
    module = torch.nn.Linear(3, 2).to(xpu)
    assert not tensor.is_shared()
    if not can_share(xpu):
        for share in (tensor.share_memory_, module.share_memory):
            with pytest.raises(RuntimeError, match=REFUSED):
                share()
        with pytest.raises(RuntimeError, match=REFUSED):
            ForkingPickler.dumps(tensor)
        assert not tensor.is_shared()
        assert (tensor + 1).tolist() == [1, 2, 3, 4, 5, 6]
        return
    assert tensor.mul_(2).share_memory_() is tensor
    assert tensor.is_shared()
    assert part.is_shared()  # views have the same memory
    part.add_(1)
    assert tensor.tolist() == [0, 2, 5, 7, 8, 10]
    place = tensor.data_ptr()
    assert tensor.share_memory_().data_ptr() == place  # it is there already
    with pytest.raises(RuntimeError, match="not resizable"):
        tensor.resize_(1000)
    assert module.share_memory() is module
    assert all(each.is_shared() for each in module.parameters())
    assert module(tensor.view(2, 3)).shape == (2, 2)


def test_memory_without_elements(xpu: torch.device) -> None:
    empty = torch.empty(0, 3, device=xpu)
    assert empty.share_memory_().shape == (0, 3) if can_share(xpu) else True
    made = pickle.loads(ForkingPickler.dumps(torch.empty(0, 3, device=xpu)))
    assert (made.shape, made.device) == ((0, 3), xpu)


@pytest.mark.mappings("CPU")
def test_what_cannot_move(xpu: torch.device) -> None:
    tensor = torch.ones(3, device=xpu)
    host = xpurt.share(tensor)
    with pytest.raises(RuntimeError, match=r"stay where it is.*tensor\.clone\(\)"):
        tensor.share_memory_()
    tensor += 1
    torch.xpu.synchronize()
    assert host.tolist() == [2, 2, 2]
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf"):
        ForkingPickler.dumps(torch.ones(3, device=xpu, requires_grad=True) * 2)
    # A CPU tensor in shared memory, and its xpu form.
    shared = torch.ones(3).share_memory_()
    assert xpurt.share(shared).is_shared()


# Two processes train one network, as in Hogwild, and exchange tensors.
HOGWILD = """
import torch, xpurt
import torch.multiprocessing as mp

def steps(model, count):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for _ in range(count):
        optimizer.zero_grad()
        model(torch.ones(1, 2, device="xpu")).sum().backward()
        optimizer.step()
    torch.xpu.synchronize()

def child(model, queue, answers):
    steps(model, 2)
    answers.put(model.weight.tolist())
    whole, part, parameter, host = (queue.get(timeout=60) for _ in range(4))
    answers.put((type(parameter).__name__, parameter.requires_grad, str(whole.device),
                 str(host.device), part.stride(), part.is_shared()))
    part.fill_(7)  # a view of the other tensor's memory
    answers.put(whole.tolist())
    answers.put(whole)
    queue.get(timeout=60)  # as with CPU tensors, the sender lives until it has arrived

if __name__ == "__main__":
    model = torch.nn.Linear(2, 1, bias=False).to("xpu")
    with torch.no_grad():
        model.weight.zero_()
    model.share_memory()
    spawn = mp.get_context("spawn")
    queue, answers = spawn.Queue(), spawn.Queue()
    process = spawn.Process(target=child, args=(model, queue, answers))
    process.start()
    print(answers.get(timeout=120), model.weight.tolist())
    steps(model, 1)
    x = torch.zeros(2, 3, device="xpu")
    for sent in (x, x[:, 1], torch.nn.Parameter(x[0].clone()), torch.ones(2)):
        queue.put(sent)
    for _ in range(2):
        print(answers.get(timeout=60))
    back = answers.get(timeout=60)
    queue.put("end")
    print(x.tolist(), back.data_ptr() == x.data_ptr(), model.weight.tolist())
    process.join(60)
    print(process.exitcode)
"""


@pytest.mark.rest
def test_two_processes_train_one_network(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(HOGWILD)
    code = f"import runpy; runpy.run_path({str(program)!r}, run_name='__main__')"
    assert output(code, timeout=240).splitlines() == [
        "[[-1.0, -1.0]] [[-1.0, -1.0]]",
        "('Parameter', True, 'xpu:0', 'cpu', (3,), True)",
        "[[0.0, 7.0, 0.0], [0.0, 7.0, 0.0]]",
        "[[0.0, 7.0, 0.0], [0.0, 7.0, 0.0]] True [[-1.5, -1.5]]",
        "0",
    ]
