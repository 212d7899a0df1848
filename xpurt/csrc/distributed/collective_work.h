// What the caller of a collective waits for.
#pragma once

#include <ATen/core/ivalue.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <functional>
#include <string>

#include "distributed/collective.h"
#include "host/mutex.h"

namespace xpurt {

// Note [Waiting for a collective]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// wait() returns when the inner backend is done, as gloo's does for CPU tensors, and so
// it raises the collective's own error. If results are still copied to the device, the
// current stream waits for that, and the host does not. The future is PyTorch's: its
// callbacks run with streams that are ordered after the results.
//
// Rejected: a wait() that blocks only the stream, as NCCL's. On a CPU device the next
// op on the host would wait for the stream at once, and an error would arrive at some
// later synchronization, without the collective's name.
class CollectiveWork : public c10d::Work {
 public:
  using Finish = std::function<void(HostForms& host)>;

  // `title`: names the collective and the rank in an error.
  CollectiveWork(c10d::OpType type, std::string title, Tensors results,
                 const std::vector<c10::Device>& devices);

  // The inner backend's work of a collective, which ends by itself.
  // `finish`: the last step on the host.
  void follow(const WorkPointer& inner, std::shared_ptr<HostForms> host, Finish finish);
  // The collective was not launched.
  virtual void fail_to_launch(std::exception_ptr error);
  // The error of the launch, for the thread that launched it; nullptr if there is none.
  const std::exception_ptr& launch_error() const { return launch_error_; }

  void synchronize() override;
  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;
  Tensors result() override { return results_; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }

 protected:
  std::exception_ptr explained(std::exception_ptr error) const;
  void deliver(HostForms& host, const Finish& finish);
  void end(std::exception_ptr error,
           std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>> storages);

  const std::string title_;
  const Tensors results_;
  const c10::intrusive_ptr<c10::ivalue::Future> future_;
  std::exception_ptr launch_error_;
};

// A send or a receive. The inner backend ends it within its own wait().
class PeerWork final : public CollectiveWork {
 public:
  using CollectiveWork::CollectiveWork;

  void follow_peer(WorkPointer inner, std::shared_ptr<HostForms> host);
  void fail_to_launch(std::exception_ptr error) override;
  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;
  int sourceRank() const override;
  void abort() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;

 private:
  WorkPointer launched() const;
  bool begin_wait();
  void wait_in_backend(std::chrono::milliseconds timeout);

  mutable Mutex mutex_{Rank::peer_launch};
  Condition changed_;
  bool has_waiter_ = false;  // a thread waits in the inner backend
  WorkPointer inner_;        // nullptr before the launch
  std::shared_ptr<HostForms> host_;
};

// Several works as one.
class JoinedWork final : public c10d::Work {
 public:
  JoinedWork(c10d::OpType type, std::vector<WorkPointer> parts, Tensors results)
      : Work(-1, type), parts_(std::move(parts)), results_(std::move(results)) {}

  bool isCompleted() override;
  bool isSuccess() const override;
  std::exception_ptr exception() const override;
  void synchronize() override;
  // Waits for all of them, and throws the first error then.
  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;
  void abort() override;
  Tensors result() override { return results_; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;

 private:
  const std::vector<WorkPointer> parts_;
  const Tensors results_;
};

}  // namespace xpurt
