"""A random program of threads on xpu, compared with the same program on CPU tensors.

Run as a program: ``python threads_program.py SEED SECONDS ROUNDS [SWITCH ...]``. Each
round takes the next seed. Each thread has a pool of pairs: a tensor on xpu, and one on
the CPU that every step changes in the same way. Many tensors are views of others, or other tensors on the same storage. All
threads read some shared pairs, and they send each other pairs. Values are whole numbers
below `MODULUS`, on which every op here is exact in float32.

Switches:
  disjoint   threads write to disjoint rows of one tensor
  inner      storages that begin inside of another storage
  faults     the virtual GPU fails half-way. Threads make anew what is lost.
"""

import faulthandler
import queue
import random
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import NamedTuple

import torch
from torch.nn.parallel import comm

import xpurt
from xpurt.testing import fail_virtual_gpu

MODULUS = 251.0
THREADS = 4
MOST = 12  # pairs of a pool
SIZES = (64, 64, 4096, 4096, 65536)  # elements; the sum of the values is exact
LARGE = 1 << 20
PATIENCE = 240  # seconds that the threads may take to end: then all stacks are printed

# What an error of a device that failed says.
OF_A_FAULT = ("failed", "lost", "could not be submitted")


class Pair(NamedTuple):
    cpu: torch.Tensor
    xpu: torch.Tensor


class Message(NamedTuple):
    pair: Pair
    ready: torch.Event


class Program:
    """What the threads have in common."""

    def __init__(self, seed: int, seconds: float, switches: set[str]) -> None:
        self.seed = seed
        self.end = time.monotonic() + seconds
        self.switches = switches
        self.mailbox: queue.Queue[Message] = queue.Queue(maxsize=8)
        self.errors: list[str] = []
        self.steps = 0
        self.fault: threading.Event = threading.Event()
        self.shared = [
            new_pair(random.Random(seed + i), n) for i, n in enumerate(SIZES)
        ]
        rows = torch.zeros(THREADS, 4096)
        self.rows = Pair(rows, rows.to("xpu"))
        torch.xpu.synchronize()

    def run(self, body: Callable[[], None]) -> None:
        try:
            body()
        except BaseException:  # to be reported, whatever it is
            self.errors.append(traceback.format_exc())
            self.end = 0


def new_pair(rng: random.Random, elements: int) -> Pair:
    cpu = (torch.arange(elements, dtype=torch.float32) * rng.randrange(1, 99)) % MODULUS
    return Pair(cpu, cpu.clone().to("xpu"))


class Thread:
    def __init__(self, program: Program, number: int) -> None:
        self.program = program
        self.number = number
        self.rng = random.Random(f"{program.seed} {number}")
        self.pool: list[Pair] = []
        self.log: list[str] = []

    # Which tensors.

    def pick(self) -> Pair:
        if not self.pool:
            self.pool.append(new_pair(self.rng, self.rng.choice(SIZES)))
        return self.rng.choice(self.pool)

    def readable(self) -> Pair:
        if self.program.fault.is_set() or self.rng.random() < 0.7:
            return self.pick()
        return self.rng.choice(self.program.shared)

    def keep(self, cpu: torch.Tensor, xpu: torch.Tensor) -> None:
        assert cpu.shape == xpu.shape, (cpu.shape, xpu.shape)
        self.pool.append(Pair(cpu, xpu))
        if len(self.pool) > MOST:
            self.pool.pop(self.rng.randrange(MOST))

    def both(
        self, function: Callable[[torch.Tensor], torch.Tensor], pair: Pair
    ) -> None:
        self.keep(function(pair.cpu), function(pair.xpu))

    # Steps.

    def write(self) -> None:
        pair, by = self.pick(), self.rng.randrange(1, 9)
        for each in pair:
            each.add_(by).remainder_(MODULUS)

    def scale(self) -> None:
        pair, by = self.pick(), self.rng.randrange(2, 5)
        for each in pair:
            each.mul_(by).remainder_(MODULUS)

    def write_rows(self) -> None:
        pair = self.pick()
        if pair.cpu.is_contiguous() and pair.cpu.numel() % 64 == 0:
            for each in pair:
                each.view(-1, 64).add_(1).remainder_(MODULUS)

    def compute(self) -> None:
        self.both(lambda x: (x * 3 + 1).remainder(MODULUS), self.readable())

    def combine(self) -> None:
        one, other = self.readable(), self.readable()
        if one.cpu.numel() == other.cpu.numel():
            made = [
                (a + b.reshape(a.shape)).remainder_(MODULUS)
                for a, b in zip(one, other, strict=True)
            ]
            self.keep(*made)

    def add_into(self) -> None:
        one, other = self.pick(), self.readable()
        if one.cpu.numel() == other.cpu.numel():
            values = [
                b.reshape(a.shape).clone() for a, b in zip(one, other, strict=True)
            ]
            for a, b in zip(one, values, strict=True):
                a.copy_(b)

    def product(self) -> None:
        pair = self.readable()
        if pair.cpu.numel() % 64 == 0 and pair.cpu.numel() <= 4096:
            self.both(
                lambda x: (x.reshape(-1, 64) @ x.reshape(-1, 64).T).remainder(MODULUS),
                pair,
            )

    def large(self) -> None:
        """Large enough to be divided between the devices."""
        pair = new_pair(self.rng, LARGE)
        for each in pair:
            each.view(-1, 64).add_(1).remainder_(MODULUS)
        self.same((pair.xpu * 2).cpu(), pair.cpu * 2)

    def view(self) -> None:
        pair = self.pick()
        size = pair.cpu.shape[0] if pair.cpu.dim() else 0
        if size < 4:
            return
        first = self.rng.randrange(size // 2)
        step = self.rng.choice((1, 1, 2))
        self.both(lambda x: x[first : first + size // 2 : step], pair)

    def transposed(self) -> None:
        pair = self.pick()
        if pair.cpu.is_contiguous() and pair.cpu.numel() % 64 == 0:
            self.both(lambda x: x.view(-1, 64).t(), pair)

    def on_the_same_storage(self) -> None:
        pair = self.pick()
        made = []
        for each in pair:
            tensor = torch.empty(0, device=each.device)
            tensor.set_(
                each.untyped_storage(), each.storage_offset(), each.shape, each.stride()
            )
            made.append(tensor)
        self.keep(*made)

    def inner_storage(self) -> None:
        pair = self.pick()
        large = pair.cpu.is_contiguous() and pair.cpu.numel() >= 64
        if "inner" not in self.program.switches or not large:
            return
        made = []
        for each in pair:
            # Elements of this tensor alone: others may be another thread's.
            begin = each.storage_offset() * each.itemsize + 28
            tensor = torch.empty(0, device=each.device)
            made.append(tensor.set_(each.untyped_storage()[begin:]))
        self.keep(*[each[:32] for each in made])

    def dlpack(self) -> None:
        pair = self.pick()
        whole = pair.cpu.nbytes == pair.cpu.untyped_storage().nbytes()
        if "inner" in self.program.switches or whole:
            self.both(torch.from_dlpack, pair)

    def numpy(self) -> None:
        pair = self.pick()
        host = xpurt.share(pair.xpu)
        torch.xpu.synchronize()
        host.numpy()[...] += 1
        host.numpy()[...] %= MODULUS
        pair.cpu.add_(1).remainder_(MODULUS)

    def from_numpy(self) -> None:
        """Bytes of the CPU as an xpu tensor, where the home device reads them."""
        cpu = new_pair(self.rng, 64).cpu
        shared = cpu.clone()
        self.keep(cpu, xpurt.share(shared))

    def change_stream(self) -> None:
        before = torch.xpu.current_stream()
        after = torch.xpu.Stream()
        after.wait_stream(before)
        torch.xpu.set_stream(after)
        for pair in self.pool:
            pair.xpu.record_stream(after)
        if self.rng.random() < 0.2:
            assert after.sycl_queue is not None

    def event(self) -> None:
        event = torch.xpu.current_stream().record_event()
        event.query()
        if self.rng.random() < 0.5:
            event.synchronize()
            assert event.query()

    def query(self) -> None:
        torch.xpu.current_stream().query()

    def send(self) -> None:
        """A tensor of its own, for any thread."""
        pair = self.pick()
        mine = Pair(pair.cpu.clone(), pair.xpu.clone())
        ready = torch.xpu.current_stream().record_event()
        with suppress(queue.Full):
            self.program.mailbox.put_nowait(Message(mine, ready))

    def receive(self) -> None:
        try:
            message = self.program.mailbox.get_nowait()
        except queue.Empty:
            return
        if self.program.fault.is_set():
            return  # what the other thread computed may be lost
        torch.xpu.current_stream().wait_event(message.ready)
        message.pair.xpu.record_stream(torch.xpu.current_stream())
        self.keep(*message.pair)

    def pinned(self) -> None:
        pair = self.pick()
        values = (torch.arange(pair.cpu.numel()) % 97).float().reshape(pair.cpu.shape)
        pair.cpu.copy_(values)
        pair.xpu.copy_(values.pin_memory(), non_blocking=True)

    def backward(self) -> None:
        pair = self.readable()
        weights = [torch.full((1,), 2.0, device=x.device) for x in pair]
        for x, weight in zip(pair, weights, strict=True):
            # `data` has a version of its own: another thread may write to other rows.
            (x.data * weight.requires_grad_()).sum().backward()
        grads = [weight.grad for weight in weights]
        assert grads[0] is not None
        assert grads[1] is not None
        self.same(grads[1].cpu(), grads[0])

    def collective(self) -> None:
        pair = self.readable()
        if pair.cpu.dim() == 0 or pair.cpu.shape[0] < 2:
            return
        count = torch.xpu.device_count()
        devices = [i % count for i in range(2)]
        parts = comm.scatter(pair.xpu, devices)
        self.same(comm.gather(parts, destination=0).cpu(), pair.cpu)
        self.same(comm.broadcast(pair.xpu, [0])[0].cpu(), pair.cpu)

    def total(self) -> None:
        pair = self.readable()
        self.same(pair.xpu.sum().cpu(), pair.cpu.sum())

    def check(self) -> None:
        pair = self.readable()
        self.same(pair.xpu.cpu(), pair.cpu)

    def forget(self) -> None:
        if self.pool:
            self.pool.pop(self.rng.randrange(len(self.pool)))
        if self.rng.random() < 0.05:
            torch.xpu.empty_cache()

    def synchronize(self) -> None:
        torch.xpu.synchronize()

    def rows_of_all(self) -> None:
        if "disjoint" in self.program.switches:
            self.both(lambda x: x[self.number], self.program.rows)

    # The program.

    def same(self, found: torch.Tensor, expected: torch.Tensor) -> None:
        if torch.equal(found, expected):
            return
        wrong = (found != expected).reshape(-1).nonzero().reshape(-1)
        raise AssertionError(
            f"seed {self.program.seed}, thread {self.number}, stream "
            f"{torch.xpu.current_stream()}: {len(wrong)} of {expected.numel()} numbers "
            f"are wrong, from {wrong[0]} to {wrong[-1]}: found "
            f"{found.reshape(-1)[wrong[0]]}, expected {expected.reshape(-1)[wrong[0]]}; "
            f"last steps: {' '.join(self.log[-40:])}"
        )

    def preference(self) -> AbstractContextManager[object]:
        chance = self.rng.random()
        if chance < 0.1:
            return xpurt.prefer("GPU")
        return xpurt.prefer("CPU") if chance < 0.2 else nullcontext()

    def run(self) -> None:
        torch.xpu.set_stream(torch.xpu.Stream())
        while time.monotonic() < self.program.end:
            step = self.rng.choice(STEPS)
            self.log.append(step.__name__)
            try:
                with self.preference():
                    step(self)
            except RuntimeError as error:
                self.begin_again(error)
            self.program.steps += 1
        for pair in self.pool:
            try:
                self.same(pair.xpu.cpu(), pair.cpu)
            except RuntimeError as error:
                self.begin_again(error)

    def begin_again(self, error: RuntimeError) -> None:
        """After a fault of the device, whose results are lost."""
        known = any(text in str(error) for text in OF_A_FAULT)
        if not (self.program.fault.is_set() and known):
            raise error
        self.pool.clear()
        torch.xpu.set_stream(torch.xpu.Stream())


STEPS: list[Callable[[Thread], None]] = [
    *[Thread.write, Thread.scale, Thread.write_rows, Thread.compute] * 3,
    *[Thread.combine, Thread.add_into, Thread.product, Thread.check] * 2,
    *[Thread.view, Thread.transposed, Thread.on_the_same_storage] * 2,
    *[Thread.inner_storage, Thread.dlpack, Thread.numpy, Thread.from_numpy],
    *[Thread.change_stream, Thread.event, Thread.query, Thread.send, Thread.receive],
    *[Thread.pinned, Thread.backward, Thread.collective, Thread.total, Thread.large],
    *[Thread.forget, Thread.synchronize, Thread.rows_of_all],
]


def main(seed: int, seconds: float, switches: set[str]) -> None:
    faulthandler.dump_traceback_later(seconds + PATIENCE, exit=True)
    program = Program(seed, seconds, switches)
    threads = [
        threading.Thread(target=program.run, args=(Thread(program, i).run,))
        for i in range(THREADS)
    ]
    for thread in threads:
        thread.start()
    if "faults" in switches:
        time.sleep(seconds / 2)
        program.fault.set()
        fail_virtual_gpu(running=seed % 2 == 1)
    for thread in threads:
        thread.join()
    if program.errors:
        sys.exit("\n".join(program.errors))
    print(f"seed {seed}: {program.steps} steps", flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    for round_ in range(int(sys.argv[3])):
        main(int(sys.argv[1]) + round_, float(sys.argv[2]), set(sys.argv[4:]))
    faulthandler.cancel_dump_traceback_later()
