"""Each row of docs/proposals.md has a test that runs its program."""

import ast
import re
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest
from pages import DOCS

TESTS: Final = Path(__file__).parents[1]
NONE: Final = "there is none"  # the row says no

# By how the row begins: the test, or the tests, of what it says.
SHOWN: Final = {
    "a device type `xpu` that programs use": "xpu/test_layer.py::test_all_public_names_are_there",
    "one name for CPUs, GPUs, FPGAs": "mapping/test_two_devices.py::test_every_mapping_takes_its_devices accelerators/test_accelerators.py::*",
    "a mapping that defines": "mapping/test_set_mapping.py::test_it_takes_effect_at_once",
    "CPU and GPU work on one program": "auto/test_*.py::*",
    "the implementation comes from a package": "startup/test_lazy_import.py::test_importing_loads_no_driver_and_starts_no_thread",
    "the package registers kernels": "layouts/test_*.py::* ecosystem/test_transformations.py::test_kernels_on_the_keys_of_xpu",
    "the package registers collectives": "distributed/test_collectives.py::*",
    "the package registers its Python runtime": "test_runtime.py::test_pytorch_finds_the_module_and_loses_it_again",
    "conversion between CPU and xpu": "sharing/test_share.py::test_writes_are_seen_on_both_sides lazy_copies/test_lazy_conversions.py::test_both_read_the_same_memory lazy_copies/test_each_way_to_write.py::*",
    "autocast with a layout": "optimization/test_autocast_and_torch.py::test_the_rfc_s_program_with_torch_autocast",
    "autocast by dispatch keys": "optimization/test_autocast_ops.py::test_a_registered_op_gets_what_it_asks_for optimization/test_autocast_ops.py::test_modules_of_cpp",
    "views of tensors in another layout": "optimization/test_autocast_shared_storage.py::test_gradients_in_buckets optimization/test_autocast_shared_storage.py::test_images_as_strided",
    "optimizations for CPUs": "optimization/test_optimize.py::* quantization/test_quantize.py::* fused_ops/test_*.py::* cpu_kernels/test_*.py::*",
    "Which device type does the CPU behind": "lazy_copies/test_lazy_conversions.py::test_where_and_the_report",
    "May the device of a storage change": "sharing/test_share.py::test_xpu_bytes_live_as_long_as_either_side",
    "Is the name too general": "bystander/test_*.py::* mapping/test_usability.py::test_a_gpu_of_cuda_is_left_alone_unless_it_is_named",
    "Does the device need a `TensorImpl`": "xpu/test_zero_tensors.py::test_a_use",
    "Can PyTorch's CPU kernels": "native/test_*.py::*",
    "Does a one-element CPU tensor work": "native/test_devices_mixed.py::test_cpu_scalars_are_operands",
    "Which keys?": "ecosystem/test_transformations.py::test_kernels_on_the_keys_of_xpu startup/test_extension.py::test_kernels_of_others_are_not_replaced_in_silence",
    "Is there autocast?": "ecosystem/test_autocast_of_layers.py::*",
    "Which stream is the default one?": "streams/test_*.py::*",
    "Can tensors be saved": "ecosystem/test_saving.py::*",
    "Do `torch.Generator` and": "xpu/test_generators.py::test_seeds",
    "Does `init_process_group` know": "distributed/test_torchrun.py::*",
    "`torch.ones(..., device=\"ipu\")`": "prototype/test_prototype_device.py::test_ops_of_all_layouts",
    "a vendor's own derivatives": "prototype/test_prototype_vendor.py::test_a_vendor_replaces_a_kernel_and_a_derivative prototype/test_prototype_vendor.py::test_a_derivative_on_any_type",
    "keys for sparse and quantized": "prototype/test_prototype_device.py::test_ops_of_all_layouts prototype/test_kernel_report.py::test_a_row_names_the_owner",
    "prototypes on PrivateUse1": "prototype/test_prototype_device.py::test_ops_of_all_layouts",
    "a device type without changes": "prototype/test_prototype_device.py::test_bad_input_says_what_is_possible",
    "a slot in DispatchStub": NONE,
    "autocast, and an error for a type": "prototype/test_prototype_device.py::test_runtime_generator_and_autocast",
    "tests that need no hardware": "prototype/test_new_package.py::test_a_new_package_passes_its_own_tests",
    "`is_hpu`, `copy.deepcopy`": "prototype/test_prototype_device.py::test_save_load_and_copy",
    "pinned memory in DataLoader": "prototype/test_prototype_training.py::test_a_data_loader_pins",
    "DLPack": "prototype/test_prototype_dlpack.py::test_dlpack",
    "`torch.mtia` with devices": "prototype/test_prototype_sycl.py::test_streams_are_queues",
    "memory statistics, properties": "prototype/test_prototype_memory.py::test_what_tensors_have_is_counted",
    "collectives (": "distributed/test_prototype_ranks.py::test_on_two_ranks",
    "a compiler": "prototype/test_prototype_compile.py::test_a_network_trains_compiled prototype/test_prototype_compile.py::test_a_vendors_compiler_gets_graphs",
    "`BackendImplInterface`": "lazy/test_lazy_training.py::test_losses_are_those_of_the_cpu",
    "fusion and a compiler": "lazy/test_compiled_graphs.py::test_training_by_compiled_graphs_has_the_losses_of_the_cpu",
    "a graph without mutation": "lazy/test_lazy_tensors.py::test_graphs_that_differ_in_the_places_of_data_are_apart",
    "Must each new op": "lazy/test_lazy_tensors.py::test_ops_that_the_lazy_core_lacks_do_not_go_to_the_cpu",
    "alignment with TorchScript": "lazy/test_lazy_tensors.py::test_text_has_the_nodes_and_the_graph_of_a_tensor",
    "a backend that outlives": "lazy/test_lazy_conformance.py::test_a_sample_of_ops_is_right_or_known_to_fail",
    "the device of the hardware apart": "lazy/test_lazy_devices.py::test_from_a_lazy_device_to_the_one_behind_it_and_back",
    "a default ordinal, removal": "lazy/test_lazy_mode.py::test_a_device_without_an_index_is_the_current_one lazy/test_lazy_devices.py::test_the_type_changes_while_no_lazy_tensor_is_alive",
    "a general eager fallback": "lazy/test_lazy_metrics.py::test_ops_of_a_graph_that_the_cpu_computes_on_copies_are_counted",
    "a core apart from the TorchScript": "lazy/test_lazy_errors.py::test_a_pytorch_without_the_lazy_core_is_named",
    "a shape in each node": "lazy/test_lazy_sizes.py::test_the_third_batch_size_compiles_nothing",
    "metrics of the backend": "lazy/test_lazy_metrics.py::test_runs_and_the_code_of_graphs_are_counted",
    "autocast": "lazy/test_lazy_training.py::test_autocast_of_lazy_tensors",
    "collectives in a graph": "distributed/test_lazy_ranks.py::test_lazy_tensors_on_two_ranks",
}  # fmt: skip


def rows() -> list[str]:
    """The first cells, without links."""
    lines = (DOCS / "proposals.md").read_text().splitlines()
    cells = [
        line.split("|")[1].strip()
        for before, line in pairwise(lines)
        if line.startswith("|") and before.startswith("|") and "---" not in line
    ]
    return [re.sub(r"\[(.*?)\]\(.*?\)", r"\1", each) for each in cells]


def test_each_row_has_its_tests() -> None:
    found = rows()
    assert len(found) > 50
    # The longest beginning is the row's own.
    shown = {
        row: max((each for each in SHOWN if row.startswith(each)), key=len, default="")
        for row in found
    }
    assert [row for row, beginning in shown.items() if not beginning] == []
    assert set(SHOWN) - set(shown.values()) == set()


@pytest.mark.parametrize("beginning", SHOWN)
def test_the_tests_of_a_row_are_there(beginning: str) -> None:
    for each in () if SHOWN[beginning] == NONE else SHOWN[beginning].split():
        path, _, function = each.partition("::")
        files = list(TESTS.glob(path))
        assert files, each
        defined = {
            node.name
            for file in files
            for node in ast.parse(file.read_text()).body
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
        }
        assert function in defined or (function == "*" and defined), each
