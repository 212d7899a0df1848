"""The pytest plugin, in a pytest of its own: it must not disturb the one that runs."""

import pytest

TESTS = """
    import pytest, torch

    kept = []

    def test_a_device(xpu):
        assert torch.ones(2, device=xpu).sum().item() == 2

    @pytest.fixture(scope="module")
    def for_the_module(xpu):
        return torch.ones(2, device=xpu)

    @pytest.fixture
    def for_the_test(xpu):
        return torch.ones(2, device=xpu)

    def test_fixtures_are_no_leak(for_the_module, for_the_test):
        local = for_the_module + for_the_test

    def test_leaks(xpu):
        kept.append(torch.ones(256, device=xpu))

    @pytest.mark.xpu_may_leak
    def test_may_leak(xpu):
        kept.append(torch.ones(2, device=xpu))

    def test_fails(xpu):
        local = torch.ones(2, device=xpu)
        assert local is None

    def test_a_failed_test_does_not_accuse_the_next_one(xpu):
        pass
"""


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return pytester.runpytest_subprocess(
        "-p", "pytest_xpurt", "--strict-markers", "-v", *arguments, timeout=120
    )


def test_pytest_starts_without_torch(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys

        def test_without_xpu():
            assert "pytest_xpurt" in sys.modules
            assert "torch" not in sys.modules
            assert "xpurt" not in sys.modules
        """
    )
    run(pytester).assert_outcomes(passed=1)


@pytest.mark.rest
def test_leaks_are_errors_of_the_test_that_leaves_them(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(TESTS)
    result = run(pytester, "--xpu-mapping", "CPU")
    result.assert_outcomes(passed=5, failed=1, errors=1)
    result.stdout.fnmatch_lines(
        ["*the test left 1 xpu storage of 1024 bytes alive*mark the test xpu_may_leak*"]
    )
    result.stdout.re_match_lines([r"ERROR .*::test_leaks\[CPU\].*"])


def test_each_mapping_is_a_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import torch, xpurt

        def test_count(xpu, record_property):
            print("COUNT", xpurt.get_xpu_mapping(), torch.xpu.device_count())
        """
    )
    result = run(pytester, "-s", "--xpu-mapping", "CPU", "--xpu-mapping", "explicit")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*COUNT CPU 1", "*COUNT explicit 2"])


@pytest.mark.parametrize(
    ("required", "outcome"), [((), "skipped"), (("--xpu-required",), "errors")]
)
def test_a_device_that_is_not_there_gives_the_reason(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    required: tuple[str, ...],
    outcome: str,
) -> None:
    monkeypatch.setenv("XPURT_VIRTUAL_GPU", "off")
    pytester.makepyfile("def test_gpu(xpu): pass")
    result = run(pytester, "-rs", "--xpu-mapping", "AUTO:gpu:7", *required)
    result.assert_outcomes(**{outcome: 1})
    result.stdout.fnmatch_lines(['*AUTO:gpu:7*there is no device "gpu:7"; found*'])
