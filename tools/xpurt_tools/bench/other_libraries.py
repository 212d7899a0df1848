"""The same work by other libraries, if they are installed.

Each function returns a call, and a call that waits for its end. It raises ImportError if
the library is not installed. Other libraries get as many threads as PyTorch.
"""

import importlib
import io
import logging
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from xpurt.mapping import current_placement

Call = Callable[[], object]


def dpnp_call(
    function: Callable[..., object], tensors: Sequence[torch.Tensor]
) -> tuple[Call, Call]:
    """`function` takes the module, and arrays on the device of xpu.

    On a queue of its own: once xpu's queue has been handed out, every op on the CPU has
    to check the queue for work of other code.
    """
    dpnp = importlib.import_module("dpnp")
    (device, *_) = current_placement().ordinals[torch.xpu.current_device()]
    arrays = [dpnp.asarray(each.numpy(), device=device.sycl_device) for each in tensors]
    queue = dpnp.empty(0, device=device.sycl_device).sycl_queue
    return lambda: function(dpnp, *arrays), queue.wait


def jax_call(
    function: Callable[..., object], tensors: Sequence[torch.Tensor]
) -> tuple[Call, Call]:
    """`function` takes the module, and arrays on JAX's CPU; it is compiled by XLA.

    JAX takes its number of threads from the cores that the process may use.
    """
    jax = importlib.import_module("jax")
    compiled = jax.jit(lambda *arrays: function(jax, *arrays))
    arrays = [jax.numpy.asarray(each.numpy()) for each in tensors]
    return lambda: jax.block_until_ready(compiled(*arrays)), _nothing


def openvino_call(
    model: torch.nn.Module, x: torch.Tensor, dtype: torch.dtype
) -> tuple[Call, Call]:
    """A network in evaluation mode with float32 parameters; `dtype`: of the layers."""
    openvino = importlib.import_module("openvino")
    with _quiet():
        # The check traces twice, and takes other names of modules for another program.
        traced = torch.jit.trace(model, x, check_trace=False)  # type: ignore[no-untyped-call]
        converted = openvino.convert_model(traced, example_input=x)
    return _in_openvino(converted, x, dtype)


def onnxruntime_call(model: torch.nn.Module, x: torch.Tensor) -> tuple[Call, Call]:
    """A network in evaluation mode, in float32. Wants onnxscript, too."""
    importlib.import_module("onnxruntime")
    return _in_onnxruntime(_onnx(model, x), x)


def quantized_onnxruntime_call(
    model: torch.nn.Module, x: torch.Tensor
) -> tuple[Call, Call]:
    """A network in evaluation mode, in int8. Wants onnx and onnxscript, too."""
    return _in_onnxruntime(_quantized_onnx(model, x), x)


def quantized_openvino_call(
    model: torch.nn.Module, x: torch.Tensor
) -> tuple[Call, Call]:
    """The same program in OpenVINO. Wants onnx, onnxruntime and onnxscript, too."""
    openvino = importlib.import_module("openvino")
    program = openvino.Core().read_model(_quantized_onnx(model, x))
    return _in_openvino(program, x, torch.float32)


def torchao_call(
    model: torch.nn.Module, x: torch.Tensor, bits: int
) -> tuple[Call, Call]:
    """A network in evaluation mode, eager, with weights of linear layers in 8 or 4 bits;
    in 4 bits with a scale for each 64 inputs."""
    with _quiet():
        torchao = importlib.import_module("torchao.quantization")
        int4 = torch.int4  # type: ignore[attr-defined]
        config = (
            torchao.Int8WeightOnlyConfig(version=2)
            if bits == 8
            else torchao.IntxWeightOnlyConfig(int4, torchao.PerGroup(64))
        )
        torchao.quantize_(model, config)

    def call() -> object:
        with torch.no_grad():
            return model(x)

    return call, _nothing


def _in_openvino(
    program: Any, x: torch.Tensor, dtype: torch.dtype
) -> tuple[Call, Call]:
    """dtype: of layers that are not quantized."""
    openvino = importlib.import_module("openvino")
    options = {
        "INFERENCE_NUM_THREADS": torch.get_num_threads(),
        "INFERENCE_PRECISION_HINT": "bf16" if dtype == torch.bfloat16 else "f32",
        "PERFORMANCE_HINT": "LATENCY",
    }
    compiled = openvino.Core().compile_model(program, "CPU", options)
    request, inputs = compiled.create_infer_request(), [x.numpy()]
    return lambda: request.infer(inputs, share_inputs=True), _nothing


def _in_onnxruntime(program: bytes, x: torch.Tensor) -> tuple[Call, Call]:
    runtime = importlib.import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    session = runtime.InferenceSession(
        program, options, providers=["CPUExecutionProvider"]
    )
    inputs = {session.get_inputs()[0].name: x.numpy()}
    return lambda: session.run(None, inputs), _nothing


def _onnx(model: torch.nn.Module, x: torch.Tensor) -> bytes:
    importlib.import_module("onnxscript")
    file = io.BytesIO()
    with _quiet():
        program: Any = torch.onnx.export(model, (x,), dynamo=True, verbose=False)
        program.save(file)
    return file.getvalue()


def _quantized_onnx(model: torch.nn.Module, x: torch.Tensor) -> bytes:
    """The program by ONNX Runtime's static quantization, calibrated with `x`: weights
    with a scale per channel, activations with a scale and a zero point."""
    onnx = importlib.import_module("onnx")
    tools = importlib.import_module("onnxruntime.quantization")
    with tempfile.TemporaryDirectory() as folder, _quiet():
        plain, prepared, quantized = (
            Path(folder) / f"{name}.onnx" for name in ("plain", "prepared", "quantized")
        )
        plain.write_bytes(_onnx(model, x))
        tools.shape_inference.quant_pre_process(
            plain, prepared, skip_symbolic_shape=True
        )
        name = onnx.load(prepared).graph.input[0].name
        samples = iter([{name: x.numpy()}])

        class Calibration(tools.CalibrationDataReader):  # type: ignore[misc, name-defined]
            def get_next(self) -> object:
                return next(samples, None)

        tools.quantize_static(
            prepared,
            quantized,
            Calibration(),
            quant_format=tools.QuantFormat.QDQ,
            per_channel=True,
            activation_type=tools.QuantType.QUInt8,
            weight_type=tools.QuantType.QInt8,
        )
        return quantized.read_bytes()


def _nothing() -> None:
    """These calls have ended when they return."""


@contextmanager
def _quiet() -> Iterator[None]:
    """Converters warn of traced branches and of libraries that they do not need."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
