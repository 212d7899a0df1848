"""Threads are the first to write to a lazy copy, each to a row of its own."""

from own_process import output


def test_threads_write_to_rows_of_their_own() -> None:
    # In a process of its own: memory that is freed twice ends it.
    assert (
        output("""
        from concurrent.futures import ThreadPoolExecutor
        from threading import Barrier
        import torch, xpurt

        together = Barrier(4)

        def write(row):
            together.wait()
            row.add_(1)

        values = torch.arange(24.0).view(4, 6)
        with xpurt.lazy_copies(), ThreadPoolExecutor(4) as threads:
            for n in range(2000):
                side, other = ("cpu", "xpu") if n % 2 else ("xpu", "cpu")
                source = values.to(side).clone()
                copy = source.to(other)
                assert xpurt._C.is_lazy(copy)
                written, left = (source, copy) if n % 4 < 2 else (copy, source)
                list(threads.map(write, written.unbind()))
                assert left.tolist() == values.tolist()
                assert written.tolist() == (values + 1).tolist()
        print("each row was written")
    """)
        == "each row was written"
    )
