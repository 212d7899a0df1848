#include "c10/profiler.h"

#include <kineto/libkineto.h>
#include <kineto/output_base.h>

#include <map>
#include <memory>
#include <set>
#include <string>

#include "c10/cuda_build.h"
#include "stream/work_recording.h"

namespace xpurt {
namespace {

using libkineto::ActivityType;

// Note [Whose activities]
// ~~~~~~~~~~~~~~~~~~~~~~~
// PyTorch requests kinds of activities from Kineto, not devices. XPU and CUDA have the
// same kinds, "kernel" and "gpu_memcpy", and the same device numbers. Beside CUDA's own
// profiler, xpu:0 and cuda:0 could not be distinguished in a trace. So on a build with
// CUDA, xpu registers no profiler. Without CUDA all such activities are xpu's.
// PyTorch's C++ then reports their device as CUDA, for lack of USE_XPU:
// xpurt/xpu/profiles.py corrects this.
const std::set<ActivityType>& activity_types() {
  static const std::set<ActivityType> types{ActivityType::CONCURRENT_KERNEL,
                                            ActivityType::GPU_MEMCPY};
  return types;
}

ActivityType type_of(WorkKind kind) {
  return kind == WorkKind::copy ? ActivityType::GPU_MEMCPY
                                : ActivityType::CONCURRENT_KERNEL;
}

class Session : public libkineto::IActivityProfilerSession {
 public:
  explicit Session(std::set<ActivityType> types) : types_(std::move(types)) {}
  ~Session() override {
    if (!recording_now_) return;
    try {
      end_recording();
    } catch (const std::exception&) {
      // The recording is no longer needed.
    }
  }

  void start() override {
    begin_recording();
    recording_now_ = true;
    status_ = libkineto::TraceStatus::RECORDING;
  }

  void stop() override {
    if (!recording_now_) return;
    recording_now_ = false;
    recording_ = end_recording();
    status_ = libkineto::TraceStatus::PROCESSING;
  }

  std::vector<std::string> errors() override {
    if (recording_.lost == 0) return {};
    return {std::to_string(recording_.lost) + " pieces of xpu work have no times"};
  }

  void processTrace(libkineto::ActivityLogger& logger) override {
    processTrace(logger, [](int32_t) { return nullptr; }, 0, 0);
  }

  void processTrace(libkineto::ActivityLogger& logger,
                    libkineto::getLinkedActivityCallback linked, int64_t start,
                    int64_t end) override {
    // Kineto keeps the addresses of the activities, and takes the buffer later.
    buffer_ = std::make_unique<libkineto::CpuTraceBuffer>();
    buffer_->span = {start, end, "xpu"};
    buffer_->gpuOpCount = static_cast<int>(recording_.works.size());
    int32_t id = 0;
    for (const RecordedWork& each : recording_.works) {
      if (types_.count(type_of(each.kind)) == 0) continue;
      buffer_->emplace_activity(buffer_->span, type_of(each.kind), each.name);
      auto& activity = libkineto::CpuTraceBuffer::toRef(buffer_->activities.back());
      activity.startTime = each.start_ns;
      activity.endTime = each.end_ns;
      activity.id = ++id;
      activity.device = recording_.queues[each.queue].ordinal;
      activity.resource = static_cast<int32_t>(each.queue);
      if (each.correlation != 0) {
        activity.linked = linked(static_cast<int32_t>(each.correlation));
      }
      describe(each, &activity);
      activity.log(logger);
    }
    // getDeviceInfo() names only one device.
    const auto names = names_of_ordinals();
    for (const auto& [ordinal, name] : names) {
      if (ordinal == names.begin()->first) continue;
      logger.handleDeviceInfo(*device_info(ordinal, name), start);
    }
  }

  std::unique_ptr<libkineto::DeviceInfo> getDeviceInfo() override {
    const auto names = names_of_ordinals();
    if (names.empty()) return nullptr;
    return device_info(names.begin()->first, names.begin()->second);
  }

  std::vector<libkineto::ResourceInfo> getResourceInfos() override {
    std::vector<libkineto::ResourceInfo> rows;
    for (size_t i = 0; i < recording_.queues.size(); ++i) {
      const RecordedQueue& queue = recording_.queues[i];
      const auto row = static_cast<int64_t>(i);
      rows.push_back({row, row, queue.ordinal,
                      queue.device_name + ", stream " + std::to_string(queue.stream) +
                          (queue.queued ? "" : ", PyTorch's CPU kernels")});
    }
    return rows;
  }

  // The trace of a program that does not use xpu is as without it.
  std::unique_ptr<libkineto::CpuTraceBuffer> getTraceBuffer() override {
    return recording_.works.empty() ? nullptr : std::move(buffer_);
  }

  void pushCorrelationId(uint64_t id) override { push_correlation(id); }
  void popCorrelationId() override { pop_correlation(); }

 private:
  void describe(const RecordedWork& work, libkineto::GenericTraceActivity* to) const {
    const RecordedQueue& queue = recording_.queues[work.queue];
    to->addMetadata("device", static_cast<int>(queue.ordinal));
    to->addMetadata("physical device", queue.physical_device_id);
    to->addMetadata("stream", queue.stream);
    if (work.kind == WorkKind::copy) to->addMetadata("bytes", work.bytes);
  }

  // Names of the physical devices with recorded work, by ordinal.
  std::map<int, std::string> names_of_ordinals() const {
    std::map<int, std::set<std::string>> devices;
    for (const RecordedQueue& each : recording_.queues) {
      devices[each.ordinal].insert(each.device_name);
    }
    std::map<int, std::string> names;
    for (const auto& [ordinal, of_ordinal] : devices) {
      std::string& name = names[ordinal];
      for (const std::string& each : of_ordinal) {
        name += (name.empty() ? "" : ", ") + each;
      }
    }
    return names;
  }

  static std::unique_ptr<libkineto::DeviceInfo> device_info(int ordinal,
                                                            const std::string& name) {
    return std::unique_ptr<libkineto::DeviceInfo>(
        new libkineto::DeviceInfo{ordinal, ordinal + libkineto::kExceedMaxPid,
                                  "xpu:" + std::to_string(ordinal), name});
  }

  std::set<ActivityType> types_;
  bool recording_now_ = false;
  Recording recording_;
  std::unique_ptr<libkineto::CpuTraceBuffer> buffer_;
};

class Profiler : public libkineto::IActivityProfiler {
 public:
  const std::string& name() const override { return name_; }

  const std::set<ActivityType>& availableActivities() const override {
    return activity_types();
  }

  // No session for a profile of the CPU only.
  std::unique_ptr<libkineto::IActivityProfilerSession> configure(
      const std::set<ActivityType>& requested, const libkineto::Config&) override {
    for (const ActivityType each : activity_types()) {
      if (requested.count(each) != 0) return std::make_unique<Session>(requested);
    }
    return nullptr;
  }

  std::unique_ptr<libkineto::IActivityProfilerSession> configure(
      int64_t, int64_t, const std::set<ActivityType>& requested,
      const libkineto::Config& config) override {
    return configure(requested, config);
  }

 private:
  const std::string name_ = "xpurt";
};

}  // namespace

void register_profiler() {
  if (is_cuda_build()) return;
  libkineto::api().registerProfilerFactory([] { return std::make_unique<Profiler>(); });
}

}  // namespace xpurt
