// What a caller of a collective on a prototype waits for.
#pragma once

#include <torch/csrc/distributed/c10d/Work.hpp>

#include <memory>
#include <vector>

#include "host/mutex.h"
#include "prototype/renamed_call.h"

namespace xpurt {

// The work of the device behind, with results of the prototype.
class RenamedWork final : public c10d::Work {
 public:
  // `copied`: calls whose written arguments are given back when the work has ended.
  // They live as long as this.
  RenamedWork(c10d::OpType type, c10::intrusive_ptr<c10d::Work> behind,
              std::vector<std::shared_ptr<RenamedCall>> copied,
              std::vector<at::Tensor> results)
      : Work(-1, type),
        behind_(std::move(behind)),
        copied_(std::move(copied)),
        results_(std::move(results)) {}

  bool isCompleted() override;
  bool isSuccess() const override { return behind_->isSuccess(); }
  std::exception_ptr exception() const override { return behind_->exception(); }
  int sourceRank() const override { return behind_->sourceRank(); }
  void synchronize() override;
  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;
  void abort() override { behind_->abort(); }
  std::vector<at::Tensor> result() override { return results_; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;

  const std::vector<std::shared_ptr<RenamedCall>>& copied() const { return copied_; }

 private:
  void copy_back();

  const c10::intrusive_ptr<c10d::Work> behind_;
  const std::vector<std::shared_ptr<RenamedCall>> copied_;
  const std::vector<at::Tensor> results_;
  std::once_flag copies_are_back_;
};

}  // namespace xpurt
