"""The costs of devices that nothing has measured."""

from made_up_devices import ARC, CPU, FPGA

from xpurt.mapping.auto.costs import device_cost


def test_an_accelerator_is_not_taken_for_a_gpu() -> None:
    """Until it is measured, a large op goes to a GPU before it, and a small one to the
    CPU, whose memory and launches are nearer."""
    cpu, gpu, accelerator = map(device_cost, (CPU, ARC, FPGA))
    assert accelerator.flops_per_us == cpu.flops_per_us < gpu.flops_per_us
    assert accelerator.bytes_per_us == cpu.bytes_per_us < gpu.bytes_per_us
    assert cpu.launch_us < gpu.launch_us < accelerator.launch_us
    assert cpu.copy_launch_us < gpu.copy_launch_us < accelerator.copy_launch_us
