#include "host/gil.h"
#include "python/bind.h"

#include <pybind11/stl.h>

#include <atomic>
#include <ctime>

#include "host/host_memory.h"
#include "memory/allocator.h"
#include "memory/block_pool.h"
#include "memory/pinned.h"
#include "stream/stream.h"

namespace py = pybind11;

namespace xpurt {
namespace {

c10::Stream stream_of(int64_t id, int64_t device_index) {
  return c10::Stream(
      c10::Stream::UNSAFE,
      c10::Device(c10::DeviceType::XPU, static_cast<c10::DeviceIndex>(device_index)),
      id);
}

// A pool over addresses without memory, for tests of the pool itself.
struct PoolOfAddresses {
  explicit PoolOfAddresses(bool large) : pool(large) {}
  size_t take(size_t bytes) {
    const size_t rounded = round_block(bytes);
    Block* block = pool.take(rounded);
    if (block == nullptr) {
      const size_t size = segment_bytes_for(rounded);
      last -= size + kSmallSegmentBytes;  // never adjacent; downwards, as Linux does
      pool.add_segment(reinterpret_cast<void*>(last), size, nullptr);
      reserved += size;
      block = pool.take(rounded);
    }
    block->requested = bytes;
    return reinterpret_cast<size_t>(block->pointer);
  }
  Block* freed(size_t address) {
    for (const auto& segment : pool.segments()) {
      if (Block* block = segment->allocated_at(reinterpret_cast<void*>(address))) {
        block->allocated = false;
        return block;
      }
    }
    throw py::value_error("no block starts at this address");
  }
  void give_back(size_t address) { pool.give_back(freed(address)); }
  bool keep(size_t address) {
    Block* block = freed(address);
    if (pool.keep(block)) return true;
    pool.give_back(block);
    return false;
  }
  size_t drop_free_segments() {
    size_t bytes = 0;
    for (const auto& segment : pool.take_free_segments()) bytes += segment->bytes;
    reserved -= bytes;
    return bytes;
  }
  std::vector<std::vector<std::tuple<size_t, size_t, bool>>> segments() const {
    std::vector<std::vector<std::tuple<size_t, size_t, bool>>> result;
    for (const auto& segment : pool.segments()) {
      auto& blocks = result.emplace_back();
      for (Block* block = segment->first; block != nullptr; block = block->after) {
        blocks.emplace_back(reinterpret_cast<size_t>(block->pointer), block->bytes,
                            block->active);
      }
    }
    return result;
  }

  size_t last = size_t{1} << 46;
  size_t reserved = 0;
  BlockPool pool;
};

void bind_pool(py::module_& m) {
  py::module_ testing = m.def_submodule("testing");
  py::class_<PoolOfAddresses>(testing, "BlockPool")
      .def(py::init<bool>(), py::arg("large"))
      .def("take", &PoolOfAddresses::take)
      .def("give_back", &PoolOfAddresses::give_back)
      .def("keep", &PoolOfAddresses::keep)
      .def("merge_kept", [](PoolOfAddresses& self) { self.pool.merge_kept(); })
      .def("drop_free_segments", &PoolOfAddresses::drop_free_segments)
      .def("segments", &PoolOfAddresses::segments)
      .def_readonly("reserved", &PoolOfAddresses::reserved)
      .def_property_readonly("inactive_split", [](const PoolOfAddresses& self) {
        return py::make_tuple(self.pool.inactive_split_blocks(),
                              self.pool.inactive_split_bytes());
      });
}

std::atomic<size_t> frees_seen{0};

}  // namespace

void bind_allocator(py::module_& m) {
  py::module_ testing = m.def_submodule("testing");
  testing.def("releasing_bytes", &releasing_bytes, py::arg("device"));
  m.def("memory_fraction", &memory_fraction, py::arg("device"));
  m.def("set_memory_fraction", &set_memory_fraction, py::arg("device"),
        py::arg("fraction"));
  testing.def("device_of_pointer", [](size_t address) {
    return static_cast<int>(device_of_pointer(reinterpret_cast<void*>(address)));
  });
  testing.def("block_of_pointer", [](size_t address) {
    const Extent found = block_of_pointer(reinterpret_cast<void*>(address));
    return py::make_tuple(reinterpret_cast<size_t>(found.start), found.bytes);
  });
  testing.def("is_pinned_pointer", [](size_t address) {
    return is_pinned(reinterpret_cast<void*>(address));
  });
  m.def(
      "host_memory",
      [](const std::string& root) {
        const HostMemory memory = host_memory(root);
        return py::make_tuple(memory.total, memory.free, memory.swap);
      },
      py::arg("root") = "");

  // Memory of the current device and stream, without a tensor.
  testing.def("raw_allocate", [](size_t bytes) {
    return reinterpret_cast<size_t>(device_allocator().raw_allocate(bytes));
  });
  testing.def("raw_free", [](size_t address) {
    device_allocator().raw_deallocate(reinterpret_cast<void*>(address));
  });
  testing.def(
      "raw_record_stream", [](size_t address, int64_t id, int64_t device_index) {
        void* pointer = reinterpret_cast<void*>(address);
        c10::DataPtr borrowed(pointer, pointer, device_allocator().raw_deleter(),
                              c10::Device(c10::DeviceType::XPU, 0));
        device_allocator().recordStream(borrowed, stream_of(id, device_index));
        borrowed.release_context();
      });
  testing.def("count_frees", [] {
    on_free([](void*) noexcept { ++frees_seen; });
    return frees_seen.load();
  });
  // Nanoseconds for one allocation and its free, through c10's interface.
  testing.def(
      "time_allocations", [](const std::string& device, size_t bytes, size_t rounds) {
        c10::Allocator* allocator = c10::GetAllocator(c10::Device(device).type());
        {
          c10::DataPtr warm = allocator->allocate(bytes);
        }
        const WithoutGil released;
        // The thread's own CPU time, which other load on the machine does not change.
        const auto now = [] {
          timespec spent;
          clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
          return 1e9 * static_cast<double>(spent.tv_sec) +
                 static_cast<double>(spent.tv_nsec);
        };
        const double start = now();
        for (size_t i = 0; i < rounds; ++i)
          c10::DataPtr each = allocator->allocate(bytes);
        return (now() - start) / static_cast<double>(rounds);
      });
  bind_pool(m);
}

}  // namespace xpurt
