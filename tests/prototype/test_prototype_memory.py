"""The counts of a prototype's memory, and its properties."""

from prototype_programs import few_kinds, run

COUNTS = """
runtime = made.runtime
allocated = runtime.memory_allocated
assert allocated() == allocated(1) == 0 and runtime.max_memory_allocated() == 0
x = torch.zeros(1000, device=name)  # 4000 bytes; xpu rounds a block up to 512
block = 4096 if memory == "xpu" else 4000
stats = runtime.memory_stats()
assert allocated() == stats["allocated_bytes.all.current"] == block, stats
assert stats["requested_bytes.all.current"] == 4000
assert stats["allocation.small_pool.current"] == stats["allocation.all.current"] == 1
assert allocated(1) == allocated(f"{name}:1") == 0
view = x.view(10, 100)[2:]  # no memory of its own
y = x + view.sum()
x[3:].mul_(2)
assert allocated() == runtime.memory_reserved() == 2 * block, allocated()
z = torch.zeros(1000, device=f"{name}:1")
assert allocated(1) == block and allocated() == 2 * block
del x
assert allocated() == 2 * block, "the view holds it"
del view, y
assert allocated() == 0 and runtime.max_memory_allocated() >= 2 * block
runtime.reset_peak_memory_stats()
assert runtime.max_memory_allocated() == runtime.max_memory_reserved() == 0
made_before = runtime.memory_stats()["allocation.all.allocated"]
assert made_before >= 2 and runtime.memory_stats()["allocation.all.freed"] == made_before
runtime.reset_accumulated_memory_stats()
assert runtime.memory_stats()["allocation.all.allocated"] == 0
z.resize_(2000)  # the kernel of the device behind gives it other memory
assert runtime.memory_stats(1)["requested_bytes.all.current"] == 8000
large = torch.empty(1 << 19, device=name)
assert runtime.memory_stats_as_nested_dict()["allocation"]["large_pool"]["current"] == 1
other = large.cpu()
assert allocated() == 1 << 21, "memory of the CPU is not the prototype's"
del large
runtime.empty_cache()
assert allocated() == 0
free, total = runtime.mem_get_info()
properties = runtime.get_device_properties(1)
assert 0 < free <= total == properties.total_memory and properties.memory == memory
assert properties.name == runtime.get_device_name() == f"prototype of {name}"
assert properties.max_compute_units > 0
assert properties.computes_on == ("xpu:1" if memory == "xpu" else "cpu")
assert {torch.float32, torch.bool} <= runtime.get_device_capability()["supported_dtypes"]
try:
    runtime.memory_allocated(2)
except IndexError as error:
    print(error)
if torch.accelerator.current_accelerator().type == name:
    stats = torch.accelerator.memory_stats(1)
    assert stats["allocated_bytes.all.current"] == allocated(1) > 0
    assert torch.accelerator.get_memory_info(0)[1] == total
    assert torch.accelerator.get_device_capability() == runtime.get_device_capability()
    torch.accelerator.reset_peak_memory_stats(0)
    torch.accelerator.empty_cache()
print("counted")
"""


@few_kinds
def test_what_tensors_have_is_counted(name: str, memory: str) -> None:
    found = run(COUNTS, name, memory, devices=2)
    assert "there is no device" in found
    assert "counted" in found
