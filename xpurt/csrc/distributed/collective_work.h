// What the caller of a collective waits for.
#pragma once

#include <ATen/core/ivalue.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <functional>
#include <string>

#include "distributed/collective.h"
#include "host/mutex.h"
#include "stream/host_event.h"

namespace xpurt {

// Note [Waiting for a collective]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// On a device whose memory the host does not read, a wait() blocks the current stream
// and not the host, as NCCL's does. The copies of the results to the device are
// submitted within the call, to streams of their own. These streams wait for an event
// that a thread of the inner backend completes: a HostEvent. The future is complete at
// once, as NCCL's is: its callbacks run with streams that are ordered after the copies.
// If the collective fails later, the event is completed nonetheless. Before that, the
// error is given to all streams that have pending work on the device. Streams that wait
// for the results are among them. So the error is raised by the next wait() of the work
// and by the next synchronization of such a stream.
//
// The host waits
// - for results in memory that the host reads. The next op may be a kernel of PyTorch
//   for CPU tensors. It runs on the host at once, and would have to wait for the
//   stream. An error would arrive at some later synchronization, and nothing would be
//   gained.
// - for sends and receives: gloo ends them within wait(). For sparse results, whose
//   sizes are not known before, and strided ones, which the host converts. For
//   barriers, and other collectives without results.
// - if wait() has a timeout, or TORCH_XCCL_BLOCKING_WAIT=1 is set.
// - on a backend of SYCL other than OpenCL, for which there is no HostEvent.
class CollectiveWork : public c10d::Work {
 public:
  using Finish = std::function<void(HostForms& host)>;

  // `title`: names the collective and the rank in an error.
  CollectiveWork(c10d::OpType type, std::string title, Tensors results,
                 const std::vector<c10::Device>& devices);

  // Submits the copies of results to the device now, to streams that wait for the end
  // of the collective. Returns false, and does nothing, where the host has to wait.
  bool queue_results(HostForms& host);
  // The inner backend's work of a collective, which ends by itself.
  // `finish`: the last step on the host.
  void follow(const WorkPointer& inner, std::shared_ptr<HostForms> host, Finish finish);
  // The collective was not launched. `in_call`: the call of the collective throws the
  // error.
  virtual void fail_to_launch(std::exception_ptr error, bool in_call);
  // The error of the launch, for the thread that launched it; nullptr if there is none.
  const std::exception_ptr& launch_error() const { return launch_error_; }

  void synchronize() override;
  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;
  void blockCurrentStream() override { wait(); }
  Tensors result() override { return results_; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }

 protected:
  std::exception_ptr explained(std::exception_ptr error) const;
  void deliver(HostForms& host, const Finish& finish);
  void copy_results(HostForms& host);
  void end();
  void fail(const std::exception_ptr& error);

  const std::string title_;
  const Tensors results_;
  const c10::intrusive_ptr<c10::ivalue::Future> future_;
  std::exception_ptr launch_error_;
  // Not empty if the results are queued. They wait for these, one for each device.
  std::vector<std::shared_ptr<HostEvent>> ends_;
  std::vector<c10::Stream> copying_;
};

// A send or a receive. The inner backend ends it within its own wait().
class PeerWork final : public CollectiveWork {
 public:
  using CollectiveWork::CollectiveWork;

  void follow_peer(WorkPointer inner, std::shared_ptr<HostForms> host);
  void fail_to_launch(std::exception_ptr error, bool in_call) override;
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
