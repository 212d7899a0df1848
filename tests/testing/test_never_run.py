"""The report of tests that skip themselves in each form, in a pytest of its own."""

import pytest
from never_run import NeverRun

TESTS = """
    import pytest

    @pytest.mark.parametrize("mapping", ["AUTO", "explicit"])
    def test_of_a_gpu(mapping):
        if mapping != "GPU":
            pytest.skip("only under the mapping GPU")

    @pytest.mark.parametrize("mapping", ["CPU", "GPU"])
    def test_of_a_mapping_that_is_run(mapping):
        if mapping != "GPU":
            pytest.skip("only under the mapping GPU")

    @pytest.mark.skipif(True, reason="needs AVX-512")
    def test_of_another_machine():
        pass

    @pytest.mark.skipif(True, reason="AVX2 runs above")
    def test_of_another_processor():
        pass

    @pytest.mark.skipif(True, reason="the time for more cases is over")
    def test_of_the_rest():
        pass

    @pytest.mark.xfail
    def test_that_fails():
        assert False
"""


def test_a_test_that_is_always_skipped_is_an_error(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(TESTS)
    result = pytester.runpytest_inprocess(plugins=[NeverRun()])
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(passed=1, skipped=6, xfailed=1)
    shown = [line for line in result.outlines if "only under the mapping GPU" in line]
    assert [line.partition(": ")[0] for line in shown if "::" in line] == [
        "test_a_test_that_is_always_skipped_is_an_error.py::test_of_a_gpu"
    ]


def test_without_one_the_run_passes(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(TESTS)
    result = pytester.runpytest_inprocess("-k", "not of_a_gpu", plugins=[NeverRun()])
    assert result.ret == pytest.ExitCode.OK
