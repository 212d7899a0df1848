"""The error in a forked child, which never hangs. See also tests/xpu/test_fork.py."""

from own_process import output_to_the_end as output
from own_process import run_to_the_end as run

REFUSED = "Cannot re-initialize XPU in forked subprocess"


def test_every_way_in() -> None:
    code = """
    import os, sys, time
    import torch, xpurt
    x, c = torch.ones(4, 4, device="xpu"), torch.ones(4, 4)
    model = torch.nn.Linear(4, 4).to("xpu")
    model(x).sum().backward()
    stream, event = torch.xpu.Stream(), torch.xpu.Event()
    torch.xpu.synchronize()
    event.record()
    uses = dict(
        add=lambda: x + x, mm=lambda: x @ x, item=lambda: x.sum().item(),
        cpu=lambda: x.cpu(), to=lambda: c.to("xpu"), show=lambda: repr(x),
        view=lambda: x[0] + 1, write=lambda: x.fill_(1), copy=lambda: c.copy_(x),
        forward=lambda: model(x), backward=lambda: model(x).sum().backward(),
        empty=lambda: torch.empty(1, device="xpu"),
        share=lambda: xpurt.share(x), lend=lambda: xpurt.share(c),
        dlpack=lambda: torch.from_dlpack(x),
        wait=event.synchronize, query=event.query, record=event.record,
        finish=stream.synchronize, enter=lambda: stream.__enter__(),
        set_mapping=lambda: xpurt.set_xpu_mapping("CPU"),
        properties=lambda: torch.xpu.get_device_properties(0),
        memory=lambda: torch.xpu.mem_get_info(),
        accelerator=torch.accelerator.synchronize,
    )
    child = os.fork()
    if child == 0:
        for name, use in uses.items():
            try:
                use()
                print(name, "went through")
            except RuntimeError as error:
                if not str(error).startswith("Cannot re-initialize XPU"):
                    print(name, error)
        print("end", (c @ c).sum().item())
        sys.stdout.flush()
        os._exit(0)
    for _ in range(300):
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            break
        time.sleep(0.1)
    else:
        os.kill(child, 9)
    print(status, x.sum().item())
    """
    assert output(code).splitlines() == ["end 64.0", "0 16.0"]


def test_an_event_that_is_not_complete_is_not_waited_for() -> None:
    code = """
    import os, signal, torch
    from xpurt import _C
    stream = torch.xpu.Stream()
    _C._submit_sleep(stream.stream_id, 0, 3.0)
    event = stream.record_event()
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # kills a child that waits
        try:
            event.synchronize()
        except RuntimeError as error:
            os._exit(0 if "forked subprocess" in str(error) else 1)
        os._exit(2)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    assert output(code) == "0"


def test_workers_of_a_data_loader() -> None:
    code = """
    import torch, xpurt
    from torch.utils.data import DataLoader, Dataset
    bias = torch.ones(1, device="xpu")
    class Data(Dataset):
        def __init__(self, touches): self.touches = touches
        def __len__(self): return 8
        def __getitem__(self, i):
            item = torch.full((2,), float(i)) + torch.rand(2).mul(0)
            return item.to("xpu") + bias if self.touches else item
    def load(touches):
        loader = DataLoader(Data(touches), batch_size=4, num_workers=2, timeout=30,
                            multiprocessing_context="fork")
        return sum((batch.to("xpu") + bias).sum().item() for batch in loader)
    print(load(False))
    try:
        load(True)
    except RuntimeError as error:
        print("Cannot re-initialize XPU in forked subprocess" in str(error))
    print(load(False))
    """
    # PyTorch's own loader may print an error in a worker if that of the parent failed.
    ended = run(code, timeout=120)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.split() == ["72.0", "True", "72.0"]
