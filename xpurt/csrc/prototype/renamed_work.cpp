#include "prototype/renamed_work.h"

namespace xpurt {

using c10::ivalue::Future;

void RenamedWork::copy_back() {
  std::call_once(copies_are_back_, [&] {
    for (const auto& each : copied_) each->finish_arguments();
  });
}

bool RenamedWork::isCompleted() {
  if (!behind_->isCompleted()) return false;
  if (behind_->isSuccess()) copy_back();
  return true;
}

void RenamedWork::synchronize() {
  behind_->synchronize();
  copy_back();
}

bool RenamedWork::wait(std::chrono::milliseconds timeout) {
  const bool ended = behind_->wait(timeout);
  copy_back();
  return ended;
}

// A future knows devices of one type, and its value has tensors on these. The streams
// of xpu are those of a prototype that it is behind.
c10::intrusive_ptr<Future> RenamedWork::getFuture() {
  const auto behind = behind_->getFuture();
  std::vector<c10::Device> devices;
  if (!results_.empty()) {
    for (const c10::Device& each : behind->devices()) {
      devices.emplace_back(results_.front().device().type(), each.index());
    }
  }
  auto own = c10::make_intrusive<Future>(c10::ListType::create(c10::TensorType::get()),
                                         devices);
  auto self = c10::intrusive_ptr<RenamedWork>::unsafe_reclaim_from_nonowning(this);
  behind->addCallback([self = std::move(self), own](Future& ended) {
    if (ended.hasError()) return own->setError(ended.exception_ptr());
    try {
      self->copy_back();
      own->markCompleted(c10::IValue(c10::List<at::Tensor>(self->results_)));
    } catch (...) {
      own->setError(std::current_exception());
    }
  });
  return own;
}

}  // namespace xpurt
