"""The order in which threads take the locks of csrc: see csrc/host/mutex.h."""

import re
from pathlib import Path

import pytest
from own_process import output, run

CSRC = Path(__file__).resolve().parents[1] / "xpurt" / "csrc"
BARE = re.compile(
    r"std::(?:\w+_)?mutex\b|std::condition_variable|#include <(?:shared_)?mutex>"
    r"|pthread_mutex|std::scoped_lock"
)


def without_comments(source: str) -> str:
    return re.sub(r"//.*", "", source)


def test_every_mutex_has_a_rank() -> None:
    found = [
        f"{path.relative_to(CSRC)}: {use}"
        for path in sorted(CSRC.rglob("*"))
        if path.suffix in {".h", ".cpp"}
        if path.relative_to(CSRC).as_posix() not in {"host/mutex.h", "precompiled.h"}
        for use in BARE.findall(without_comments(path.read_text()))
    ]
    assert found == []


def ranks() -> list[str]:
    text = (CSRC / "host" / "mutex.h").read_text()
    enumeration = re.search(r"enum class Rank[^{]*{(.*?)};", text, re.DOTALL)
    assert enumeration is not None
    return re.findall(r"^\s*(\w+),", enumeration[1], re.MULTILINE)


def test_every_rank_has_its_name_and_a_mutex() -> None:
    names = re.findall(r'"(\w+)"', (CSRC / "host" / "mutex.cpp").read_text())
    assert [name for name in names if name in ranks()] == ranks()
    sources = "".join(
        without_comments(path.read_text())
        for path in CSRC.rglob("*")
        if path.suffix in {".h", ".cpp"} and path.stem != "mutex"
    )
    unused = [name for name in ranks() if f"Rank::{name}" not in sources]
    assert unused == []


@pytest.mark.parametrize(
    ("held", "taken"),
    [
        ("stream", "scheduler"),
        ("stream", "replica_table"),
        ("replica_table", "scheduler"),
        ("memory", "memory"),
    ],
)
def test_a_lock_out_of_order_raises_with_both_names(held: str, taken: str) -> None:
    code = f"""
        from xpurt import _C
        try:
            _C.testing.take_locks(["worker"])
            _C.testing.take_locks(["{held}", "{taken}"])
        except RuntimeError as error:
            print(error, _C.locks_out_of_order())
        _C.testing.take_locks(["worker"])
    """
    ended = run(code, XPURT_CHECK_LOCKS="1")
    assert f"the lock `{taken}` is taken under the lock `{held}`" in ended.stdout
    assert ended.stdout.strip().endswith(" 1")
    assert f"xpurt: the lock `{taken}` is taken" in ended.stderr


@pytest.mark.parametrize(
    ("locks", "without_gil", "said"),
    [
        (["stream", "gil"], True, "the lock `gil` is taken under the lock `stream`"),
        (["kernel_build"], False, "`kernel_build` is taken under the lock `gil`"),
    ],
)
def test_the_interpreter_lock_has_a_place(
    locks: list[str], without_gil: bool, said: str
) -> None:
    code = f"""
        from xpurt import _C
        try:
            _C.testing.take_locks({locks}, without_gil={without_gil})
        except RuntimeError as error:
            print(error)
    """
    assert said in run(code, XPURT_CHECK_LOCKS="1").stdout


def test_locks_in_order_are_silent() -> None:
    code = f"""
        from xpurt import _C
        _C.testing.take_locks({ranks()[:16]}, without_gil=True)
        print("done")
    """
    assert output(code, XPURT_CHECK_LOCKS="1") == "done"


def test_without_the_variable_nothing_is_checked() -> None:
    code = """
        from xpurt import _C
        _C.testing.take_locks(["stream", "scheduler"])
        print(_C.locks_out_of_order())
    """
    assert output(code, XPURT_CHECK_LOCKS="") == "0"


def test_processes_of_tests_are_checked() -> None:
    ended = run("from xpurt import _C\n_C.testing.take_locks(['worker', 'stream'])")
    assert "the lock `stream` is taken under the lock `worker`" in ended.stderr
