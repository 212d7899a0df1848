"""Wrong results on xpu are found: each made-up op has one fault."""

import pytest
import torch
from fake_database import entries

from xpurt_tools.conformance.results import Result
from xpurt_tools.conformance.worker import check

ENTRIES = {entry.name: entry for entry in entries()}


def checked(name: str, dtype: str = "float32") -> Result:
    return check(ENTRIES[name], dtype, None, lambda where: None)


def test_a_right_op_passes(xpu: torch.device) -> None:
    result = checked("right")
    assert result.status == "passed", result.failures
    # Three samples, plain and strided; of the first one, gradients in other layouts,
    # and inputs permuted and expanded.
    assert result.trials == {"values": 9}
    assert sum(result.tiers.values()) > 0


@pytest.mark.parametrize(
    ("name", "variant", "said"),
    [
        ("wrong_by_one", "call", "not close"),
        ("errs_more", "call", "not close"),
        ("wrong_dtype", "call", "dtype torch.float64, not torch.float32"),
        ("stays_on_the_cpu", "call", "is on cpu, not xpu"),
        ("copies_a_view", "call", "shares memory with argument"),
        ("wrong_gradient", "call", "['gradient']"),
        (
            "takes_gradients_for_contiguous",
            "gradients laid out otherwise",
            "['gradient sent']['permuted'][0]",
        ),
        ("takes_inputs_for_contiguous", "inputs permuted", "['result']"),
        ("draws_anew", "call", "does not repeat itself after the same seed"),
        ("forgiving", "error", "the CPU raised ValueError (a vector), xpu:0 gave"),
    ],
)
def test_a_wrong_op_fails(
    xpu: torch.device, name: str, variant: str, said: str
) -> None:
    result = checked(name)
    assert result.status == "failed"
    assert {failure.variant for failure in result.failures} >= {variant}
    shown = result.failures[0]
    assert said in shown.message
    assert shown.index == 0
    assert "float32[" in shown.sample


def test_a_random_op_is_compared_but_for_its_values(xpu: torch.device) -> None:
    result = checked("draws")
    assert result.status == "passed", result.failures
    assert result.compared == "random"


@pytest.mark.parametrize("name", ["rounds_otherwise", "errs_as_the_cpu"])
def test_where_the_cpu_rounds_a_wider_type_is_the_measure(
    xpu: torch.device, name: str
) -> None:
    result = checked(name)
    assert result.status == "passed", result.failures
    assert result.compared == "wider"


def test_an_op_that_the_cpu_refuses_does_not_count(xpu: torch.device) -> None:
    result = checked("raises_on_the_cpu")
    assert result.status == "not on the CPU"
    assert not result.counts


def test_a_wrong_gradient_is_no_matter_of_integers(xpu: torch.device) -> None:
    assert checked("wrong_gradient", "int64").status == "passed"


def test_a_wrong_kernel_of_pytorchs_own_op_is_found(
    xpu: torch.device, monkeypatch: pytest.MonkeyPatch
) -> None:
    from xpurt_tools.conformance.databases import load

    entry = load("xpurt_tools.conformance.databases:of_pytorch")["atan2"]
    real = entry.info.op

    def spoiled(*args: torch.Tensor, **kwargs: object) -> torch.Tensor:
        result = real(*args, **kwargs)
        return result + result.is_xpu * 1e-2

    monkeypatch.setattr(entry.info, "op", spoiled)
    result = check(entry, "float32", 4, lambda where: None)
    assert result.status == "failed"
    monkeypatch.setattr(entry.info, "op", real)
    assert check(entry, "float32", 4, lambda where: None).status == "passed"


class ForgivingNorm(torch.nn.BatchNorm1d):
    """Refuses inputs of other shapes, on the CPU alone."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        try:
            return super().forward(x)
        except ValueError:
            if x.is_xpu:
                return x
            raise


class ForgivingAdam(torch.optim.Adam):
    """Refuses wrong options, on the CPU alone."""

    def __init__(self, params: object, **options: object) -> None:
        params = list(params)  # type: ignore[call-overload]
        try:
            super().__init__(params, **options)  # type: ignore[arg-type]
        except ValueError:
            if not params[0].is_xpu:
                raise
            super().__init__(params)


@pytest.mark.parametrize(
    ("name", "attribute", "spoiled"),
    [
        ("nn.BatchNorm1d", "module_cls", ForgivingNorm),
        ("optim.Adam", "optim_cls", ForgivingAdam),
    ],
)
def test_what_only_the_cpu_refuses_is_found(
    xpu: torch.device,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    attribute: str,
    spoiled: type,
) -> None:
    from xpurt_tools.conformance.databases import load

    entry = load("xpurt_tools.conformance.databases:of_pytorch")[name]
    monkeypatch.setattr(entry.info, attribute, spoiled)
    result = check(entry, "float32", 1, lambda where: None)
    assert result.status == "failed"
    assert {failure.variant for failure in result.failures} == {"error"}
