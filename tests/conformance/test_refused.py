"""What PyTorch refuses for device types: each error is PyTorch's own."""

import pytest
import torch
from own_process import output

from xpurt_tools.conformance.refused import REFUSALS, mark_refused
from xpurt_tools.conformance.results import Failure, Result, tally


def failed(name: str, *messages: str) -> Result:
    failures = [Failure("call", 0, "", message) for message in messages]
    return Result(
        name, "float32", "", "failed", failed=len(messages), failures=failures
    )


def test_a_pair_is_refused_if_all_its_failures_are() -> None:
    mine = "RuntimeError (Unrecognized tensor type ID: SparseIPU)"
    results = [
        failed("optim.SparseAdam", mine, mine),
        failed("optim.SparseAdam", mine, "wrong values"),
        failed("sin", mine),
    ]
    mark_refused(results, "xpu")
    assert [each.status for each in results] == ["failed"] * 3
    mark_refused(results, "ipu")
    assert [each.status for each in results] == ["refused", "failed", "failed"]
    total = tally(results)
    assert (total.pairs, total.refused, total.not_on_cpu) == (2, 1, 0)


def test_each_refusal_has_a_reason() -> None:
    assert all(len(each.reason) > 20 for each in REFUSALS)


REFUSED = """
import torch, warnings, xpurt
warnings.simplefilter("ignore")
name = {name!r}
xpurt.prototype_device(name)

def refused(call):
    try:
        call()
    except (AssertionError, RuntimeError) as error:
        return str(error)
    raise SystemExit(f"{{call}} works")

def stepped(make, grad, **options):
    x = torch.nn.Parameter(torch.ones(2, device=name))
    x.grad = grad
    make([x], **options).step()

text = refused(lambda: torch.sparse_csr_tensor(
    torch.tensor([0, 1], device=name), torch.tensor([0], device=name),
    torch.ones(1, device=name), size=(1, 1)))
assert "new_compressed_tensor" in text, text
# SparseAdam makes tensors by `grad.new`, which looks for the name of the class.
grad = torch.ones(2, device=name).to_sparse()
text = refused(lambda: stepped(torch.optim.SparseAdam, grad))
assert "Unrecognized tensor type ID: Sparse" in text, text
text = refused(lambda: grad.new(grad._indices(), grad._values(), grad.size()))
assert "Unrecognized tensor type ID: Sparse" in text, text
print("refused")
"""


@pytest.mark.parametrize("name", ["ipu", "mtia", "hpu"])
def test_pytorch_refuses(name: str) -> None:
    """Neither sparse_csr_tensor nor grad.new asks for a kernel first."""
    assert output(REFUSED.format(name=name)) == "refused"


def test_names_of_keys_of_compressed_tensors() -> None:
    assert torch._C._dispatch_key_parse("SparseCsrPrivateUse1") is not None
    for backend in ("IPU", "MTIA", "HPU", "MAIA", "XLA"):
        with pytest.raises(RuntimeError, match="could not parse dispatch key"):
            torch._C._dispatch_key_parse(f"SparseCsr{backend}")
