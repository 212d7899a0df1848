"""An AUTO stream is one sequence of work on several queues."""

import threading

import pytest
import torch
from own_process import output

from auto.choices import Choices
from xpurt import _C


def slow(stream: torch.Stream, seconds: float) -> None:
    """Work on the home device's queue."""
    _C._submit_sleep(stream.stream_id, stream.device_index, seconds)


def test_order_is_kept_when_devices_alternate(choices: Choices) -> None:
    x = torch.zeros(1000, device="xpu")
    expected = torch.zeros(1000)
    for i in range(40):
        choices.only("gpu" if i % 2 else "cpu")
        x = x * 0.5 + i
        expected = expected * 0.5 + i
    torch.testing.assert_close(x.cpu(), expected)


def test_a_gpu_kernel_waits_for_earlier_work_at_home(choices: Choices) -> None:
    stream = torch.xpu.current_stream()
    x = torch.ones(10, device="xpu")
    slow(stream, 0.1)
    x.add_(1)  # queued at home, behind that
    choices.gpu()
    assert (x * 3).cpu().tolist() == [6.0] * 10


def test_a_copy_that_another_stream_made_is_waited_for(choices: Choices) -> None:
    # Both streams only read, so that nothing else orders them.
    x = torch.full((1 << 20,), 2.0, device="xpu")
    torch.xpu.synchronize()
    one, other = torch.xpu.Stream(), torch.xpu.Stream()
    choices.gpu()
    with torch.xpu.stream(one):
        slow(one, 0.2)
        first = x * 2  # the copy to the GPU is behind the sleep
    with torch.xpu.stream(other):
        second = x * 3
    torch.xpu.synchronize()
    assert second.cpu().unique().tolist() == [6.0]
    assert first.cpu().unique().tolist() == [4.0]


def test_two_streams_write_to_halves_of_one_storage(choices: Choices) -> None:
    x = torch.zeros(2, 1 << 16, device="xpu")
    torch.xpu.synchronize()
    one, other = torch.xpu.Stream(), torch.xpu.Stream()
    for kinds in (("gpu", "cpu"), ("cpu", "gpu"), ("gpu", "gpu")):
        x.zero_()
        torch.xpu.synchronize()
        choices.only(kinds[0])
        with torch.xpu.stream(one):
            slow(one, 0.05)
            x[0].add_(1)
        choices.only(kinds[1])
        with torch.xpu.stream(other):
            x[1].add_(2)
        torch.xpu.synchronize()
        assert x.cpu().sum(1).tolist() == [1 << 16, 2 << 16], kinds


def test_events_are_timed_wherever_the_work_ran(choices: Choices) -> None:
    begin = torch.xpu.Event(enable_timing=True)
    end = torch.xpu.Event(enable_timing=True)
    x = torch.ones(1000, device="xpu")
    begin.record()
    choices.gpu()
    for _ in range(5):
        x = x * 1.5
    end.record()
    end.synchronize()
    assert begin.elapsed_time(end) > 0


def test_a_queue_that_was_handed_out_takes_part_in_the_order(choices: Choices) -> None:
    import xpurt.streams

    stream = torch.xpu.Stream()
    with torch.xpu.stream(stream):
        x = torch.zeros(4, device="xpu")
        queue = xpurt.streams.sycl_queue(stream)
        choices.gpu()
        y = x + 1  # the stream's last work is on the GPU
        slow(stream, 0.0)
        done = stream.record_event()
        done.synchronize()
        queue.wait()
        assert y.cpu().tolist() == [1.0] * 4
    assert stream.query()


def test_threads_with_streams_of_their_own(choices: Choices) -> None:
    shared = torch.arange(4096.0).to("xpu")
    torch.xpu.synchronize()
    wrong: list[str] = []

    def work(seed: int) -> None:
        try:
            with torch.xpu.stream(torch.xpu.Stream()):
                x, expected = shared + seed, torch.arange(4096.0) + seed
                for i in range(30):
                    choices.only("gpu" if (i * 7 + seed) % 3 else "cpu")
                    x = x * 0.5 + shared * 0.25
                    expected = expected * 0.5 + torch.arange(4096.0) * 0.25
                    if i % 10 == seed:
                        x = torch.flip(x, [0]).flip(0)
                torch.testing.assert_close(x.cpu(), expected)
        except BaseException as error:
            wrong.append(repr(error))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert wrong == []


@pytest.mark.parametrize("handed_out", [False, True])
def test_a_stream_waits_for_what_another_one_wrote_elsewhere(handed_out: bool) -> None:
    code = f"""
        import torch, xpurt
        x = torch.full((4096,), 2.0, device="xpu")
        one, other = torch.xpu.Stream(), torch.xpu.Stream()
        if {handed_out}:
            assert other.sycl_queue is not None
        torch.xpu.synchronize()
        with torch.xpu.stream(one), xpurt.prefer("GPU"):
            x.add_(1)  # slow
        with torch.xpu.stream(other), xpurt.prefer("CPU"):
            tripled = x * 3
        torch.xpu.synchronize()
        print(tripled.cpu().unique().tolist())
    """
    found = output(code, XPURT_MAPPING="AUTO", XPURT_VIRTUAL_GPU_DELAY_US="300000")
    assert found == "[9.0]"
