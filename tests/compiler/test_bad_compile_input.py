"""What can go wrong for a compiled program: in its options, its device, its compiler."""

import pickle
from collections.abc import Iterator

import pytest
import torch
from own_process import compiling_run as run
from torch import nn

import xpurt
from xpurt.compiler import kernel_launch

FORMS = pytest.mark.parametrize("policy", ["auto", "sycl"])


@pytest.fixture
def form(policy: str) -> Iterator[None]:
    with xpurt.kernel_policy(policy):
        yield


@FORMS
@pytest.mark.usefixtures("form")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"no_such_option": 1}, "Unexpected optimization option no_such_option"),
        ({"freezing": "yes"}, "Unexpected type of attr freezing, got str"),
    ],
)
def test_options_that_make_no_sense(
    xpu: torch.device, options: dict[str, object], message: str
) -> None:
    with pytest.raises(RuntimeError, match=message):
        torch.compile(lambda x: x + 1, options=options)(torch.ones(2, device=xpu))


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("cpp_wrapper", "Leave cpp_wrapper out, or compile it where"),
        ("fx_wrapper", r"Leave fx_wrapper out\."),
    ],
)
def test_another_program_than_one_of_kernels(
    xpu: torch.device, option: str, message: str
) -> None:
    compiled = torch.compile(lambda x: x + 3, options={option: True})
    with xpurt.kernel_policy("sycl"), pytest.raises(RuntimeError, match=message):
        compiled(torch.ones(2, device=xpu))


@pytest.mark.one_in(2)
@pytest.mark.mappings("CPU")
@FORMS
@pytest.mark.usefixtures("form")
def test_a_compiled_module_is_pickled_and_loaded(xpu: torch.device) -> None:
    model = torch.compile(nn.Sequential(nn.Linear(4, 4), nn.GELU()).to(xpu))
    x = torch.randn(2, 4).to(xpu)
    loaded = pickle.loads(pickle.dumps(model))
    torch.testing.assert_close(loaded(x), model(x))
    assert next(loaded.parameters()).device == xpu


@FORMS
@pytest.mark.usefixtures("form")
def test_an_op_that_inductor_does_not_have(xpu: torch.device) -> None:
    """It is called as in eager mode, between what is compiled."""

    @torch.library.custom_op("xpurt_test::thrice", mutates_args=())
    def thrice(x: torch.Tensor) -> torch.Tensor:
        return x * 3

    thrice.register_fake(torch.empty_like)
    compiled = torch.compile(lambda x: thrice(x + 1) - 1, fullgraph=True)
    assert compiled(torch.ones(3, device=xpu)).tolist() == [5.0] * 3


def test_a_kernel_that_the_driver_refuses(xpu: torch.device) -> None:
    launch = kernel_launch.kernel(
        "refused", "__kernel void refused(__global float* x) { this is no C; }",
        functions=[], templates=[], arguments="w", group=(1, 1, 1), lanes=False,
        faults=False, flops=1, sizes=[1, 1, 1],
    )  # fmt: skip
    with pytest.raises(RuntimeError) as error:
        launch(torch.ones(1, device=xpu))
    assert "this is no C" in str(error.value)
    assert 'xpurt.set_kernel_policy("native")' in str(error.value)


CHANGES = """
    import torch, xpurt
    double = torch.compile(lambda x: x * 2)
    def call(device="xpu"):
        return double(torch.ones(2, device=device)).tolist()
    print(call())
"""


@pytest.mark.rest
def test_a_mapping_that_changes_after_kernels_were_compiled() -> None:
    ended = run(
        CHANGES
        + """
    xpurt.set_xpu_mapping("GPU")
    print(call())
    xpurt.set_xpu_mapping("explicit")
    print(call("xpu:1"))
    xpurt.set_xpu_mapping("CPU")
    print(call())
    try:
        call("xpu:1")
    except xpurt.MappingError as error:
        print("xpu:1 is out of range" in str(error))
        """,
        timeout=240,
        XPURT_KERNEL_POLICY="sycl",
        XPURT_VIRTUAL_GPU="strict",
    )
    assert ended.stdout.splitlines() == ["[2.0, 2.0]"] * 4 + ["True"], ended.stderr


@pytest.mark.rest
def test_a_mapping_that_changes_after_code_for_the_host_was_compiled() -> None:
    ended = run(
        CHANGES
        + """
    xpurt.set_xpu_mapping("GPU")
    try:
        call()
    except RuntimeError as error:
        print("Call torch.compiler.reset()" in str(error))
    torch.compiler.reset()
    print(call())
    xpurt.set_xpu_mapping("CPU")
    print(call())
        """,
        timeout=240,
        XPURT_VIRTUAL_GPU="strict",
    )
    expected = ["[2.0, 2.0]", "True", "[2.0, 2.0]", "[2.0, 2.0]"]
    assert ended.stdout.splitlines() == expected, ended.stderr


@pytest.mark.slow
def test_a_compiled_module_is_loaded_under_another_mapping() -> None:
    """It was native code, and becomes kernels."""
    ended = run(
        """
    import gc, pickle, torch, xpurt
    model = torch.compile(torch.nn.Linear(3, 2).to("xpu"))
    expected = model(torch.ones(1, 3, device="xpu")).detach().cpu()
    kept = pickle.dumps(model)
    del model
    torch.compiler.reset(), gc.collect()
    xpurt.set_xpu_mapping("GPU")
    model = pickle.loads(kept)
    x = torch.ones(1, 3, device="xpu")
    torch.testing.assert_close(model(x).detach().cpu(), expected)
    print(xpurt.get_xpu_mapping())
        """,
        timeout=240,
        XPURT_VIRTUAL_GPU="strict",
    )
    assert ended.stdout == "GPU\n", ended.stderr


def test_a_device_that_is_gone_between_compilation_and_call() -> None:
    ended = run(
        """
    import torch
    from xpurt.testing import fail_virtual_gpu
    compiled = torch.compile(lambda x: x * 2 + 1)
    x = torch.arange(3.0, device="xpu")
    expected = compiled(x).tolist()
    for running in (False, True):
        fail_virtual_gpu(running=running)
        try:
            compiled(x)
            torch.xpu.synchronize()
        except RuntimeError as error:
            print(error)
        fail_virtual_gpu(False)
        print(compiled(x).tolist() == expected)
        """,
        timeout=240,
        XPURT_MAPPING="GPU",
        XPURT_VIRTUAL_GPU="strict",
    )
    refused, repaired, lost, again = ended.stdout.splitlines()
    assert "could not be submitted to xpurt virtual GPU" in refused, ended.stderr
    assert "work submitted earlier to" in lost
    assert (repaired, again) == ("True", "True")


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (
            "auto",
            "torch.compile makes kernels of OpenCL C: code for the host needs a C++",
        ),
        (
            "native",
            "torch.compile runs op by op: code for the host needs a C++ compiler",
        ),
        pytest.param("sycl", "", marks=pytest.mark.slow),
    ],
)
@pytest.mark.slow
def test_no_compiler_of_c_plus_plus(policy: str, message: str) -> None:
    ended = run(
        """
        import torch, warnings
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            print(torch.compile(lambda x: x * 2 + 5)(torch.ones(2, device="xpu")).tolist())
        for each in said:
            if "torch.compile" in str(each.message) and "CXX" in str(each.message):
                print(each.message)
        """,
        timeout=240,
        XPURT_KERNEL_POLICY=policy,
        CXX="/no/compiler/here",
    )
    value, *warned = ended.stdout.splitlines()
    assert value == "[7.0, 7.0]", ended.stderr
    assert len(warned) == bool(message)
    assert all(each.startswith(message) for each in warned)
    assert all("'/no/compiler/here' does not work" in each for each in warned)
