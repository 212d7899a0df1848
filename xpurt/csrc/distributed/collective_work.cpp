#include "distributed/collective_work.h"

#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "device/device.h"
#include "host/gil.h"
#include "stream/stream.h"

namespace xpurt {
namespace {

using c10::ivalue::Future;

c10::intrusive_ptr<Future> make_future(const std::vector<c10::Device>& devices) {
  return c10::make_intrusive<Future>(c10::ListType::create(c10::TensorType::get()),
                                     devices);
}

std::vector<c10::Stream> streams_of_pool(const std::vector<c10::Device>& devices) {
  const c10::impl::VirtualGuardImpl impl(c10::DeviceType::XPU);
  std::vector<c10::Stream> streams;
  for (const c10::Device& device : devices) {
    streams.push_back(impl.getStreamFromGlobalPool(device));
  }
  return streams;
}

std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const c10::Error& each) {
    return each.what_without_backtrace();
  } catch (const std::exception& each) {
    return each.what();
  }
}

}  // namespace

CollectiveWork::CollectiveWork(c10d::OpType type, std::string title, Tensors results,
                               const std::vector<c10::Device>& devices)
    : Work(-1, type),
      title_(std::move(title)),
      results_(std::move(results)),
      future_(make_future(devices)) {}

std::exception_ptr CollectiveWork::explained(std::exception_ptr error) const {
  return std::make_exception_ptr(c10::DistBackendError(
      {__func__, __FILE__, static_cast<uint32_t>(__LINE__)},
      c10::str(title_, " failed: ", text_of(error),
               ". Another rank may have ended, be late, or have called another "
               "collective: TORCH_DISTRIBUTED_DEBUG=DETAIL compares the calls of all "
               "ranks.")));
}

void CollectiveWork::end() {
  for (const auto& each : ends_) each->complete();
  finish();
}

// The error is set first, and the events are completed last. So a stream either waits
// for the results when the busy streams are found, or its wait() throws the error.
void CollectiveWork::fail(const std::exception_ptr& error) {
  finish(error);
  if (ends_.empty()) return future_->setErrorIfNeeded(error);
  for (const c10::Stream& copying : copying_) {
    for (Stream* each : busy_streams(copying.device_index())) {
      if (each->id() != copying) each->fail(error);
    }
  }
  for (const auto& each : ends_) each->complete();
}

void CollectiveWork::fail_to_launch(std::exception_ptr error, bool in_call) {
  if (!in_call) return fail(explained(error));
  launch_error_ = error;
  ends_.clear();
  fail(error);
}

bool CollectiveWork::queue_results(HostForms& host) {
  if (!host.has_queued_results()) return false;
  std::vector<std::shared_ptr<HostEvent>> ends;
  for (const c10::Device& device : host.devices()) {
    ends.push_back(HostEvent::make(ordinal(device.index()).home_device().context));
    if (ends.back() == nullptr) return false;
  }
  ends_ = std::move(ends);
  copying_ = streams_of_pool(host.devices());
  for (size_t i = 0; i < ends_.size(); ++i) {
    stream(copying_[i]).wait_event(ends_[i]->event());
  }
  copy_results(host);
  return true;
}

// The results are copied to a device on streams of their own. The future records events
// there.
void CollectiveWork::copy_results(HostForms& host) {
  std::optional<c10::MultiStreamGuard> guard;
  if (!copying_.empty()) guard.emplace(copying_);
  auto storages = host.deliver();
  const c10::impl::VirtualGuardImpl impl(c10::DeviceType::XPU);
  for (const auto& each : storages) {
    const auto storage = each.lock();
    for (const c10::Stream& copying : copying_) {
      if (copying.device() == storage->device()) {
        impl.recordDataPtrOnStream(storage->data_ptr(), copying);
      }
    }
  }
  future_->markCompleted(c10::IValue(c10::List<at::Tensor>(results_)),
                         std::move(storages));
}

void CollectiveWork::deliver(HostForms& host, const Finish& finish) {
  if (finish) finish(host);
  if (ends_.empty()) {
    if (host.is_staged()) copying_ = streams_of_pool(host.devices());
    copy_results(host);
  }
  end();
}

void CollectiveWork::follow(const WorkPointer& inner, std::shared_ptr<HostForms> host,
                            Finish finish) {
  auto self = c10::intrusive_ptr<CollectiveWork>::unsafe_reclaim_from_nonowning(this);
  // The future of the inner work holds this, and this does not hold the inner work.
  inner->getFuture()->addCallback(
      [self, host = std::move(host), finish = std::move(finish)](Future& done) {
        if (done.hasError()) {
          self->fail(self->explained(done.exception_ptr()));
          return;
        }
        try {
          self->deliver(*host, finish);
        } catch (...) {
          if (!self->isCompleted()) self->fail(std::current_exception());
        }
      },
      /*uses_future=*/false);
}

void CollectiveWork::synchronize() {
  if (future_->hasValue()) future_->wait();
}

bool CollectiveWork::wait(std::chrono::milliseconds timeout) {
  const WithoutGil released;
  if (ends_.empty() || timeout != kNoTimeout) return Work::wait(timeout);
  future_->wait();
  if (const std::exception_ptr error = exception()) std::rethrow_exception(error);
  return true;
}

void PeerWork::follow_peer(WorkPointer inner, std::shared_ptr<HostForms> host) {
  const std::lock_guard<Mutex> lock(mutex_);
  inner_ = std::move(inner);
  host_ = std::move(host);
  changed_.notify_all();
}

void PeerWork::fail_to_launch(std::exception_ptr error, bool in_call) {
  CollectiveWork::fail_to_launch(std::move(error), in_call);
  const std::lock_guard<Mutex> lock(mutex_);
  changed_.notify_all();
}

WorkPointer PeerWork::launched() const {
  const std::lock_guard<Mutex> lock(mutex_);
  return inner_;
}

// Returns whether this thread is to wait in the inner backend: another one may do that
// already, or have done it.
bool PeerWork::begin_wait() {
  std::unique_lock<Mutex> lock(mutex_);
  changed_.wait(lock, [this] { return inner_ != nullptr || isCompleted(); });
  return !isCompleted() && !std::exchange(has_waiter_, true);
}

void PeerWork::wait_in_backend(std::chrono::milliseconds timeout) {
  try {
    inner_->wait(timeout);
    deliver(*host_, nullptr);
  } catch (...) {
    if (!isCompleted()) fail(explained(std::current_exception()));
  }
  host_ = nullptr;
}

bool PeerWork::wait(std::chrono::milliseconds timeout) {
  const WithoutGil released;
  if (begin_wait()) wait_in_backend(timeout);
  return Work::wait(kNoTimeout);
}

int PeerWork::sourceRank() const {
  const WorkPointer inner = launched();
  TORCH_CHECK(inner != nullptr, "the source of a receive is known after wait()");
  return inner->sourceRank();
}

void PeerWork::abort() {
  if (const WorkPointer inner = launched()) inner->abort();
}

c10::intrusive_ptr<Future> PeerWork::getFuture() {
  TORCH_CHECK_NOT_IMPLEMENTED(
      false, title_, " has no future: gloo ends it within wait(). Call wait().");
}

bool JoinedWork::isCompleted() {
  for (const WorkPointer& each : parts_) {
    if (!each->isCompleted()) return false;
  }
  return true;
}

bool JoinedWork::isSuccess() const {
  for (const WorkPointer& each : parts_) {
    if (!each->isSuccess()) return false;
  }
  return true;
}

std::exception_ptr JoinedWork::exception() const {
  for (const WorkPointer& each : parts_) {
    if (auto error = each->exception()) return error;
  }
  return nullptr;
}

void JoinedWork::synchronize() {
  for (const WorkPointer& each : parts_) each->synchronize();
}

bool JoinedWork::wait(std::chrono::milliseconds timeout) {
  std::exception_ptr first;
  for (const WorkPointer& each : parts_) {
    try {
      each->wait(timeout);
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  }
  if (first) std::rethrow_exception(first);
  return true;
}

void JoinedWork::abort() {
  for (const WorkPointer& each : parts_) each->abort();
}

// Completes after the futures of all parts, with their values in one list. The last one
// to end records the events: its callback runs on streams that wait for the others.
c10::intrusive_ptr<Future> JoinedWork::getFuture() {
  std::vector<c10::intrusive_ptr<Future>> futures;
  std::vector<c10::Device> devices;
  for (const WorkPointer& each : parts_) {
    futures.push_back(each->getFuture());
    const auto& some = futures.back()->devices();
    devices.insert(devices.end(), some.begin(), some.end());
  }
  auto joined = make_future(devices);
  const auto left = std::make_shared<std::atomic<size_t>>(futures.size());
  const auto end = [=, results = results_] {
    for (const auto& each : futures) {
      if (each->hasError()) return joined->setError(each->exception_ptr());
    }
    for (const auto& each : futures) each->wait();
    joined->markCompleted(c10::IValue(c10::List<at::Tensor>(results)));
  };
  if (futures.empty()) end();
  for (const auto& each : futures) {
    each->addCallback([left, end](Future&) {
      if (--*left == 0) end();
    });
  }
  return joined;
}

}  // namespace xpurt
