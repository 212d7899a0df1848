"""Threads under AUTO: they end, and their numbers are those of CPU tensors.

Each program runs in a process of its own: a deadlock of C++ locks can't be ended.
"""

import pytest
from own_process import output

import xpurt

SECONDS = 6

HEAD = f"""
    import threading, time
    import torch, xpurt

    failed = []
    end = time.monotonic() + {SECONDS}

    def run(*bodies):
        def caught(body):
            try:
                body()
            except BaseException as error:
                failed.append(error)
        threads = [threading.Thread(target=caught, args=(body,)) for body in bodies]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failed:
            raise failed[0]
"""

OWN_TENSORS = """
    def body(elements):
        x = torch.zeros(elements, device="xpu")
        rounds = 0
        while time.monotonic() < end:
            x.view(-1, 64).add_(1)
            rounds += 1
        assert x.cpu().unique().tolist() == [rounds]

    run(lambda: body(1 << 20), *[lambda: body(4096)] * 3)
    print("done")
"""

SHARED_INPUTS = """
    shared = [torch.full((n,), 2.0, device="xpu") for n in (1 << 20, 4096, 65536)]

    def body():
        rounds = 0
        while time.monotonic() < end:
            x = shared[rounds % 3]
            y = x * 3 + x.view(-1, 64).sum() * 0
            rounds += 1
        assert y.cpu().unique().tolist() == [6.0]

    run(*[body] * 4)
    print("done")
"""

STREAMS = """
    stream = torch.xpu.Stream()
    shared = torch.xpu.Stream()
    shared.sycl_queue

    def body(stream):
        with torch.xpu.stream(stream):
            x = torch.zeros(65536, device="xpu")
            rounds = 0
            while time.monotonic() < end:
                x.view(-1, 64).add_(1)
                rounds += 1
                stream.query()
                if rounds % 50 == 0:
                    stream.synchronize()
            assert x.cpu().unique().tolist() == [rounds]

    run(*[lambda each=each: body(each) for each in (stream, stream, shared, shared)])
    print("done")
"""


@pytest.fixture(autouse=True)
def two_devices() -> None:
    if not any(device.kind == "gpu" for device in xpurt.physical_devices()):
        pytest.skip("AUTO needs two devices: the virtual GPU is switched off")


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("body", "learn"),
    [
        (OWN_TENSORS, "1"),
        (SHARED_INPUTS, "0"),
        (STREAMS, "1"),
        pytest.param(OWN_TENSORS, "0", marks=pytest.mark.slow),
        pytest.param(SHARED_INPUTS, "1", marks=pytest.mark.slow),
        pytest.param(STREAMS, "0", marks=pytest.mark.slow),
    ],
)
def test_four_threads_end(body: str, learn: str) -> None:
    assert output(HEAD + body, XPURT_MAPPING="AUTO", XPURT_LEARN=learn) == "done"
