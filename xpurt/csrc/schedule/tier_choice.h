// The choice of a tier under the policy `automatic`, if both a row's kernel and
// PyTorch's CPU kernel can run the op on the same bytes.
#pragma once

#include <c10/core/ScalarType.h>
#include <c10/core/TensorImpl.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "op/cost_table.h"
#include "schedule/tier_learner.h"

namespace xpurt {

struct OpRecord;
struct RowKernel;

// Below so many elements (see RowPrior) the native kernel is taken without any check:
// it finishes before another kernel could have been launched.
constexpr int64_t kTierFloor = 1024;

// The properties of one call's operands that the choice depends on.
class CallSignature {
 public:
  void record(const c10::TensorImpl& tensor) {
    const int64_t elements = tensor.numel();
    if (elements > 1) {
      differ_ |= elements != elements_ && elements_ > 1;
      strided_ |= !tensor.is_non_overlapping_and_dense();
      (tensor.is_contiguous() ? contiguous_ : permuted_) = true;
    }
    if (elements > elements_) {
      elements_ = elements;
      type_ = tensor.dtype();
    }
  }

  // Records an op that runs along these dimensions of the tensor, such as a sum. Empty:
  // along all of them.
  void record_dims(const c10::TensorImpl& tensor, c10::IntArrayRef dims) {
    if (dims.empty() || tensor.dim() < 2 || !tensor.is_contiguous()) return;
    const c10::IntArrayRef sizes = tensor.sizes();
    const auto count = static_cast<int64_t>(sizes.size());
    int64_t length = 1;
    bool across = true;
    for (const int64_t given : dims) {
      const int64_t dim = given < 0 ? given + count : given;
      if (dim < 0 || dim >= count) return;  // an error, which the op itself raises
      length *= sizes[dim];
      across &= dim != count - 1;
    }
    run_along(across, length);
  }

  // Records an op that runs along the `dims` innermost dimensions of the tensor, such
  // as a layer normalization.
  void record_line(const c10::TensorImpl& tensor, size_t dims) {
    const c10::IntArrayRef sizes = tensor.sizes();
    if (dims >= sizes.size() || !tensor.is_contiguous()) return;
    int64_t length = 1;
    for (const int64_t size : sizes.slice(sizes.size() - dims)) length *= size;
    run_along(false, length);
  }

  // Records an op that runs along all dimensions except the channels.
  void record_channels(const c10::TensorImpl& tensor) {
    if (tensor.dim() > 1 && tensor.is_contiguous()) run_along(true, 1);
  }

  int64_t elements() const { return elements_; }  // of the largest operand
  c10::ScalarType type() const { return c10::typeMetaToScalarType(type_); }
  OperandLayout layout() const {
    if (strided_ || (contiguous_ && permuted_)) return OperandLayout::strided;
    if (along_ != OperandLayout::alike) return along_;
    return differ_ ? OperandLayout::mixed : OperandLayout::alike;
  }

 private:
  void run_along(bool across, int64_t length) {
    if (across) {
      along_ = OperandLayout::across;
    } else if (length > kLongLine) {
      along_ = OperandLayout::long_lines;
    }
  }

  int64_t elements_ = 0;
  caffe2::TypeMeta type_ = caffe2::TypeMeta::Make<float>();
  bool differ_ = false;
  bool strided_ = false;
  bool contiguous_ = false;                     // some operand is contiguous
  bool permuted_ = false;                       // some operand is not contiguous
  OperandLayout along_ = OperandLayout::alike;  // by the direction the op runs along
};

// Calls of one op, type, layout and size class on one device. The hot path uses only
// the two atomics; a mutex guards the rest.
struct TierBucket {
  enum : uint8_t { kKnown = 1, kTableKernel = 2, kLearnedKernel = 4 };
  std::atomic<uint8_t> flags{0};
  std::atomic<uint32_t> calls_left{0};  // calls to the learner's next timed sample
  uint32_t interval = 0;                // initial value of calls_left
  std::unique_ptr<TierLearner> learner;
};

// Size class k has 2^k to 2^(k+1) elements.
constexpr int kMinSizeLog2 = 10, kMaxSizeLog2 = 40;
constexpr size_t kSizeClasses = kMaxSizeLog2 - kMinSizeLog2 + 1;
constexpr int kTierTypes = 11;  // the letters of element_type.h, and one for the rest
constexpr size_t kTypeLayouts = kTierTypes * kLayouts;

// The index of calls by the number of elements, and by type and layout.
size_t size_class_of(int64_t elements);
size_t type_layout_of(const CallSignature& signature);
// The type's letter of an index by type and layout; '?' for a type without kernels.
char letter_at(size_t type_layout_of);

struct TiersBySize {
  // Version of the table of costs that all decisions here are based on.
  std::atomic<uint64_t> table_version{0};
  std::array<TierBucket, kSizeClasses> buckets;
  bool built = false;  // a kernel of one of the buckets has run
};
struct OpTiers {
  int device_id = 0;
  OpTiers* next = nullptr;  // of another device
  // By type and layout. Made at the first use, and never freed.
  std::array<std::atomic<TiersBySize*>, kTypeLayouts> sizes{};
};

// How a call is to be run.
struct TierPlan {
  bool kernel = false;
  TierBucket* timed = nullptr;  // set if the call is a timed sample of this bucket
  TierLearner::TimedSample sample;
};

enum class QuickTier { native, kernel, undecided };

// The cached decision for such calls. Reading it counts nothing, since a call may read
// it twice. The call that follows it calls take() once.
struct QuickChoice {
  QuickTier tier = QuickTier::undecided;
  std::atomic<uint32_t>* calls_left =
      nullptr;  // calls to the learner's next timed sample, if there is a learner

  void take() const {
    if (calls_left == nullptr) return;
    // Not atomic as a whole: a count that is lost between threads does no harm.
    const uint32_t left = calls_left->load(std::memory_order_relaxed);
    if (left > 0) calls_left->store(left - 1, std::memory_order_relaxed);
  }
};

// Takes well under 100 ns: no lock, no map.
QuickChoice quick_tier(const OpRecord& record, int device_id,
                       const CallSignature& signature, int64_t elements);

// Decides the tier, and whether the call is a timed sample. `learns`: false for a call
// that is not to be timed.
TierPlan plan_tier(OpRecord& record, const RowKernel& row, int device_id, bool is_cpu,
                   const CallSignature& signature, int64_t elements, bool learns);

// Records that this call cannot be a timed sample; a later call will be.
void postpone_sample(OpRecord& record, int device_id, const CallSignature& signature,
                     int64_t elements);
void record_sample(OpRecord& record, int device_id, const CallSignature& signature,
                   int64_t elements, const TierPlan& plan, double us, double stall_us);

// Discards everything that was decided and learned; decisions start again from the
// table of costs. A change of that table has the same effect: see cost_table_version().
void forget_tiers();
void forget_tiers(OpRecord& record);

// Whether times of the running program influence the choice. The table of costs alone
// decides if it is off, with torch.use_deterministic_algorithms(True), and while an XPU
// graph is captured.
void set_learning(bool on);
bool learning_is_on();

// Whether results have to repeat bit for bit: then no time of this run influences any
// decision. On with torch.use_deterministic_algorithms(True), too.
void set_deterministic(bool on);
bool is_deterministic();

// For tests: microseconds that are added to every time that is learned from.
void set_learning_bias(TierCosts us);

struct LearnedTier {
  std::string op;
  int device_id;
  char letter;  // '?' for a type without kernels
  OperandLayout layout;
  int size;  // binary logarithm of the elements, rounded down
  bool table_kernel;
  bool learned_kernel;
  uint32_t calls_left;  // calls to the learner's next timed sample
  TierCosts us;
};
std::vector<LearnedTier> learned_tiers();

}  // namespace xpurt
