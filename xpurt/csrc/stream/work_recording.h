// What the devices ran, and when. It is recorded while a profiler runs.
#pragma once

#include <c10/macros/Macros.h>

#include <cstdint>
#include <string>
#include <vector>

#include "host/recording_now.h"
#include "stream/stream.h"

namespace xpurt {

enum class WorkKind { kernel, copy };

// Describes one submission, at the point where it is submitted. The name is read only
// while work is recorded.
struct DeviceWork {
  WorkKind kind;
  const char* name;           // static; nullptr: the kernel's own name
  const sycl::kernel* entry;  // where the name is nullptr
  uint64_t bytes;             // copied; 0 for a kernel

  static DeviceWork of(const sycl::kernel& kernel) {
    return {WorkKind::kernel, nullptr, &kernel, 0};
  }
  static DeviceWork named(const char* name) {
    return {WorkKind::kernel, name, nullptr, 0};
  }
  static DeviceWork copy(uint64_t bytes) {
    return {WorkKind::copy, "memcpy", nullptr, bytes};
  }
};

// A queue of one stream on one physical device. If not `queued`: what the host's
// threads compute on that device for that stream.
struct RecordedQueue {
  c10::DeviceIndex ordinal;
  int physical_device_id;
  std::string device_name;
  c10::StreamId stream;
  bool queued = true;
};

struct RecordedWork {
  WorkKind kind;
  std::string name;
  uint64_t bytes;
  size_t queue;          // number of its RecordedQueue
  uint64_t correlation;  // of the op that submitted it; 0 if there was none
  int64_t start_ns;      // since the Unix epoch
  int64_t end_ns;
};

struct Recording {
  std::vector<RecordedQueue> queues;
  std::vector<RecordedWork> works;  // of each queue in order of submission
  size_t lost = 0;                  // submissions whose times are not known
};

// From now on all work is recorded, until end_recording(). Opens no device.
void begin_recording();

// Waits for the work that was recorded.
Recording end_recording();

// The PyTorch op that this thread runs, as numbered by the profiler.
void push_correlation(uint64_t id);
void pop_correlation();

// Called by record_work() only.
void note_work(Stream& stream, size_t position, const sycl::event& done,
               const DeviceWork& work);

// Called while records_work(), when PyTorch's CPU kernel of an op ends. `took_ns`
// includes the wait for its operands. `device_id`: the home device of its ordinal.
void record_host_work(const std::string& op, int device_id, int64_t took_ns);

// Called for all work after it is submitted, with or without the stream's lock.
inline void record_work(Stream& stream, size_t position, const sycl::event& done,
                        const DeviceWork& work) {
  if (C10_UNLIKELY(records_work())) note_work(stream, position, done, work);
}

}  // namespace xpurt
