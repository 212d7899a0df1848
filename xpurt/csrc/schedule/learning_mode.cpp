#include "schedule/learning_mode.h"

#include <ATen/Context.h>

#include <atomic>

#include "stream/capture.h"

namespace xpurt {
namespace {

std::atomic<bool> learning{true};
std::atomic<bool> deterministic{false};
std::atomic<double> bias_native_us{0}, bias_kernel_us{0};

}  // namespace

LearningMode learning_mode() {
  if (C10_UNLIKELY(is_deterministic())) return LearningMode::planned;
  const bool learns =
      learning.load(std::memory_order_relaxed) && !capture_is_underway();
  return learns ? LearningMode::learns : LearningMode::table;
}

void set_learning(bool on) {
  learning = on;
}

bool learning_is_on() {
  return learning;
}

void set_deterministic(bool on) {
  deterministic = on;
}

bool is_deterministic() {
  return deterministic.load(std::memory_order_relaxed) ||
         at::globalContext().deterministicAlgorithms();
}

void set_learning_bias(TierCosts us) {
  bias_native_us = us.native;
  bias_kernel_us = us.kernel;
}

TierCosts learning_bias() {
  return {bias_native_us, bias_kernel_us};
}

}  // namespace xpurt
