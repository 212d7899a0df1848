#include "op/cost_table.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "device/device.h"
#include "host/mutex.h"

namespace xpurt {
namespace {

using DevicePosition = std::pair<c10::DeviceIndex, size_t>;  // in the placement
using Key = std::tuple<DevicePosition, CostClass, char, OperandLayout>;

// Leaked: read from any thread, at any time before the process ends.
struct Table {
  Mutex mutex{Rank::cost_table};
  std::map<std::string, CostClass> classes;
  std::map<Key, std::vector<CostPoint>> curves;
};

Table& table() {
  static Table* const leaked = new Table;
  return *leaked;
}

std::atomic<uint64_t> changes{0};

// The type whose curve stands for a type that was not measured; 0 ends the chain.
char like(char letter) {
  switch (letter) {
    case 'h':
      return 'b';
    case 'b':
    case 'd':
    case 'l':
      return 'f';
    case 'f':
      return 0;
    default:
      return 'l';  // the narrower integers, and bool
  }
}

// The same for a layout.
std::optional<OperandLayout> like(OperandLayout layout) {
  switch (layout) {
    case OperandLayout::alike:
      return std::nullopt;
    case OperandLayout::strided:
      return OperandLayout::mixed;
    default:
      return OperandLayout::alike;
  }
}

void check(const CostCurve& curve) {
  TORCH_CHECK_VALUE(!curve.points.empty(), "a curve of costs has at least one point");
  double before = 0;
  for (const CostPoint& point : curve.points) {
    TORCH_CHECK_VALUE(
        point.elements > before && std::isfinite(point.elements) &&
            point.us.native > 0 && std::isfinite(point.us.native) &&
            point.us.kernel > 0 && std::isfinite(point.us.kernel),
        "the points of a curve have growing numbers of elements, and times above 0");
    before = point.elements;
  }
}

std::optional<DevicePosition> device_position_of(int device_id) {
  const Placement* now = installed_placement();
  if (now == nullptr) return std::nullopt;
  for (size_t index = 0; index < now->ordinals.size(); ++index) {
    const auto& devices = now->ordinals[index].devices;
    for (size_t position = 0; position < devices.size(); ++position) {
      if (devices[position]->id == device_id) return DevicePosition(index, position);
    }
  }
  return std::nullopt;
}

double between(double a, double b, double share) {
  return std::exp(std::log(a) * (1 - share) + std::log(b) * share);
}

TierCosts at(const std::vector<CostPoint>& points, double elements) {
  const auto next = std::lower_bound(
      points.begin(), points.end(), elements,
      [](const CostPoint& point, double n) { return point.elements < n; });
  if (next == points.begin()) return next->us;
  const CostPoint& last = *(next - 1);
  if (next == points.end()) {
    const double times = elements / last.elements;
    return {last.us.native * times, last.us.kernel * times};
  }
  const double share =
      std::log(elements / last.elements) / std::log(next->elements / last.elements);
  return {between(last.us.native, next->us.native, share),
          between(last.us.kernel, next->us.kernel, share)};
}

}  // namespace

CostClass cost_class(const std::string& name) {
  std::lock_guard<Mutex> lock(table().mutex);
  auto& classes = table().classes;
  return classes.try_emplace(name, static_cast<CostClass>(classes.size()))
      .first->second;
}

void set_cost_curves(c10::DeviceIndex index, size_t position,
                     std::vector<CostCurve> curves) {
  const DevicePosition device_position(index, position);
  for (const CostCurve& curve : curves) check(curve);
  {
    std::lock_guard<Mutex> lock(table().mutex);
    std::erase_if(table().curves, [&](const auto& each) {
      return std::get<0>(each.first) == device_position;
    });
    for (CostCurve& curve : curves) {
      table().curves[{device_position, curve.cost_class, curve.letter, curve.layout}] =
          std::move(curve.points);
    }
  }
  changes.fetch_add(1, std::memory_order_release);
}

uint64_t cost_table_version() noexcept {
  return changes.load(std::memory_order_acquire);
}

std::optional<TierCosts> expected_costs(int device_id, CostClass of, char letter,
                                        OperandLayout layout, double elements) {
  const std::optional<DevicePosition> device_position = device_position_of(device_id);
  if (!device_position.has_value()) return std::nullopt;
  std::lock_guard<Mutex> lock(table().mutex);
  const auto& curves = table().curves;
  for (char type = letter; type != 0; type = like(type)) {
    for (std::optional each = layout; each.has_value(); each = like(*each)) {
      const auto found = curves.find({*device_position, of, type, *each});
      if (found != curves.end()) return at(found->second, elements);
    }
  }
  return std::nullopt;
}

}  // namespace xpurt
