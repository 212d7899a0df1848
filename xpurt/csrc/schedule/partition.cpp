#include "schedule/partition.h"

#include <algorithm>
#include <numeric>

#include "program/program_build.h"
#include "schedule/candidates.h"
#include "schedule/exploration.h"
#include "schedule/learning_mode.h"

namespace xpurt {
namespace {

// Note [Partition of an op]
// ~~~~~~~~~~~~~~~~~~~~~~~~~
// A device that computes the proportion x of an op is done at begin + x * whole.
// `begin` is when its queue is free, a kernel is launched, and the operands that every
// shard reads whole are there. `whole` is the time of the whole op on that device, with
// the copies of the other operands. All devices end at the
// same time t if sum((t - begin) / whole) = 1. A device that begins after t takes no
// part. That is the split of EngineCL's HGuided (Nozal, Bosque and Beivide, 2020)
// without its rounds: the speeds are learned from one call to the next, and each timed
// shard corrects them. A shard takes longer than its proportion of a whole call if it
// reads an operand that all shards read. So the times of shards are learned separately.
struct Part {
  size_t position;
  double begin_us;
  double whole_us;
  bool is_new = false;

  double alone_us() const { return begin_us + whole_us; }
};

struct Partition {
  std::vector<double> proportions;  // by position; empty: fewer than two devices
  double end_us = 0;
};

constexpr double kMaxTimeRatio = 0.9;  // of the best candidate's time
constexpr double kMinProportion = 1 / 64.0;

// A smaller op is done before the second device has begun.
constexpr double kMinBytes = 1 << 20;
constexpr double kMinFlops = 1e7;

// Note [First shards]
// ~~~~~~~~~~~~~~~~~~~
// A device that was never timed on such a call has to build a kernel, and may be much
// slower than expected. As with other unproven candidates (Note [Exploration]) it takes
// no part until the regret has reached the time of a build. Then its shards are small
// while it is timed. That costs next to nothing, since the other devices work
// meanwhile.
constexpr double kFirstShard = 1 / 32.0;

double end_of(const std::vector<Part>& parts) {
  double slopes = 0, begins = 0;
  for (const Part& each : parts) {
    slopes += 1 / each.whole_us;
    begins += each.begin_us / each.whole_us;
  }
  return (1 + begins) / slopes;
}

Partition partition_parts(std::vector<Part> parts, size_t devices) {
  // The device with the least proportion is removed until each has one that is worth a
  // launch.
  while (parts.size() >= 2) {
    const double end = end_of(parts);
    const auto proportion = [&](const Part& each) {
      return (end - each.begin_us) / each.whole_us;
    };
    const auto least = std::ranges::min_element(parts, {}, proportion);
    if (proportion(*least) < kMinProportion) {
      parts.erase(least);
      continue;
    }
    Partition found{std::vector<double>(devices, 0.0), end};
    for (const Part& each : parts) found.proportions[each.position] = proportion(each);
    return found;
  }
  return {};
}

// Microseconds of the copies of the operands of which each shard reads its own rows. An
// operand that is there in part was left by a divided op, most likely with the same
// shards, so it counts as present.
double own_moves_us(const Work& work, size_t position, double bytes_per_us) {
  double missing = 0;
  for (size_t read = 0; read < work.reads.size(); ++read) {
    if (is_shared(work, read)) continue;
    const size_t bytes = work.residency.bytes_missing(read, position);
    if (bytes == work.reads[read]->nbytes()) missing += static_cast<double>(bytes);
  }
  return missing / bytes_per_us;
}

Part part_of(const Work& work, const Ordinal& devices, size_t position, double us,
             double queue_us, const std::vector<DeviceCost>& costs) {
  const size_t link = position != devices.home ? position : 1 - devices.home % 2;
  const double rate = costs[std::min(link, costs.size() - 1)].copy_bytes_per_us;
  const double launch_us = costs[position].launch_us;
  const double work_us = std::max(us - launch_us, us / 10);
  const double shared_us = moves_us(work, devices, position, costs, true);
  return {position, launch_us + queue_us + shared_us,
          work_us + own_moves_us(work, position, rate)};
}

std::vector<Part> known_ones(const std::vector<Part>& parts) {
  std::vector<Part> known;
  std::ranges::copy_if(parts, std::back_inserter(known), std::not_fn(&Part::is_new));
  return known;
}

// Limits the proportions of devices whose speed is not known yet; the others take the
// rest.
void make_small(const std::vector<Part>& parts, std::vector<double>* proportions) {
  double taken = 0;
  for (const Part& each : parts) {
    double& proportion = (*proportions)[each.position];
    if (each.is_new && proportion > kFirstShard) taken += proportion - kFirstShard;
    if (each.is_new) proportion = std::min(proportion, kFirstShard);
  }
  double rest = 0;
  for (const Part& each : parts)
    rest += each.is_new ? 0 : (*proportions)[each.position];
  for (const Part& each : parts) {
    double& proportion = (*proportions)[each.position];
    if (!each.is_new) proportion += taken * proportion / rest;
  }
}

bool is_divisible(const CallToDecide& call, const Work& work, const Stream& stream) {
  const bool is_large = work.bytes >= kMinBytes || work.flops >= kMinFlops;
  return call.cost.rows >= 2 && is_large && !has_preference() &&
         !must_run_at_home(work) && stream.orders_by_data();
}

// The devices that may compute a shard of the call, with their predicted times.
std::vector<Part> parts_of(const Work& work, const Ordinal& devices,
                           const std::vector<DeviceCost>& costs,
                           const FoundBucket& found, const Decision& decision) {
  const uint64_t positions = positions_for(work, devices);
  std::vector<Part> parts;
  for (size_t position = 0; position < devices.devices.size(); ++position) {
    if ((positions >> position & 1) == 0) continue;
    const LearnedCost& of_shards = found.bucket().candidates[position].of_shards;
    const double factor = of_shards.estimate(learned_factor(found, position, position));
    const double us = decision.expected_us[position] * factor;
    const double queue_us = decision.candidates[position].free_us - decision.now_us;
    parts.push_back(part_of(work, devices, position, us, queue_us, costs));
    // Home is never new: beside small first shards, some device has to do the rest.
    parts.back().is_new = learning_is_on() && position != devices.home &&
                          of_shards.count() == 0 && !is_measured(found, position);
  }
  if (known_ones(parts).empty()) {
    for (Part& each : parts) each.is_new = false;
  }
  return parts;
}

}  // namespace

std::vector<double> partition_proportions(const Work& work, Stream& stream) {
  const Ordinal& devices = stream.ordinal();
  const auto costs = device_costs(stream.id().device_index());
  if (devices.devices.size() == 1 || must_run_at_home(work) || costs.empty()) return {};
  const uint64_t positions = positions_for(work, devices);
  std::vector<Part> parts;
  double alone = Candidate::kNever;
  for (size_t position = 0; position < devices.devices.size(); ++position) {
    if ((positions >> position & 1) == 0) continue;
    const double us = roofline_us(work, costs[position]);
    parts.push_back(part_of(work, devices, position, us, 0, costs));
    alone = std::min(alone, parts.back().alone_us());
  }
  Partition found = partition_parts(parts, devices.devices.size());
  return found.end_us < kMaxTimeRatio * alone ? found.proportions
                                              : std::vector<double>{};
}

void partition_call(const CallToDecide& call, const Work& work, Stream& stream,
                    const std::vector<DeviceCost>& costs, const FoundBucket& found,
                    StreamClock& clock, uint32_t calls, Decision* decision) {
  if (!is_divisible(call, work, stream) || decision->explores) return;
  StatisticsBucket& bucket = found.bucket();
  const double now = decision->now_us;
  double alone = Candidate::kNever;
  for (const Candidate& each : decision->candidates) {
    if (each.is_possible()) alone = std::min(alone, each.finish_us() - now);
  }
  std::vector<Part> parts = parts_of(work, stream.ordinal(), costs, found, *decision);
  const size_t devices = stream.ordinal().devices.size();
  Partition partition = partition_parts(parts, devices);
  const auto pays = [&] {
    return !partition.proportions.empty() && partition.end_us <= kMaxTimeRatio * alone;
  };
  if (!pays()) return;
  const bool has_new = std::ranges::any_of(parts, [&](const Part& each) {
    return each.is_new && partition.proportions[each.position] > 0;
  });
  if (has_new) {
    bucket.regret_us += (alone - partition.end_us) * calls;
    if (bucket.regret_us < expected_build_us()) {
      parts = known_ones(parts);
      partition = partition_parts(parts, devices);
      if (!pays()) return;
    }
    make_small(parts, &partition.proportions);
  }
  decision->proportions = std::move(partition.proportions);
  for (size_t position = 0; position < devices; ++position) {
    decision->shared_moves_us.push_back(
        moves_us(work, stream.ordinal(), position, costs, true));
  }
  decision->native = false;
  decision->gained_us += decision->finish_us - now - partition.end_us;
  decision->finish_us = now + partition.end_us;
  size_t least_known = decision->position;
  const auto times_known = [&](size_t candidate) {
    return bucket.candidates[candidate].of_shards.count();
  };
  for (const Part& each : parts) {
    if (decision->proportions[each.position] <= 0) continue;
    clock.book(each.position, decision->finish_us, now);
    if (times_known(each.position) < times_known(least_known)) {
      least_known = each.position;
    }
  }
  const CandidateStatistics& least = bucket.candidates[least_known];
  if (call.learns &&
      is_sample_due(bucket, least.of_shards, partition.end_us, least.stall_us)) {
    decision->timed = true;
  }
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
  for (size_t position = 0; position < run.fractions.size(); ++position) {
    const double fraction = run.fractions[position];
    if (fraction <= 0 || ends_us[position] <= begin_us) continue;
    const double us = ends_us[position] - begin_us;
    // Empty if the proportions were forced.
    const double shared_us =
        decision.shared_moves_us.empty() ? 0 : decision.shared_moves_us[position];
    const double own_us = decision.candidates[position].moves_us - shared_us;
    const double moves_us = shared_us + own_us * fraction;
    record_time(decision, stream, position, std::max(us - moves_us, us / 10) / fraction,
                {decision.finish_us - decision.now_us, us}, stall_us,
                &CandidateStatistics::of_shards);
  }
}

}  // namespace xpurt
