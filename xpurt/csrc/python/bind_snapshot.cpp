// Private pools, snapshots and the history of memory for torch.xpu.
#include <c10/core/AllocatorConfig.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/csrc/profiler/combined_traceback.h>
#include <torch/csrc/profiler/unwind/unwind.h>
#include <torch/csrc/utils/pybind.h>

#include <thread>

#include "memory/allocator.h"
#include "memory/memory_history.h"
#include "memory/memory_source.h"
#include "python/bind.h"

namespace py = pybind11;

namespace torch {
// Declared in torch/csrc/profiler/python/combined_traceback.h, which needs a library
// that the wheel does not contain.
TORCH_API std::vector<py::object> py_symbolize(
    std::vector<CapturedTraceback*>& to_symbolize);
}  // namespace torch

namespace xpurt {
namespace {

using torch::CapturedTraceback;

// Converts stacks to lists of frames, all at once, as each conversion is expensive.
class Frames {
 public:
  void add(py::dict entry, const CallStack& stack) {
    if (stack == nullptr) return;
    stacks_.push_back(torch::getCapturedTracebackFromContext(stack));
    entries_.push_back(std::move(entry));
  }
  void add_or_none(py::dict entry, const CallStack& stack) {
    if (stack == nullptr) entry["frames"] = py::list();
    add(std::move(entry), stack);
  }
  void resolve() {
    const auto frames = torch::py_symbolize(stacks_);
    for (size_t i = 0; i < frames.size(); ++i) entries_[i]["frames"] = frames[i];
  }

 private:
  std::vector<CapturedTraceback*> stacks_;
  std::vector<py::dict> entries_;
};

py::dict block_dict(const c10::CachingDeviceAllocator::BlockInfo& block, size_t address,
                    Frames& frames) {
  py::dict result;
  result["address"] = address;
  result["size"] = block.size;
  result["requested_size"] = block.requested_size;
  result["state"] = block.allocated ? "active_allocated"
                    : block.active  ? "active_pending_free"
                                    : "inactive";
  frames.add_or_none(result, block.context_when_allocated);
  return result;
}

py::dict segment_dict(const c10::CachingDeviceAllocator::SegmentInfo& segment,
                      Frames& frames) {
  py::dict result;
  result["device"] = static_cast<int>(segment.device);
  result["address"] = segment.address;
  result["total_size"] = segment.total_size;
  result["allocated_size"] = segment.allocated_size;
  result["active_size"] = segment.active_size;
  result["requested_size"] = segment.requested_size;
  result["stream"] = reinterpret_cast<size_t>(segment.stream);
  result["segment_type"] = segment.is_large ? "large" : "small";
  result["segment_pool_id"] = py::cast(segment.owner_private_pool_id);
  result["is_expandable"] = segment.is_expandable;
  frames.add_or_none(result, segment.context_when_allocated);
  py::list blocks;
  size_t address = segment.address;
  for (const auto& block : segment.blocks) {
    blocks.append(block_dict(block, address, frames));
    address += block.size;
  }
  result["blocks"] = blocks;
  return result;
}

const char* name_of(TraceEntry::Action action) {
  switch (action) {
    case TraceEntry::ALLOC:
      return "alloc";
    case TraceEntry::FREE_REQUESTED:
      return "free_requested";
    case TraceEntry::FREE_COMPLETED:
      return "free_completed";
    case TraceEntry::SEGMENT_ALLOC:
      return "segment_alloc";
    case TraceEntry::SEGMENT_FREE:
      return "segment_free";
    case TraceEntry::SEGMENT_MAP:
      return "segment_map";
    case TraceEntry::SEGMENT_UNMAP:
      return "segment_unmap";
    case TraceEntry::SNAPSHOT:
      return "snapshot";
    case TraceEntry::OOM:
      return "oom";
  }
  return "unknown";
}

py::dict trace_dict(const TraceEntry& entry, Frames& frames) {
  py::dict result;
  frames.add(result, entry.context_);
  result["action"] = name_of(entry.action_);
  result[entry.action_ == TraceEntry::OOM ? "device_free" : "addr"] = entry.addr_;
  result["size"] = entry.size_;
  result["stream"] = reinterpret_cast<size_t>(entry.stream_);
  result["time_us"] = entry.time_.t_;
  return result;
}

// The snapshot in the form of torch.xpu.memory_snapshot().
py::dict snapshot(c10::MempoolId_t pool) {
  Frames frames;
  // Both live until the end: the frames point into them.
  const auto entries = memory_history().entries(device_count());
  const auto segments = memory_snapshot(pool);
  py::list segment_list;
  for (const auto& each : segments) segment_list.append(segment_dict(each, frames));
  py::list traces;
  for (const auto& of_device : entries) {
    py::list trace;
    for (const auto& each : of_device) trace.append(trace_dict(each, frames));
    traces.append(trace);
  }
  frames.resolve();
  py::dict settings;
  settings["PYTORCH_ALLOC_CONF"] =
      c10::CachingAllocator::AcceleratorAllocatorConfig::last_allocator_settings();
  settings["expandable_segments"] = false;
  py::dict result;
  result["segments"] = segment_list;
  result["device_traces"] = traces;
  result["allocator_settings"] = settings;
  return result;
}

CallStack gather_python() {
  return CapturedTraceback::gather(/*python=*/true, /*script=*/true, /*cpp=*/false);
}

CallStack gather_all() {
  return CapturedTraceback::gather(/*python=*/true, /*script=*/true, /*cpp=*/true);
}

RecordContext context_named(const std::optional<std::string>& name) {
  if (!name) return RecordContext::NEVER;
  if (*name == "state") return RecordContext::STATE;
  if (*name == "alloc") return RecordContext::ALLOC;
  if (*name == "all") return RecordContext::ALL;
  throw py::value_error("expected context to be 'state', 'alloc', 'all' or None");
}

// With the arguments of torch.xpu.memory._record_memory_history.
void record_memory_history(const std::optional<std::string>& enabled,
                           const std::optional<std::string>& context,
                           const std::string& stacks, size_t max_entries, bool clear,
                           const std::vector<std::string>& skip_actions) {
  if (enabled && *enabled != "state" && *enabled != "all") {
    throw py::value_error("expected enabled to be 'state', 'all' or None");
  }
  if (stacks != "python" && stacks != "all") {
    throw py::value_error("expected stacks to be 'python' or 'all'");
  }
  MemoryHistory::Options options;
  options.stacks = context_named(context);
  for (const std::string& each : skip_actions) {
    options.skipped.insert(c10::CachingDeviceAllocator::parseTraceEntryAction(each));
  }
  if (!enabled) return memory_history().stop();
  // With "state", only current allocations keep their stacks.
  options.max_entries = *enabled == "all" ? max_entries : 1;
  options.gather = stacks == "all" ? &gather_all : &gather_python;
  // The first unwinding is slow. It is done here and not in a later allocation.
  if (context && stacks == "all") torch::unwind::unwind();
  memory_history().start(std::move(options), clear);
}

MemorySource* custom_source(uintptr_t allocate, uintptr_t free) {
  return new MemorySource{reinterpret_cast<MemorySource::Allocate*>(allocate),
                          reinterpret_cast<MemorySource::Free*>(free)};
}

}  // namespace

void bind_snapshot(py::module_& m) {
  py::module_ testing = m.def_submodule("testing");
  m.def("memory_snapshot_with_traces", &snapshot, py::arg("pool"));
  m.def("memory_snapshot", [] { return py::list(snapshot({0, 0})["segments"]); });
  m.def("record_memory_history", &record_memory_history, py::arg("enabled"),
        py::arg("context"), py::arg("stacks"), py::arg("max_entries"),
        py::arg("clear_history"), py::arg("skip_actions"));

  // Directs allocations of the calling thread, or of every thread, to a private pool.
  m.def(
      "begin_allocate_to_pool",
      [](c10::DeviceIndex device, c10::MempoolId_t pool, bool this_thread_only) {
        const std::thread::id me = std::this_thread::get_id();
        begin_allocate_to_pool(device, pool, [=](c10::Stream) {
          return !this_thread_only || std::this_thread::get_id() == me;
        });
      },
      py::arg("device"), py::arg("pool"), py::arg("this_thread_only"));
  m.def("end_allocate_to_pool", &end_allocate_to_pool);
  m.def("release_pool", &release_pool);
  testing.def("empty_pool",
              [](c10::MempoolId_t pool) { device_allocator().emptyCache(pool); });
  // Never freed from Python: memory may come from it until the process ends.
  py::class_<MemorySource, std::unique_ptr<MemorySource, py::nodelete>>(m,
                                                                        "MemorySource")
      .def(py::init(&custom_source), py::arg("allocate"), py::arg("free"));
  py::class_<MemoryPool>(m, "MemoryPool")
      .def(py::init<const MemorySource*, bool, bool>(), py::arg("source"),
           py::arg("made_by_user"), py::arg("use_on_oom"))
      .def_property_readonly("id", &MemoryPool::id)
      .def_property_readonly("source", &MemoryPool::source,
                             py::return_value_policy::reference)
      .def("use_count", &MemoryPool::use_count);
  m.def("set_memory_source", &set_memory_source);
  m.def("set_memory_caching", &set_memory_caching);
  m.def("memory_source", &memory_source, py::return_value_policy::reference);
}

}  // namespace xpurt
