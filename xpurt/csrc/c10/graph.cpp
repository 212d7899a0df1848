#include "c10/graph.h"

#include <c10/util/Exception.h>

#include <atomic>

#include "device/event_status.h"
#include "host/waiting.h"
#include "memory/allocator.h"
#include "random/generator.h"
#include "stream/capture.h"
#include "stream/captured_storages.h"

namespace xpurt {
namespace {

// For all graphs of the process, as in PyTorch.
std::atomic<bool> debug_mode{false};

bool is_gone() {
  return in_bad_fork() || is_exiting();
}

}  // namespace

void check_records_graphs(c10::DeviceIndex index) {
  if (index < 0) index = current_device();
  const Ordinal& found = ordinal(index);
  TORCH_CHECK_NOT_IMPLEMENTED(
      found.devices.size() == 1,
      "XPU graphs record the queue of one device, but xpu:", static_cast<int>(index),
      " is ", found.devices.size(), " devices under the mapping \"",
      placement().mapping,
      "\". Use the mapping \"CPU\" or \"explicit\", or run the work eagerly.");
  const PhysicalDevice& device = found.home_device();
  TORCH_CHECK_NOT_IMPLEMENTED(
      device.device.has(sycl::aspect::ext_oneapi_limited_graph),
      "XPU graphs need a device that records commands (SYCL's aspect "
      "ext_oneapi_limited_graph; of an OpenCL driver, cl_khr_command_buffer); xpu:",
      static_cast<int>(index), " is ", device.name,
      ", which does not. Run the work eagerly, or on a CPU: the mapping \"CPU\".");
}

Graph::Graph(const at::GraphImplArgs& args) : keep_graph_(args.keep_graph) {
  check_records_graphs(-1);
}

Graph::~Graph() {
  if (is_gone()) {
    // A call of the driver would hang.
    recorded_.release();
    executable_.release();
    pool_.release();
    draws_.leak();
    new std::vector<c10::Storage>(std::move(kept_));
    return;
  }
  try {
    reset();
  } catch (const std::exception& error) {
    TORCH_WARN("an XPU graph did not end well: ", error.what());
  }
}

void Graph::capture_begin(c10::MempoolId_t pool, at::GraphCaptureMode mode) {
  TORCH_CHECK(!captured_ && !recorded_,
              "this XPU graph holds a capture already. Call reset(), or capture into a "
              "new graph.");
  if (mode != at::GraphCaptureMode::Default) {
    TORCH_WARN("XPU graphs know no capture_error_mode but \"default\", which is used");
  }
  check_records_graphs(-1);
  Stream& stream = current_stream();
  draws_.clear();
  claim_capture();
  try {
    stream.wait();
    auto recorded = std::make_unique<CommandGraph>(
        stream.ordinal().home_device().context, stream.ordinal().home_device().device);
    if (pool == c10::MempoolId_t{0, 0}) pool = MemoryPool::new_id(false);
    pool_ = std::make_unique<CapturePool>(pool, stream.id());
    captured_draws = &draws_;
    captured_stream = &stream;  // set first: home_queue() depends on it
    recorded->begin_recording(*stream.home_queue());
    recorded_ = std::move(recorded);
  } catch (...) {
    captured_stream = nullptr;
    captured_draws = nullptr;
    pool_.reset();
    finish_capture();
    throw;
  }
  epoch_ = placement_epoch();
  stream_ = &stream;
}

void Graph::stop_recording() {
  {
    const Submission alone = stream_->home_queue();
    captured_stream = nullptr;
    captured_draws = nullptr;
    recorded_->end_recording();
  }
  pool_->end();
  kept_ = kept_by_capture();
  invalidated_by_ = finish_capture();
}

void Graph::capture_end() {
  TORCH_CHECK(recorded_ && !captured_,
              "capture_end() without a capture_begin() of this XPU graph");
  TORCH_CHECK(is_capturing(current_stream(stream_->id().device_index())),
              "a capture ends on the stream that it began on, ", stream_->id());
  stop_recording();
  captured_ = true;
  if (!invalidated_by_.empty()) {
    recorded_.reset();
    kept_.clear();
    return;
  }
  if (recorded_->get_nodes().empty()) {
    TORCH_WARN("The XPU Graph is empty: nothing was submitted to ", stream_->id(),
               " while it was captured. Was the work on another device or stream?");
  }
  if (!keep_graph_) {
    instantiate();
    if (!debug_mode) recorded_.reset();
  }
}

void Graph::check_captured(const char* what) const {
  TORCH_CHECK(invalidated_by_.empty(), what,
              " of an XPU graph whose capture was invalidated: ", invalidated_by_);
  TORCH_CHECK(captured_, what, " of an XPU graph before capture_end()");
  TORCH_CHECK(is_installed(epoch_), what,
              " of an XPU graph of an xpu mapping that has been replaced. Capture it "
              "again.");
}

void Graph::instantiate() {
  check_captured("instantiate()");
  TORCH_CHECK(!executable_ || keep_graph_,
              "instantiate() again needs XPUGraph(keep_graph=True)");
  try {
    executable_ = std::make_unique<ExecutableGraph>(recorded_->finalize());
  } catch (const sycl::exception& error) {
    TORCH_CHECK(false, stream_->ordinal().home_device().name,
                " could not make the XPU graph executable: ", error.what());
  }
}

void Graph::register_generator_state(const at::Generator& generator) const {
  TORCH_CHECK(!is_capturing(generator.device().index()),
              "Cannot register the state during capturing stage.");
  state_of(generator);
}

void Graph::replay() {
  check_captured("replay()");
  Stream& stream = current_stream(stream_->id().device_index());
  if (is_capturing(stream)) {
    refuse_in_capture("the replay of an XPU graph", "graphs hold no other graphs.");
  }
  if (!executable_) instantiate();
  draws_.begin_replay(stream);
  last_ = stream.home_queue()->ext_oneapi_graph(*executable_);
}

void Graph::reset() {
  if (recorded_ && !captured_) stop_recording();
  if (last_ && !is_complete(*last_)) {
    wait_for_device([last = *last_] { return is_complete(last); },
                    [last = *last_] { wait_for_end(last); });
  }
  last_.reset();
  executable_.reset();
  recorded_.reset();
  draws_.clear();
  kept_.clear();
  pool_.reset();
  invalidated_by_.clear();
  captured_ = false;
}

c10::MempoolId_t Graph::pool() const {
  TORCH_CHECK(captured_, "pool() of an XPU graph before capture_end()");
  return pool_->id();
}

void Graph::enable_debug_mode() {
  debug_mode = true;
}

void Graph::debug_dump(const std::string& path) {
  TORCH_CHECK(path.ends_with(".dot"),
              "debug_dump() writes a file that ends with .dot, not ", path);
  if (!recorded_ || !captured_) {
    TORCH_WARN(
        "there is nothing to dump: an XPU graph keeps what it recorded with "
        "keep_graph=True, or if enable_debug_mode() was called before the "
        "capture");
    return;
  }
  recorded_->print_graph(path, /*verbose=*/true);
}

CommandGraph& Graph::raw_graph() {
  TORCH_CHECK(keep_graph_, "raw_xpu_graph() needs XPUGraph(keep_graph=True)");
  check_captured("raw_xpu_graph()");
  return *recorded_;
}

ExecutableGraph& Graph::raw_executable() {
  check_captured("raw_xpu_graph_exec()");
  TORCH_CHECK(executable_, "raw_xpu_graph_exec() before instantiate()");
  return *executable_;
}

}  // namespace xpurt

namespace at {
REGISTER_GRAPH_IMPL(XPU, xpurt::Graph);
}
