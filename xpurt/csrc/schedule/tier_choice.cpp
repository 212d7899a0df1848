#include "schedule/tier_choice.h"

#include <ATen/Context.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "host/mutex.h"
#include "op/element_type.h"
#include "op/op_record.h"
#include "program/program_build.h"
#include "schedule/kernel_refusal.h"
#include "stream/capture.h"

namespace xpurt {
namespace {

constexpr char kLetters[kTierTypes + 1] = "fdhbcsilut?";

// For a class that was not measured: the native kernel on a CPU and the row's kernel on
// a GPU, unless times of the program show otherwise.
constexpr TierCosts kUnknown{1, 1.5};
constexpr TierCosts kUnknownGpu{1.5, 1};

// How many size classes away a measured neighbour may be.
constexpr int kNeighbourSizes = 3;

// Calls until the next attempt at a timed sample, after one that was not possible.
constexpr uint32_t kPostponed = 64;

std::atomic<bool> learning{true};
std::atomic<bool> deterministic{false};

// Guards the fields of all buckets that the hot path does not use. Leaked: see
// Note [Leaked on purpose].
Mutex& slow_mutex() {
  static auto* const leaked = new Mutex(Rank::tiers);
  return *leaked;
}
TierCosts bias_us;  // guarded by slow_mutex()

// The index of each type's letter in kLetters: a table for the hot path.
constexpr size_t kScalarTypes = static_cast<size_t>(c10::ScalarType::NumOptions);
const std::array<uint8_t, kScalarTypes> kTypeIndices = [] {
  std::array<uint8_t, kScalarTypes> indices{};
  for (size_t i = 0; i < kScalarTypes; ++i) {
    const char letter = letter_of(static_cast<c10::ScalarType>(i));
    const auto* last = kLetters + kTierTypes - 1;
    indices[i] = static_cast<uint8_t>(std::find(kLetters, last, letter) - kLetters);
  }
  return indices;
}();

size_t type_index(c10::ScalarType type) {
  const auto i = static_cast<size_t>(type);
  return i < kScalarTypes ? kTypeIndices[i] : kTierTypes - 1;
}

bool is_current(const TiersBySize& sizes) {
  return sizes.table_version.load(std::memory_order_acquire) == cost_table_version();
}

// nullptr if there are none yet, or if the table of costs has changed since.
TiersBySize* find_sizes(const OpRecord& record, int device_id,
                        const CallSignature& signature) {
  OpTiers* tiers = record.tiers.load(std::memory_order_acquire);
  while (tiers != nullptr && tiers->device_id != device_id) tiers = tiers->next;
  if (tiers == nullptr) return nullptr;
  TiersBySize* sizes =
      tiers->sizes[type_layout_of(signature)].load(std::memory_order_acquire);
  return sizes != nullptr && is_current(*sizes) ? sizes : nullptr;
}

void set_interval(TierBucket& bucket, uint32_t calls) {
  bucket.interval = calls;
  bucket.calls_left.store(calls, std::memory_order_relaxed);
}

// Under the mutex.
void forget(TiersBySize& sizes) {
  for (TierBucket& bucket : sizes.buckets) {
    bucket.flags.store(0, std::memory_order_relaxed);
    bucket.learner.reset();
    set_interval(bucket, 0);
  }
}

// Under the mutex.
TiersBySize& make_sizes(OpRecord& record, int device_id,
                        const CallSignature& signature) {
  OpTiers* first = record.tiers.load(std::memory_order_acquire);
  OpTiers* tiers = first;
  while (tiers != nullptr && tiers->device_id != device_id) tiers = tiers->next;
  if (tiers == nullptr) {
    tiers = new OpTiers;
    tiers->device_id = device_id;
    tiers->next = first;
    record.tiers.store(tiers, std::memory_order_release);
  }
  auto& slot = tiers->sizes[type_layout_of(signature)];
  TiersBySize* sizes = slot.load(std::memory_order_acquire);
  if (sizes == nullptr) {
    sizes = new TiersBySize;
    sizes->table_version = cost_table_version();
    slot.store(sizes, std::memory_order_release);
  } else if (!is_current(*sizes)) {
    const uint64_t version = cost_table_version();
    forget(*sizes);
    sizes->table_version.store(version, std::memory_order_release);
  }
  return *sizes;
}

bool frozen() {
  return !learning.load(std::memory_order_relaxed) || is_deterministic() ||
         capture_is_underway();
}

TierCosts expected(const RowKernel& row, int device_id, bool is_cpu,
                   const CallSignature& signature, size_t size_class) {
  const double elements =
      std::exp2(static_cast<double>(size_class + kMinSizeLog2) + 0.5);
  const auto found = expected_costs(device_id, row.prior.cost_class,
                                    kLetters[type_index(signature.type())],
                                    signature.layout(), elements);
  return found.value_or(is_cpu ? kUnknown : kUnknownGpu);
}

// The expected costs, corrected by the measured costs of the nearest size.
TierCosts corrected(const RowKernel& row, int device_id, bool is_cpu,
                    const CallSignature& signature, const TiersBySize& sizes,
                    size_t size_class) {
  TierCosts us = expected(row, device_id, is_cpu, signature, size_class);
  for (int away = 1; away <= kNeighbourSizes; ++away) {
    for (const int side : {-away, away}) {
      const int other = static_cast<int>(size_class) + side;
      if (other < 0 || other >= static_cast<int>(sizes.buckets.size())) continue;
      const TierLearner* learner = sizes.buckets[other].learner.get();
      if (learner == nullptr || !learner->has_measured(false) ||
          !learner->has_measured(true)) {
        continue;
      }
      const TierCosts seen = learner->estimate();
      const TierCosts guessed = expected(row, device_id, is_cpu, signature, other);
      us.native *= seen.native / guessed.native;
      us.kernel *= seen.kernel / guessed.kernel;
      return us;
    }
  }
  return us;
}

void publish(TierBucket& bucket, bool table_kernel) {
  uint8_t flags = TierBucket::kKnown;
  if (table_kernel) flags |= TierBucket::kTableKernel;
  const bool learned =
      bucket.learner != nullptr ? bucket.learner->kernel() : table_kernel;
  if (learned) flags |= TierBucket::kLearnedKernel;
  bucket.flags.store(flags, std::memory_order_relaxed);
}

}  // namespace

size_t size_class_of(int64_t elements) {
  const int log2 = std::bit_width(static_cast<uint64_t>(elements)) - 1;
  return std::clamp(log2, kMinSizeLog2, kMaxSizeLog2) - kMinSizeLog2;
}

size_t type_layout_of(const CallSignature& signature) {
  return type_index(signature.type()) * kLayouts +
         static_cast<size_t>(signature.layout());
}

char letter_at(size_t type_layout_of) {
  return kLetters[type_layout_of / kLayouts];
}

QuickChoice quick_tier(const OpRecord& record, int device_id,
                       const CallSignature& signature, int64_t elements) {
  TiersBySize* sizes = find_sizes(record, device_id, signature);
  if (sizes == nullptr) return {};
  TierBucket& bucket = sizes->buckets[size_class_of(elements)];
  const uint8_t flags = bucket.flags.load(std::memory_order_relaxed);
  if ((flags & TierBucket::kKnown) == 0) return {};
  QuickChoice choice;
  uint8_t decides = TierBucket::kTableKernel;
  if (!frozen()) {
    decides = TierBucket::kLearnedKernel;
    if (bucket.calls_left.load(std::memory_order_relaxed) == 0) return {};
    choice.calls_left = &bucket.calls_left;
  }
  choice.tier = (flags & decides) != 0 ? QuickTier::kernel : QuickTier::native;
  return choice;
}

TierPlan plan_tier(OpRecord& record, const RowKernel& row, int device_id, bool is_cpu,
                   const CallSignature& signature, int64_t elements, bool learns) {
  std::lock_guard<Mutex> lock(slow_mutex());
  TiersBySize& sizes = make_sizes(record, device_id, signature);
  const size_t size_class = size_class_of(elements);
  TierBucket& bucket = sizes.buckets[size_class];
  if (is_refused(record, device_id, signature.type())) {
    bucket.learner.reset();
    set_interval(bucket, UINT32_MAX);
    publish(bucket, false);
    return {};
  }
  uint8_t flags = bucket.flags.load(std::memory_order_relaxed);
  if ((flags & TierBucket::kKnown) == 0) {
    const TierCosts us = expected(row, device_id, is_cpu, signature, size_class);
    publish(bucket, us.kernel < us.native);
    flags = bucket.flags.load(std::memory_order_relaxed);
  }
  const bool by_table = (flags & TierBucket::kTableKernel) != 0;
  if (!learns || frozen()) return {by_table, nullptr, {}};
  const double build_us =
      row.prior.build_us >= 0 ? row.prior.build_us : expected_build_us();
  if (bucket.learner == nullptr) {
    const TierCosts us =
        corrected(row, device_id, is_cpu, signature, sizes, size_class);
    bucket.learner = std::make_unique<TierLearner>(us, sizes.built);
    publish(bucket, by_table);
  }
  const TierLearner::TimedSample sample =
      bucket.learner->next(bucket.interval, sizes.built ? 0 : build_us);
  set_interval(bucket, kPostponed);
  return {sample.kernel, &bucket, sample};
}

void postpone_sample(OpRecord& record, int device_id, const CallSignature& signature,
                     int64_t elements) {
  std::lock_guard<Mutex> lock(slow_mutex());
  TiersBySize* sizes = find_sizes(record, device_id, signature);
  if (sizes == nullptr) return;
  TierBucket& bucket = sizes->buckets[size_class_of(elements)];
  if ((bucket.flags.load(std::memory_order_relaxed) & TierBucket::kKnown) != 0) {
    set_interval(bucket, kPostponed);
  }
}

void record_sample(OpRecord& record, int device_id, const CallSignature& signature,
                   int64_t elements, const TierPlan& plan, double us, double stall_us) {
  std::lock_guard<Mutex> lock(slow_mutex());
  TiersBySize& sizes = make_sizes(record, device_id, signature);
  TierBucket& bucket = sizes.buckets[size_class_of(elements)];
  // What was learned may have been forgotten since the plan.
  if (&bucket != plan.timed || bucket.learner == nullptr) return;
  if (plan.sample.kernel) sizes.built = true;
  bucket.learner->record(plan.sample,
                         us + (plan.sample.kernel ? bias_us.kernel : bias_us.native),
                         stall_us);
  set_interval(bucket, bucket.learner->interval());
  publish(bucket, (bucket.flags.load(std::memory_order_relaxed) &
                   TierBucket::kTableKernel) != 0);
}

void forget_tiers(OpRecord& record) {
  std::lock_guard<Mutex> lock(slow_mutex());
  OpTiers* tiers = record.tiers.load(std::memory_order_acquire);
  for (; tiers != nullptr; tiers = tiers->next) {
    for (auto& slot : tiers->sizes) {
      TiersBySize* sizes = slot.load(std::memory_order_acquire);
      if (sizes != nullptr) forget(*sizes);
    }
  }
}

void forget_tiers() {
  for_each_op_record([](OpRecord& record) { forget_tiers(record); });
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
  std::lock_guard<Mutex> lock(slow_mutex());
  bias_us = us;
}

std::vector<LearnedTier> learned_tiers() {
  std::vector<LearnedTier> found;
  for_each_op_record([&](OpRecord& record) {
    std::lock_guard<Mutex> lock(slow_mutex());
    OpTiers* tiers = record.tiers.load(std::memory_order_acquire);
    for (; tiers != nullptr; tiers = tiers->next) {
      for (size_t i = 0; i < tiers->sizes.size(); ++i) {
        const TiersBySize* sizes = tiers->sizes[i].load(std::memory_order_acquire);
        if (sizes == nullptr || !is_current(*sizes)) continue;
        for (size_t k = 0; k < sizes->buckets.size(); ++k) {
          const TierBucket& bucket = sizes->buckets[k];
          if (bucket.learner == nullptr) continue;
          const uint8_t flags = bucket.flags.load(std::memory_order_relaxed);
          found.push_back({record.name, tiers->device_id, letter_at(i),
                           static_cast<OperandLayout>(i % kLayouts),
                           static_cast<int>(k) + kMinSizeLog2,
                           (flags & TierBucket::kTableKernel) != 0,
                           bucket.learner->kernel(),
                           bucket.calls_left.load(std::memory_order_relaxed),
                           bucket.learner->estimate()});
        }
      }
    }
  });
  return found;
}

}  // namespace xpurt
