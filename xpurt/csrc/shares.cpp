#include "shares.h"

#include <algorithm>
#include <numeric>

#include "candidates.h"
#include "new_ways.h"
#include "program_build.h"
#include "tier_choice.h"

namespace xpurt {
namespace {

// Note [Shares]
// ~~~~~~~~~~~~~
// A device that takes the share x of an op is done at begin + x * whole: `begin` is
// when its queue is free and a kernel launched, `whole` what all of it would take
// there, with the copies of its operands. All end at the same time t if
// sum((t - begin) / whole) = 1; a device that begins after t takes no part. That is the
// split of EngineCL's HGuided without its rounds: the speeds are learned from one call
// to the next, and each piece that was timed corrects them (Nozal, Bosque and Beivide,
// 2020). A piece takes longer than its share of a whole call, where it reads an operand
// that all pieces read: what pieces take is learned apart.
struct Part {
  size_t position;
  double begin_us;
  double whole_us;
  bool is_new = false;

  double alone_us() const { return begin_us + whole_us; }
};

struct Shares {
  std::vector<double> by_position;  // empty: one device alone is about as fast
  double end_us = 0;
};

constexpr double kLeastGain = 0.9;  // of the best way's time
constexpr double kLeastShare = 1 / 64.0;

// Less is done before the second device has begun.
constexpr double kLeastBytes = 1 << 20;
constexpr double kLeastFlops = 1e7;

// Note [First pieces]
// ~~~~~~~~~~~~~~~~~~~
// A device that was never timed on such a call has to build a kernel, and may be much
// slower than expected. As with other new ways (Note [New ways]) nothing is done until
// so much was missed; then its pieces are small while it is timed. That costs next to
// nothing, since the others work meanwhile.
constexpr double kFirstPiece = 1 / 32.0;

double end_of(const std::vector<Part>& parts) {
  double slopes = 0, begins = 0;
  for (const Part& each : parts) {
    slopes += 1 / each.whole_us;
    begins += each.begin_us / each.whole_us;
  }
  return (1 + begins) / slopes;
}

Shares share_out(std::vector<Part> parts, size_t devices) {
  // The one that begins last goes, until each has a share that is worth a launch.
  while (parts.size() >= 2) {
    const double end = end_of(parts);
    const auto share = [&](const Part& each) {
      return (end - each.begin_us) / each.whole_us;
    };
    const auto least = std::ranges::min_element(parts, {}, share);
    if (share(*least) < kLeastShare) {
      parts.erase(least);
      continue;
    }
    Shares found{std::vector<double>(devices, 0.0), end};
    for (const Part& each : parts) found.by_position[each.position] = share(each);
    return found;
  }
  return {};
}

// Bytes of operands that a piece on the device needs and has not. What is there in part
// was left by an op that was divided, most likely into the same pieces.
double missing_bytes(const Work& work, size_t position) {
  double missing = 0;
  for (const c10::StorageImpl* storage : work.reads) {
    const size_t bytes = bytes_missing_on(*storage, position);
    if (bytes == storage->nbytes()) missing += static_cast<double>(bytes);
  }
  return missing;
}

Part part_of(const Work& work, const Ordinal& devices, size_t position, double us,
             double queue_us, const std::vector<DeviceCost>& costs) {
  const size_t link = position != devices.home ? position : 1 - devices.home % 2;
  const double rate = costs[std::min(link, costs.size() - 1)].copy_bytes_per_us;
  const double launch_us = costs[position].launch_us;
  const double work_us = std::max(us - launch_us, us / 10);
  return {position, launch_us + queue_us,
          work_us + missing_bytes(work, position) / rate};
}

std::vector<Part> known_ones(const std::vector<Part>& parts) {
  std::vector<Part> known;
  std::ranges::copy_if(parts, std::back_inserter(known), std::not_fn(&Part::is_new));
  return known;
}

// The shares of devices whose speed is not known yet are made small.
void make_small(const std::vector<Part>& parts, std::vector<double>* shares) {
  double taken = 0;
  for (const Part& each : parts) {
    double& share = (*shares)[each.position];
    if (each.is_new && share > kFirstPiece) taken += share - kFirstPiece;
    if (each.is_new) share = std::min(share, kFirstPiece);
  }
  double rest = 0;
  for (const Part& each : parts) rest += each.is_new ? 0 : (*shares)[each.position];
  for (const Part& each : parts) {
    double& share = (*shares)[each.position];
    if (!each.is_new) share += taken * share / rest;
  }
}

bool is_divisible(const PlacedCall& call, const Work& work, const Stream& stream) {
  const bool is_large = work.bytes >= kLeastBytes || work.flops >= kLeastFlops;
  return call.cost.rows >= 2 && is_large && !has_preference() && !stays_home(work) &&
         stream.orders_by_data();
}

// The devices that may do a part of the call, as far as they are known.
std::vector<Part> parts_of(const Work& work, const Ordinal& devices,
                           const std::vector<DeviceCost>& costs,
                           const FoundBucket& found, const Placing& placing) {
  const uint64_t positions = positions_for(work, devices);
  std::vector<Part> parts;
  for (size_t position = 0; position < devices.devices.size(); ++position) {
    if ((positions >> position & 1) == 0) continue;
    const LearnedCost& of_pieces = found.bucket().ways[position].of_pieces;
    const double factor = of_pieces.believed(learned_factor(found, position));
    const double us = placing.expected_us[position] * factor;
    const double queue_us = placing.candidates[position].free_us - placing.now_us;
    parts.push_back(part_of(work, devices, position, us, queue_us, costs));
    // Somebody has to do the rest of a small piece: home is never new.
    parts.back().is_new = learning_is_on() && position != devices.home &&
                          of_pieces.count() == 0 && !is_proven(found, position);
  }
  if (known_ones(parts).empty()) {
    for (Part& each : parts) each.is_new = false;
  }
  return parts;
}

}  // namespace

std::vector<double> shares_of(const Work& work, Stream& stream) {
  const Ordinal& devices = stream.ordinal();
  const auto costs = device_costs(stream.id().device_index());
  if (devices.devices.size() == 1 || stays_home(work) || costs.empty()) return {};
  const uint64_t positions = positions_for(work, devices);
  std::vector<Part> parts;
  double alone = Candidate::kNever;
  for (size_t position = 0; position < devices.devices.size(); ++position) {
    if ((positions >> position & 1) == 0) continue;
    const double us = roofline_us(work, costs[position]);
    parts.push_back(part_of(work, devices, position, us, 0, costs));
    alone = std::min(alone, parts.back().alone_us());
  }
  Shares found = share_out(parts, devices.devices.size());
  return found.end_us < kLeastGain * alone ? found.by_position : std::vector<double>{};
}

void divide(const PlacedCall& call, const Work& work, Stream& stream,
            const std::vector<DeviceCost>& costs, const FoundBucket& found,
            StreamClock& clock, uint32_t calls, Placing* placing) {
  if (!is_divisible(call, work, stream) || placing->tried) return;
  PlaceBucket& bucket = found.bucket();
  const double now = placing->now_us;
  double alone = Candidate::kNever;
  for (const Candidate& each : placing->candidates) {
    if (each.is_possible()) alone = std::min(alone, each.finish_us() - now);
  }
  std::vector<Part> parts = parts_of(work, stream.ordinal(), costs, found, *placing);
  const size_t devices = stream.ordinal().devices.size();
  Shares shares = share_out(parts, devices);
  const auto pays = [&] {
    return !shares.by_position.empty() && shares.end_us <= kLeastGain * alone;
  };
  if (!pays()) return;
  const bool has_new = std::ranges::any_of(parts, [&](const Part& each) {
    return each.is_new && shares.by_position[each.position] > 0;
  });
  if (has_new) {
    bucket.missed_us += (alone - shares.end_us) * calls;
    if (bucket.missed_us < expected_build_us()) {
      parts = known_ones(parts);
      shares = share_out(parts, devices);
      if (!pays()) return;
    }
    make_small(parts, &shares.by_position);
  }
  placing->shares = std::move(shares.by_position);
  placing->native = false;
  placing->finish_us = now + shares.end_us;
  size_t least_known = placing->position;
  const auto times_known = [&](size_t way) {
    return bucket.ways[way].of_pieces.count();
  };
  for (const Part& each : parts) {
    if (placing->shares[each.position] <= 0) continue;
    clock.book(each.position, placing->finish_us);
    if (times_known(each.position) < times_known(least_known)) {
      least_known = each.position;
    }
  }
  const LearnedCost& of_pieces = bucket.ways[least_known].of_pieces;
  if (call.learns && is_time_to_learn(bucket, of_pieces)) placing->timed = true;
}

void note_pieces(const RowRun& run, Stream& stream, double begin_us,
                 const std::vector<double>& ends_us) {
  const Placing& placing = *run.decision;
  if (run.piece_moved || placing.bucket == nullptr) return;
  std::lock_guard<std::mutex> lock(scheduler_mutex());
  for (size_t position = 0; position < run.fractions.size(); ++position) {
    const double fraction = run.fractions[position];
    if (fraction <= 0 || ends_us[position] <= begin_us) continue;
    const double us = ends_us[position] - begin_us;
    const double moves_us = placing.candidates[position].moves_us * fraction;
    note_time(placing, stream, position, std::max(us - moves_us, us / 10) / fraction,
              {placing.finish_us - placing.now_us, us}, &PlaceWay::of_pieces);
  }
}

}  // namespace xpurt
