#include "schedule/candidates.h"

#include <algorithm>
#include <array>
#include <optional>

#include "device/device_counts.h"
#include "device/device_failure.h"
#include "memory/replica/device_override.h"
#include "op/row_kernel.h"
#include "schedule/best_alone.h"
#include "schedule/cached_choice.h"
#include "schedule/decision.h"
#include "schedule/planning/device_prior.h"

namespace xpurt {
namespace {

constexpr double kNativeCallUs = 1;  // order of magnitude of a call on one element

// For a class that was not measured on the only device: the native kernel on a CPU and
// the row's kernel on a GPU, unless times of the program show otherwise.
constexpr TierCosts kUnknown{1, 1.5};
constexpr TierCosts kUnknownGpu{1.5, 1};

// What the newest samples tell of a physical device, or of PyTorch's CPU kernels.
struct Correction {
  Slowdown slowdown;
  DevicePrior prior;
};

// Guarded by the scheduler's mutex.
struct Corrections {
  uint64_t version = 0;  // of the costs
  std::array<Correction, kCountedDevices + 1> each;
};

Correction& correction_of(const Ordinal& devices, size_t candidate) {
  static auto* const leaked = new Corrections;
  if (leaked->version != costs_version()) *leaked = {costs_version(), {}};
  if (candidate == devices.devices.size()) return leaked->each[kCountedDevices];
  return leaked->each[std::min(devices.devices[candidate]->id, kCountedDevices - 1)];
}

// Fills in the expected times on the only device. They are those of the size class, not
// of the call, since the choice is cached for the class.
void expect_on_one(const CallToDecide& call, const PhysicalDevice& device,
                   Decision* decision) {
  const double elements = elements_in(size_class_of(call.elements));
  const auto found = expected_costs(device.id, call.row.prior.cost_class,
                                    letter_at(type_layout_of(call.signature)),
                                    call.signature.layout(), elements);
  const TierCosts us = found.value_or(device.is_cpu ? kUnknown : kUnknownGpu);
  decision->expected_us = {us.kernel, us.native};
}

// Fills in the expected times of the candidates, without learned factors: by the
// curves, else by the roofline. `corrected`: by the slowdowns of the devices.
void expect(const CallToDecide& call, const Work& work, const Ordinal& devices,
            c10::DeviceIndex index, const std::vector<DeviceCost>& costs,
            bool corrected, Decision* decision) {
  const char letter = letter_at(type_layout_of(call.signature));
  const bool curves = uses_cost_curves(index);
  const auto curve = [&](const PhysicalDevice& device) -> std::optional<TierCosts> {
    if (!curves) return std::nullopt;
    return expected_costs(device.id, call.row.prior.cost_class, letter,
                          call.signature.layout(), static_cast<double>(call.elements));
  };
  for (size_t position = 0; position < devices.devices.size(); ++position) {
    const auto found = curve(*devices.devices[position]);
    decision->expected_us.push_back(
        found.has_value() ? found->kernel : roofline_us(work, costs, position));
  }
  const auto found = curve(devices.home_device());
  DeviceCost host = costs[devices.home];
  if (curves) host.launch_us = kNativeCallUs;
  decision->expected_us.push_back(found.has_value() ? found->native
                                                    : roofline_us(work, host));
  if (!corrected) return;
  for (size_t candidate = 0; candidate < decision->expected_us.size(); ++candidate) {
    decision->expected_us[candidate] *= slowdown_of(devices, candidate).factor();
  }
}

// Whether the call may run as this candidate, as far as its kernels are concerned.
bool has_kernel(const CallToDecide& call, const Ordinal& devices, size_t candidate) {
  if (candidate == devices.devices.size()) return call.native;
  return candidate != devices.home || call.home_kernel || !call.native;
}

}  // namespace

double corrected_us(const Decision& decision, const Ordinal& devices,
                    const FoundBucket& found, size_t candidate) {
  const size_t native = devices.devices.size();
  const double expected_us = decision.expected_us[candidate];
  if (candidate != native && candidate != devices.home) {
    return is_measured(found, candidate)
               ? expected_us * learned_factor(found, candidate, candidate)
               : correction_of(devices, candidate).prior.corrected_us(expected_us);
  }
  const size_t like = candidate == native ? devices.home : native;
  return expected_us * learned_factor(found, candidate, like);
}

size_t position_of(size_t candidate, const Ordinal& devices) {
  return candidate == devices.devices.size() ? devices.home : candidate;
}

Slowdown& slowdown_of(const Ordinal& devices, size_t candidate) {
  return correction_of(devices, candidate).slowdown;
}

void record_in_prior(const Decision& decision, const Ordinal& devices,
                     const FoundBucket& found, size_t candidate, double own_us) {
  if (position_of(candidate, devices) == devices.home) return;
  // What is slow at home, too, is the op's fault.
  const double at_home = learned_factor(found, devices.devices.size(), devices.home);
  correction_of(devices, candidate)
      .prior.record(decision.sizes, own_us,
                    decision.expected_us[candidate] * std::max(at_home, 1.0));
}

bool can_run(const Work& work, const PhysicalDevice& device) {
  return device.is_opencl && (device.has_fp64 || !work.needs_fp64) &&
         (device.has_fp16 || !work.needs_fp16);
}

bool must_run_at_home(const Work& work) {
  return is_home_only() || !work.residency.may_leave();
}

double roofline_us(const Work& work, const DeviceCost& cost) {
  return cost.launch_us +
         std::max(work.bytes / cost.bytes_per_us, work.flops / cost.flops_per_us);
}

double roofline_us(const Work& work, const std::vector<DeviceCost>& costs,
                   size_t position) {
  const double others = work.launches.empty() ? 0 : work.launches[position] - 1;
  return roofline_us(work, costs[position]) + others * costs[position].launch_us;
}

Moves moves_of(const Work& work, const Ordinal& devices, size_t position,
               const std::vector<DeviceCost>& costs) {
  Moves moves;
  for (size_t read = 0; read < work.reads.size(); ++read) {
    const size_t missing = work.residency.bytes_missing(read, position);
    if (missing == 0) continue;
    // Costs of copies are kept for devices other than home. A copy to home is charged
    // at the rate of the device that holds the bytes.
    size_t other = position;
    for (size_t p = 0; position == devices.home && p < costs.size(); ++p) {
      if (p != position && work.residency.bytes_missing(read, p) == 0) other = p;
    }
    const double us = costs[other].copy_launch_us +
                      static_cast<double>(missing) / costs[other].copy_bytes_per_us;
    moves.us += us;
    if (!work.residency.stays(read, position)) moves.streams_us += us;
  }
  return moves;
}

uint64_t positions_for(const Work& work, const Ordinal& devices) {
  const std::string kind = preference(devices);
  uint64_t able = 0, preferred = 0;
  for (size_t position = 0; position < devices.devices.size(); ++position) {
    const PhysicalDevice& device = *devices.devices[position];
    if (position != devices.home && is_excluded(device.id)) continue;
    if (!can_run(work, device)) continue;
    able |= uint64_t{1} << position;
    if (kind.empty() || device.kind() == kind) {
      preferred |= uint64_t{1} << position;
    }
  }
  if (able == 0) return uint64_t{1} << devices.home;
  if (const auto alone = held_alone(devices); kind.empty() && alone.has_value()) {
    const uint64_t bit = uint64_t{1} << *alone;
    if ((able & bit) != 0) return bit;
  }
  return preferred != 0 ? preferred : able;
}

Candidate make_candidate(const Work& work, const Ordinal& devices, size_t position,
                         const std::vector<DeviceCost>& costs, const StreamClock* clock,
                         double now) {
  Candidate made;
  const Moves moves = moves_of(work, devices, position, costs);
  made.moves_us = moves.us;
  made.streams_us = moves.streams_us;
  made.free_us = made.ready_us = now;
  if (clock != nullptr) {
    made.free_us = clock->backlog.free_us(position, now);
    for (const c10::StorageImpl* storage : work.reads) {
      made.ready_us =
          std::max(made.ready_us, clock->backlog.written_us(storage->data(), now));
    }
  }
  // Copies run in the same queue.
  if (made.moves_us > 0) made.ready_us = made.start_us() + made.moves_us;
  return made;
}

void compare_on_one(const CallToDecide& call, const Ordinal& devices,
                    const FoundBucket& found, bool learns, Decision* decision) {
  expect_on_one(call, devices.home_device(), decision);
  for (size_t candidate = 0; candidate < 2; ++candidate) {
    Candidate& made = decision->candidates.emplace_back();
    if (!has_kernel(call, devices, candidate)) continue;
    made.cost_us = learns ? corrected_us(*decision, devices, found, candidate)
                          : decision->expected_us[candidate];
  }
}

void compare(const CallToDecide& call, const Work& work, Stream& stream,
             const std::vector<DeviceCost>& costs, const FoundBucket& found,
             const StreamClock* clock, bool learns, Decision* decision) {
  const Ordinal& devices = stream.ordinal();
  const size_t count = devices.devices.size();
  expect(call, work, devices, stream.id().device_index(), costs, learns, decision);
  uint64_t positions = positions_for(work, devices);
  if (must_run_at_home(work)) positions = uint64_t{1} << devices.home;
  for (size_t candidate = 0; candidate <= count; ++candidate) {
    const size_t position = position_of(candidate, devices);
    Candidate made =
        make_candidate(work, devices, position, costs, clock, decision->now_us);
    const bool may =
        (positions >> position & 1) != 0 && has_kernel(call, devices, candidate);
    const bool builds =
        clock != nullptr &&
        found.bucket().candidates[candidate].not_before_us > decision->now_us;
    decision->provisional |= may && builds;
    if (may && !builds) {
      made.cost_us = learns ? corrected_us(*decision, devices, found, candidate)
                            : decision->expected_us[candidate];
    }
    decision->candidates.push_back(made);
  }
}

size_t earliest(const Candidates& candidates, size_t home) {
  size_t best = home;
  for (size_t candidate = 0; candidate < candidates.size(); ++candidate) {
    const Candidate& each = candidates[candidate];
    if (!each.is_possible()) continue;
    if (!candidates[best].is_possible() ||
        each.finish_us() < candidates[best].finish_us()) {
      best = candidate;
    }
  }
  return best;
}

size_t choose_by_costs(const Work& work, Stream& stream) {
  const Ordinal& devices = stream.ordinal();
  if (devices.devices.size() == 1 || must_run_at_home(work)) return devices.home;
  const auto costs = device_costs(stream.id().device_index());
  const uint64_t positions = positions_for(work, devices);
  Candidates candidates;
  for (size_t position = 0; position < devices.devices.size(); ++position) {
    const bool may = (positions >> position & 1) != 0;
    if (costs.empty()) {
      Candidate& made = candidates.emplace_back();
      if (may) made.cost_us = position == devices.home ? 0 : 1;
      continue;
    }
    candidates.push_back(make_candidate(work, devices, position, costs, nullptr, 0));
    if (may) candidates.back().cost_us = roofline_us(work, costs, position);
  }
  return earliest(candidates, devices.home);
}

}  // namespace xpurt
