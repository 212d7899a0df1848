#include "split.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <mutex>
#include <numeric>
#include <shared_mutex>

#include "device_counts.h"
#include "device_failure.h"
#include "placing.h"
#include "replica.h"

namespace xpurt {
namespace {

struct Asked {
  std::shared_mutex mutex;
  std::vector<double> shares;
  double least_bytes = 0;
  std::atomic<int64_t> unit{0};
};
Asked& asked() {
  static auto* const leaked = new Asked;
  return *leaked;
}
std::atomic<bool> is_asked{false};

bool may_leave(const std::vector<const c10::StorageImpl*>& storages) {
  return std::ranges::all_of(
      storages, [](const auto* storage) { return may_leave_home(*storage); });
}

std::vector<double> asked_shares(const Work& work, Stream& stream) {
  std::shared_lock<std::shared_mutex> lock(asked().mutex);
  const std::vector<double>& shares = asked().shares;
  if (work.bytes < asked().least_bytes) return {};
  return shares.size() == stream.ordinal().devices.size() ? shares
                                                          : std::vector<double>{};
}

// By position; empty: the work is not to be split. They need not add up to 1.
std::vector<double> shares_for(const Work& work, Stream& stream, const RowRun& run) {
  if (is_asked.load(std::memory_order_relaxed)) return asked_shares(work, stream);
  return run.decision != nullptr ? run.decision->shares : std::vector<double>{};
}

// Note [Steady shares]
// ~~~~~~~~~~~~~~~~~~~~
// Shares that follow measured times change with every op, and with them the boundaries
// between the pieces, over which bytes would then be copied at each step of a chain. So
// ops with as many rows are divided as the last one was, until that is more than kDrift
// off what they ask for in the mean. A mean over a few: the ops of a chain differ in
// what they ask for, and each of them would move the boundary its own way.
constexpr double kDrift = 0.05;
constexpr double kNewest = 0.25;  // the weight of the last one in the mean
constexpr size_t kMostKept = 256;

struct SteadyShares {
  std::vector<double> mean;
  std::vector<double> taken;
};
struct Kept {
  std::mutex mutex;
  std::map<std::pair<c10::DeviceIndex, int64_t>, SteadyShares> by_rows;
};
Kept& kept() {
  static auto* const leaked = new Kept;
  return *leaked;
}

std::vector<double> steady(std::vector<double> shares, c10::DeviceIndex index,
                           int64_t rows) {
  std::lock_guard<std::mutex> lock(kept().mutex);
  auto& by_rows = kept().by_rows;
  if (by_rows.size() > kMostKept) by_rows.clear();
  SteadyShares& known = by_rows[{index, rows}];
  const auto both_or_none = [](double a, double b) { return (a > 0) == (b > 0); };
  if (!std::ranges::equal(known.mean, shares, both_or_none)) {
    return known.taken = known.mean = std::move(shares);
  }
  for (size_t p = 0; p < shares.size(); ++p) {
    known.mean[p] += kNewest * (shares[p] - known.mean[p]);
  }
  const auto is_near = [](double a, double b) { return std::abs(a - b) <= kDrift; };
  if (!std::ranges::equal(known.taken, known.mean, is_near)) known.taken = known.mean;
  return known.taken;
}

}  // namespace

void set_split_shares(std::vector<double> shares, double least_bytes, int64_t unit) {
  const auto sound = [](double share) { return share >= 0 && std::isfinite(share); };
  TORCH_CHECK_VALUE(std::ranges::all_of(shares, sound),
                    "the shares of a split are finite and not negative");
  std::unique_lock<std::shared_mutex> lock(asked().mutex);
  is_asked = !shares.empty();
  asked().shares = std::move(shares);
  asked().least_bytes = least_bytes;
  asked().unit = unit;
}

PieceList split(const OpCost& cost, int64_t rows, int64_t unit, Stream& stream,
                RowRun& run) {
  const auto& devices = stream.ordinal().devices;
  if (const int64_t wanted = asked().unit.load(); wanted > 0) unit = wanted;
  if (devices.size() == 1 || rows < 2 * unit || works_on_pieces() ||
      !stream.orders_by_data() || is_staying_home()) {
    return {};
  }
  const Work work = work_of(cost);
  std::vector<double> shares = shares_for(work, stream, run);
  if (shares.empty() || !may_leave({cost.reads.begin(), cost.reads.end()}) ||
      !may_leave({cost.writes.begin(), cost.writes.end()})) {
    return {};
  }
  for (size_t p = 0; p < shares.size(); ++p) {
    if (!can_run(work, *devices[p])) shares[p] = 0;
  }
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  if (sum <= 0) return {};
  for (double& share : shares) share /= sum;
  shares = steady(std::move(shares), stream.id().device_index(), rows);
  PieceList pieces;
  double until = 0;
  int64_t begin = 0;
  for (size_t p = 0; p < shares.size(); ++p) {
    until += shares[p];
    const int64_t units = std::llround(until * static_cast<double>(rows) / unit);
    const int64_t end = std::min(units * unit, rows);
    if (end > begin) pieces.push_back({p, begin, end});
    begin = std::max(begin, end);
  }
  if (pieces.size() < 2) return {};
  pieces.back().end = rows;
  run.fractions.assign(shares.size(), 0.0);
  for (const Piece& piece : pieces) {
    run.fractions[piece.position] =
        static_cast<double>(piece.rows()) / static_cast<double>(rows);
  }
  return pieces;
}

PieceList split_rows(const OpCost& cost, at::ArrayRef<at::Tensor> tensors,
                     Stream& stream, RowRun& run) {
  if (tensors.empty() || !may_split(cost, stream, run)) return {};
  const int64_t rows = rows_in(tensors[0]);
  for (const at::Tensor& tensor : tensors) {
    if (tensor.dim() == 0 || tensor.size(0) != rows || !has_rows_apart(tensor)) {
      return {};
    }
  }
  return split(cost, rows, 1, stream, run);
}

bool is_asked_to_split(const OpCost& cost, Stream& stream) {
  return is_asked.load(std::memory_order_relaxed) && may_split(cost, stream, RowRun());
}

bool may_split(const OpCost& cost, Stream& stream, const RowRun& run) {
  return !works_on_pieces() && !is_staying_home() &&
         !shares_for(work_of(cost), stream, run).empty();
}

at::Tensor view_of(const at::TensorBase& tensor, c10::IntArrayRef sizes,
                   c10::IntArrayRef strides, int64_t offset) {
  auto view = at::detail::make_tensor<c10::TensorImpl>(
      c10::TensorImpl::VIEW, c10::Storage(tensor.storage()), tensor.key_set(),
      tensor.dtype());
  view.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides, offset);
  return view;
}

at::Tensor rows_of(const at::TensorBase& tensor, const Piece& piece, int64_t dim) {
  c10::SmallVector<int64_t, 6> sizes(tensor.sizes().begin(), tensor.sizes().end());
  sizes[dim] = piece.rows();
  return view_of(tensor, sizes, tensor.strides(),
                 tensor.storage_offset() + piece.begin * tensor.stride(dim));
}

bool has_apart(c10::IntArrayRef sizes, c10::IntArrayRef strides, int64_t dim) {
  int64_t last = 0;
  for (int64_t d = 0; d < static_cast<int64_t>(sizes.size()); ++d) {
    if (d != dim) last += (sizes[d] - 1) * strides[d];
  }
  return last < strides[dim];
}

std::vector<uint64_t> pieces_run(c10::DeviceIndex index) {
  std::vector<uint64_t> result;
  for (const PhysicalDevice* device : ordinal(index).devices) {
    result.push_back(device_count_of(device->id).pieces);
  }
  return result;
}

void note_piece(const PhysicalDevice& device, RowRun& run) {
  run.device_id = device.id;
  count_piece(device.id);
}

void note_moved_piece(const std::exception_ptr& error, RowRun& run) {
  run.piece_moved = true;
  try {
    std::rethrow_exception(error);
  } catch (const DeviceFailure& failure) {
    take_out(failure);
  } catch (...) {
  }
}

}  // namespace xpurt
