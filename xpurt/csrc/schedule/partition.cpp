#include "schedule/partition.h"

#include <algorithm>
#include <map>
#include <utility>

#include "program/program_build.h"
#include "schedule/candidates.h"
#include "schedule/exploration.h"
#include "schedule/learning_mode.h"
#include "schedule/planning/boundary.h"
#include "schedule/planning/division.h"
#include "schedule/planning/lost_division.h"

namespace xpurt {
namespace {

// A smaller op is done before the second device has begun.
constexpr double kMinBytes = 1 << 20;
constexpr double kMinFlops = 1e7;

// Boundaries of chains, by ordinal and number of rows. Under the scheduler's mutex.
// Leaked: see Note [Leaked on purpose].
using Boundaries = std::map<std::pair<c10::DeviceIndex, int64_t>, Boundary>;
constexpr size_t kMaxBoundaries = 256;

Boundary& boundary_of(c10::DeviceIndex index, int64_t rows) {
  static auto* const boundaries = new Boundaries;
  if (boundaries->size() > kMaxBoundaries) boundaries->clear();
  return (*boundaries)[{index, rows}];
}

// Bytes of an operand that have to be copied to the device for its shard. An operand
// that is divided and there in part was left by a divided op, most likely with the same
// shards, so it counts as present.
double missing_bytes(const Work& work, size_t read, size_t position) {
  const size_t bytes = work.residency.bytes_missing(read, position);
  const bool is_needed = work.reads_whole(read) || bytes == work.reads[read]->nbytes();
  return is_needed ? static_cast<double>(bytes) : 0;
}

// Whether a divided op has left an operand in shards.
bool is_in_shards(const Work& work, size_t home) {
  for (size_t read = 0; read < work.reads.size(); ++read) {
    if (work.reads_whole(read)) continue;
    const size_t missing = work.residency.bytes_missing(read, home);
    if (missing > 0 && missing < work.reads[read]->nbytes()) return true;
  }
  return false;
}

DevicePart part_of(const Work& work, const Ordinal& devices, size_t position, double us,
                   double queue_us, const std::vector<DeviceCost>& costs) {
  const size_t link = position != devices.home ? position : 1 - devices.home % 2;
  const double rate = costs[std::min(link, costs.size() - 1)].copy_bytes_per_us;
  const double launch_us = costs[position].launch_us;
  DevicePart part{.position = position,
                  .queue_us = queue_us,
                  .launch_us = launch_us,
                  .whole_us = std::max(us - launch_us, us / 10)};
  for (size_t read = 0; read < work.reads.size(); ++read) {
    const double copy_us = missing_bytes(work, read, position) / rate;
    (work.reads_whole(read) ? part.copies_us : part.whole_us) += copy_us;
  }
  return part;
}

// See Note [Partial sums].
void add_partial_sum(int64_t size_bytes, const Ordinal& devices,
                     const std::vector<DeviceCost>& costs, DevicePart* part) {
  const auto size = static_cast<double>(size_bytes);
  const DeviceCost& home = costs[devices.home];
  const DeviceCost& device = costs[part->position];
  part->sum_us = home.launch_us + 3 * size / home.bytes_per_us;
  if (part->position != devices.home) {
    part->launch_us += device.copy_launch_us + size / device.copy_bytes_per_us;
  }
}

// Times that predict those of shards: of shards, if they are known, or of whole calls.
enum class Times { of_shards, of_whole_calls };

// The devices that may compute a shard of the call, with their predicted times.
std::vector<DevicePart> parts_of(const OpCost& cost, const Work& work,
                                 const Ordinal& devices,
                                 const std::vector<DeviceCost>& costs,
                                 const FoundBucket& found, const Decision& decision,
                                 Times times) {
  const uint64_t positions = positions_for(work, devices);
  std::vector<DevicePart> parts;
  for (size_t position = 0; position < devices.devices.size(); ++position) {
    if ((positions >> position & 1) == 0) continue;
    const LearnedCost& of_shards = found.bucket().candidates[position].of_shards;
    const double expected_us = std::max(decision.expected_us[position], 1e-9);
    const double whole_us = corrected_us(decision, devices, found, position);
    const double us = times == Times::of_whole_calls
                          ? whole_us
                          : expected_us * of_shards.undisturbed(whole_us / expected_us);
    const double queue_us = decision.candidates[position].free_us - decision.now_us;
    parts.push_back(part_of(work, devices, position, us, queue_us, costs));
    if (cost.summed_bytes > 0) {
      add_partial_sum(cost.summed_bytes, devices, costs, &parts.back());
    }
    // Home is never new: beside small first shards, some device has to do the rest.
    parts.back().is_new = learning_is_on() && position != devices.home &&
                          of_shards.count() == 0 && !is_measured(found, position);
  }
  if (known_parts(parts).empty()) {
    for (DevicePart& each : parts) each.is_new = false;
  }
  return parts;
}

// Whether the times of the shards are known well.
bool have_converged(const StatisticsBucket& bucket, const Division& division) {
  for (size_t position = 0; position < division.proportions.size(); ++position) {
    const LearnedCost& of_shards = bucket.candidates[position].of_shards;
    if (division.proportions[position] > 0 && !of_shards.has_converged()) return false;
  }
  return true;
}

// A division of a call, and the parts that it was made of.
struct Partition {
  std::vector<DevicePart> parts;
  Division division;
  bool pays_off = false;  // else it lost before, and is tried again
};

// The division that is expected to end before any device alone, or is due to be tried.
Partition choose_partition(const OpCost& cost, const Work& work, Stream& stream,
                           const std::vector<DeviceCost>& costs,
                           const FoundBucket& found, uint32_t calls,
                           Decision* decision) {
  StatisticsBucket& bucket = found.bucket();
  const Ordinal& ordinal = stream.ordinal();
  const size_t devices = ordinal.devices.size();
  double alone = Candidate::kNever;
  for (const Candidate& each : decision->candidates) {
    if (each.is_possible())
      alone = std::min(alone, each.finish_us() - decision->now_us);
  }
  std::vector<DevicePart> parts =
      parts_of(cost, work, ordinal, costs, found, *decision, Times::of_shards);
  // As a whole it may run beside others: from the time when the first queue is free.
  const double first_us = std::ranges::min(parts, {}, &DevicePart::queue_us).queue_us;
  alone = std::min(alone, first_us + decision->overlapped_us);
  Division division =
      divide_call(parts, devices, alone, is_in_shards(work, ordinal.home), calls,
                  &bucket.copies, &boundary_of(stream.id().device_index(), cost.rows));
  const bool pays_off = division.divides();
  if (pays_off) {
    if (have_converged(bucket, division)) bucket.lost_division.pay_off();
  } else if (decision->may_try) {
    division = divide_again(
        parts,
        parts_of(cost, work, ordinal, costs, found, *decision, Times::of_whole_calls),
        devices, alone, calls, &bucket.lost_division);
    decision->explores = division.divides();
    for (CandidateStatistics& each : bucket.candidates) {
      if (decision->explores) each.of_shards = {};
    }
  }
  if (!division.divides()) return {};
  const bool has_new = std::ranges::any_of(parts, [&](const DevicePart& each) {
    return each.is_new && division.proportions[each.position] > 0;
  });
  if (has_new) {
    bucket.regret_us += (alone - division.end_us) * calls;
    if (bucket.regret_us < expected_build_us()) {
      parts = known_parts(parts);
      division = divide(parts, devices);
      if (!pays(division, parts, alone)) return {};
    }
    limit_new_parts(parts, &division.proportions);
  }
  return {std::move(parts), std::move(division), pays_off};
}

// Gives the decision its shards, and books their devices.
void take_partition(const Partition& chosen, bool learns, Stream& stream,
                    StatisticsBucket& bucket, StreamClock& clock, Decision* decision) {
  const std::vector<double>& proportions = chosen.division.proportions;
  const double now = decision->now_us, us = end_of(chosen.parts, proportions);
  decision->native = false;
  // The additions of partial sums are ops of their own, with times of their own.
  decision->gained_us +=
      decision->finish_us - (now + us) - sums_of(chosen.parts, proportions);
  decision->finish_us = now + us;
  decision->booked_us.assign(proportions.size(), 0.0);
  size_t least_known = decision->position;
  bool is_suspect = false;
  const auto times_known = [&](size_t candidate) {
    return bucket.candidates[candidate].of_shards.count();
  };
  for (const DevicePart& each : chosen.parts) {
    const double proportion = proportions[each.position];
    if (proportion <= 0) continue;
    const double ends_us = now + each.begin_us() + proportion * each.whole_us;
    decision->booked_us[each.position] = ends_us;
    clock.book(each.position, ends_us, now);
    is_suspect |= slowdown_of(stream.ordinal(), each.position).wants_samples();
    if (times_known(each.position) < times_known(least_known)) {
      least_known = each.position;
    }
  }
  const CandidateStatistics& least = bucket.candidates[least_known];
  // A copy of a whole operand cannot be told from the time of the shard.
  const bool copies = copies_of(chosen.division, chosen.parts) > 0;
  decision->timed = learns && !copies &&
                    (!chosen.pays_off || is_suspect ||
                     is_sample_due(bucket, least.of_shards, us, least.stall_us));
  decision->proportions = proportions;
}

}  // namespace

bool is_divisible(const CallToDecide& call, const Work& work, const Stream& stream) {
  const bool is_large = work.bytes >= kMinBytes || work.flops >= kMinFlops;
  return call.cost.rows >= 2 && is_large && !has_preference(stream.ordinal()) &&
         !must_run_at_home(work) && stream.orders_by_data();
}

std::vector<double> partition_proportions(const Work& work, Stream& stream) {
  const Ordinal& devices = stream.ordinal();
  const auto costs = device_costs(stream.id().device_index());
  if (devices.devices.size() == 1 || must_run_at_home(work) || costs.empty()) return {};
  const uint64_t positions = positions_for(work, devices);
  std::vector<DevicePart> parts;
  double alone = Candidate::kNever;
  for (size_t position = 0; position < devices.devices.size(); ++position) {
    if ((positions >> position & 1) == 0) continue;
    const double us = roofline_us(work, costs[position]);
    parts.push_back(part_of(work, devices, position, us, 0, costs));
    alone = std::min(alone, parts.back().alone_us());
  }
  Division found = divide(parts, devices.devices.size());
  return pays(found, parts, alone) ? found.proportions : std::vector<double>{};
}

void partition_call(const CallToDecide& call, const Work& work, Stream& stream,
                    const std::vector<DeviceCost>& costs, const FoundBucket& found,
                    StreamClock& clock, uint32_t calls, Decision* decision) {
  if (!found.bucket().is_long || !is_divisible(call, work, stream) ||
      decision->explores)
    return;
  const Partition chosen =
      choose_partition(call.cost, work, stream, costs, found, calls, decision);
  if (chosen.division.divides())
    take_partition(chosen, call.learns, stream, found.bucket(), clock, decision);
}

void take_back_undivided(const Decision& decision, Stream& stream) {
  for (size_t position = 0; position < decision.proportions.size(); ++position) {
    if (position != decision.position) take_back_shard(decision, stream, position);
  }
}

void record_shards(const RowRun& run, Stream& stream, double begin_us,
                   const std::vector<double>& ends_us, double stall_us) {
  const Decision& decision = *run.decision;
  if (run.shard_moved) return;
  std::lock_guard<Mutex> lock(scheduler_mutex());
  if (!is_current(decision)) return;
  const auto costs = device_costs(stream.id().device_index());
  for (size_t position = 0; position < run.fractions.size(); ++position) {
    const double fraction = run.fractions[position];
    if (fraction <= 0 || ends_us[position] <= begin_us) continue;
    const double us = ends_us[position] - begin_us;
    const double moves_us = decision.candidates[position].moves_us * fraction;
    // A launch takes as long for a shard as for the whole call.
    const double launch_us = position < costs.size() ? costs[position].launch_us : 0;
    const double own_us = launch_us + whole_us_of(us, launch_us + moves_us, fraction);
    record_time(decision, stream, position, own_us,
                {decision.finish_us - decision.now_us, us}, stall_us,
                &CandidateStatistics::of_shards);
  }
}

}  // namespace xpurt
