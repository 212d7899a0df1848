#include "placing.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "capture.h"
#include "device_override.h"
#include "explain.h"
#include "new_ways.h"
#include "op_record.h"
#include "shares.h"

namespace xpurt {
namespace {

// Of two ways at home that take about as long, the one that does not block the host is
// better, if the op is long.
constexpr double kLongUs = 200;
constexpr double kAbout = 1.02;

// How long a device is left alone while a kernel is built for it.
constexpr double kBuildPauseUs = 5e3;

// Cached decisions are taken without a lock, so nothing is booked for them: they are
// those of work that blocks the host, or is too short to matter.
constexpr double kTooShortToBook = 50;
constexpr uint32_t kForLong = 1 << 20;  // calls, where nothing is learned

constexpr int kExcuses = 3;  // times in a row that are left out: Note [New pages]

constexpr double kNativeCallUs = 1;  // on one element: the order of magnitude
constexpr double kLeastUs = 0.05;    // of a prediction that a time is divided by

std::array<PlacedTimes, kCountedDevices>& times() {
  static auto* const leaked = new std::array<PlacedTimes, kCountedDevices>;
  return *leaked;
}
PlacedTimes& times_of(const PhysicalDevice& device) {
  return times()[std::min(device.id, kCountedDevices - 1)];
}

// A cached decision in one word: what it holds for, and the way.
//   version of the scheduler (40 bits) | devices with all operands (16) | way + 1 (8)
constexpr int kMaskBits = 16, kWayBits = 8;
uint64_t cache_word(uint64_t version, uint64_t mask, size_t way) {
  return version << (kMaskBits + kWayBits) | mask << kWayBits | (way + 1);
}

// The devices that hold all operands.
uint64_t holders(const Work& work, size_t devices) {
  uint64_t mask = 0;
  for (size_t position = 0; position < devices; ++position) {
    const bool all = std::ranges::all_of(work.reads, [&](const auto* storage) {
      return is_valid_on(*storage, position);
    });
    if (all) mask |= uint64_t{1} << position;
  }
  return mask;
}

// What the ways take before anything was learned: by the curves, else by the roofline.
void expect(const PlacedCall& call, const Work& work, const Ordinal& devices,
            c10::DeviceIndex index, const std::vector<DeviceCost>& costs,
            Placing* placing) {
  const char letter = letter_at(sizes_place(call.look));
  const bool curves = uses_cost_curves(index);
  const auto curve = [&](const PhysicalDevice& device) -> std::optional<TierCosts> {
    if (!curves) return std::nullopt;
    return expected_costs(device.id, call.row.prior.cost_class, letter,
                          call.look.layout(), static_cast<double>(call.elements));
  };
  for (size_t position = 0; position < devices.devices.size(); ++position) {
    const auto found = curve(*devices.devices[position]);
    placing->expected_us.push_back(
        found.has_value() ? found->kernel : roofline_us(work, costs, position));
  }
  const auto found = curve(devices.home_device());
  DeviceCost host = costs[devices.home];
  if (curves) host.launch_us = kNativeCallUs;
  placing->expected_us.push_back(found.has_value() ? found->native
                                                   : roofline_us(work, host));
}

// The ways that compete, and when they would be done.
void compare(const PlacedCall& call, const Work& work, Stream& stream,
             const std::vector<DeviceCost>& costs, const FoundBucket& found,
             const StreamClock* clock, double now, Placing* placing) {
  const Ordinal& devices = stream.ordinal();
  const size_t count = devices.devices.size();
  uint64_t positions = positions_for(work, devices);
  if (stays_home(work)) positions = uint64_t{1} << devices.home;
  const bool planned = clock == nullptr;
  for (size_t way = 0; way <= count; ++way) {
    const size_t position = way == count ? devices.home : way;
    Candidate made = candidate(work, devices, position, costs, clock, now);
    const bool may = (positions >> position & 1) != 0 &&
                     (way != count || call.native) &&
                     (way != devices.home || call.home_kernel || !call.native);
    if (may && (planned || found.bucket().ways[way].not_before_us <= now)) {
      const double factor = planned ? 1 : learned_factor(found, way);
      made.cost_us = placing->expected_us[way] * factor;
    }
    placing->candidates.push_back(made);
  }
}

// What the results take from one device to another, as far as it can be told before
// they are there: they are what is not read.
double results_us(const Work& work, const Ordinal& devices, size_t from, size_t to,
                  const std::vector<DeviceCost>& costs) {
  if (from == to) return 0;
  double read = 0;
  for (const c10::StorageImpl* storage : work.reads) {
    read += static_cast<double>(storage->nbytes());
  }
  const DeviceCost& link = costs[from == devices.home ? to : from];
  return link.copy_launch_us +
         std::max(work.bytes - read, 0.0) / link.copy_bytes_per_us;
}

// The way that the policy takes, by position; at home the better one of both.
size_t choose_way(const Work& work, const Ordinal& devices,
                  const std::vector<DeviceCost>& costs, double now,
                  OnlinePolicy& policy, const Placing& placing) {
  const Candidates& candidates = placing.candidates;
  const size_t count = devices.devices.size();
  const double native_us = candidates[count].offered_us();
  const double kernel_us = candidates[devices.home].offered_us();
  // A kernel leaves the host free to give work to other devices.
  const bool is_known = placing.bucket->ways[devices.home].factor.is_known();
  const bool by_kernel = kernel_us < native_us || (is_known && kernel_us > kLongUs &&
                                                   kernel_us <= kAbout * native_us);
  const size_t home_way = by_kernel ? devices.home : count;
  // Home comes first: of equals the policy takes the first one.
  const auto position_of = [&](size_t i) {
    return i == 0 ? devices.home : i == devices.home ? 0 : i;
  };
  const size_t best = position_of(policy.best_alone());
  Candidates offered;
  for (size_t i = 0; i < count; ++i) {
    const size_t position = position_of(i);
    Candidate& offer = offered.emplace_back(candidates[i == 0 ? home_way : position]);
    offer.leave_us = results_us(work, devices, position, best, costs);
  }
  if (std::ranges::none_of(candidates, &Candidate::is_possible)) return home_way;
  const size_t chosen = policy.choose(offered, now);
  return chosen == 0 ? home_way : position_of(chosen);
}

void take(Placing* placing, size_t way, const Ordinal& devices) {
  const Candidate& taken = placing->candidates[way];
  placing->native = way == devices.devices.size();
  placing->position = placing->native ? devices.home : way;
  placing->cost_us = taken.cost_us;
  placing->moves_us = taken.moves_us;
  placing->finish_us = taken.finish_us();
}

void book_shares(const Placing& placing, const Ordinal& devices) {
  for (size_t position = 0; position < placing.shares.size(); ++position) {
    if (placing.shares[position] <= 0) continue;
    times_of(*devices.devices[position]).busy_us +=
        placing.finish_us - placing.candidates[position].free_us;
  }
}

}  // namespace

Placing place_call(const PlacedCall& call, Stream& stream) {
  const Ordinal& devices = stream.ordinal();
  const c10::DeviceIndex index = stream.id().device_index();
  const size_t count = devices.devices.size();
  const Work work = work_of(call.cost);
  const bool planned = is_deterministic();
  const bool cacheable = !planned && !has_preference() && !is_staying_home() &&
                         !is_explaining() && count <= kMaskBits && stream.idle();
  Placing placing;
  uint64_t mask = 0;
  const uint64_t version = scheduler_version() & ((uint64_t{1} << 40) - 1);
  if (cacheable) {
    mask = holders(work, count);
    PlaceBucket* bucket = find_bucket(call.record, index, call.look, call.elements);
    if (bucket != nullptr) {
      const uint64_t word = bucket->cached.load(std::memory_order_relaxed);
      const uint64_t way = (word & ((1 << kWayBits) - 1)) - 1;
      const uint32_t left = bucket->calls_left.load(std::memory_order_relaxed);
      if (left > 0 && word == cache_word(version, mask, way)) {
        bucket->calls_left.store(left - 1, std::memory_order_relaxed);
        placing.native = way == count;
        placing.position = placing.native ? devices.home : way;
        return placing;
      }
    }
  }
  const auto costs = device_costs(index);
  std::lock_guard<std::mutex> lock(scheduler_mutex());
  const FoundBucket found =
      find_or_make_bucket(call.record, index, call.look, call.elements);
  PlaceBucket& bucket = found.bucket();
  placing.bucket = &bucket;
  StreamClock* clock = planned ? nullptr : &clock_of(stream);
  const double now = planned ? 0 : now_us();
  placing.now_us = now;
  if (clock != nullptr) clock->catch_up(stream, now);
  if (costs.empty()) {
    placing.position = devices.home;
    placing.native = call.native && !call.home_kernel;
    return placing;
  }
  expect(call, work, devices, index, costs, &placing);
  compare(call, work, stream, costs, found, clock, now, &placing);
  // Of those that a cached decision was for, only some came.
  const uint32_t left = std::min(bucket.rest, bucket.calls_left.load());
  const uint32_t calls = 1 + bucket.rest - left;
  bucket.rest = left;
  if (!planned && call.learns) hold_new_ways_back(found, calls, &placing);
  const size_t best =
      planned ? earliest(placing.candidates, call.native ? count : devices.home)
              : choose_way(work, devices, costs, now, clock->policy, placing);
  size_t way = best;
  if (!planned && call.learns) {
    bucket.spent_us += placing.candidates[way].cost_us * calls;
    bucket.calls += calls;
    way = trial(bucket, placing, way);
    placing.tried = way != best;
    placing.timed = placing.tried || is_time_to_learn(bucket, bucket.ways[way].factor);
  }
  take(&placing, way, devices);
  if (clock == nullptr) return placing;
  divide(call, work, stream, costs, found, *clock, calls, &placing);
  if (!placing.shares.empty()) {
    book_shares(placing, devices);
    return placing;
  }
  if (!placing.native) clock->book(placing.position, placing.finish_us);
  times_of(*devices.devices[placing.position]).busy_us += placing.cost_us;
  const bool is_short = placing.native || placing.cost_us < kTooShortToBook;
  if (cacheable && is_short && !placing.timed) {
    bucket.rest = call.learns ? calls_between(bucket.ways[way].factor) : kForLong;
    bucket.calls_left.store(bucket.rest, std::memory_order_relaxed);
    bucket.cached.store(cache_word(version, mask, way), std::memory_order_relaxed);
  }
  return placing;
}

bool is_placed_native(const OpRecord& record, c10::DeviceIndex index,
                      const CallLook& look) {
  PlaceBucket* bucket = find_bucket(record, index, look, look.elements());
  if (bucket == nullptr || has_preference()) return false;
  const uint64_t version = scheduler_version() & ((uint64_t{1} << 40) - 1);
  const size_t devices = ordinal(index).devices.size();
  const uint64_t word = bucket->cached.load(std::memory_order_relaxed);
  if ((word & ((1 << kWayBits) - 1)) != devices + 1) return false;
  if (word >> (kMaskBits + kWayBits) != version) return false;
  const uint32_t left = bucket->calls_left.load(std::memory_order_relaxed);
  if (left == 0) return false;
  bucket->calls_left.store(left - 1, std::memory_order_relaxed);
  return true;
}

void note_time(const Placing& placing, Stream& stream, size_t way, double own_us,
               PredictedAndMeasured times, LearnedCost PlaceWay::* learned) {
  const Ordinal& devices = stream.ordinal();
  LearnedCost& factor = placing.bucket->ways[way].*learned;
  factor.note(own_us / std::max(placing.expected_us[way], kLeastUs));
  placing.bucket->cached.store(0, std::memory_order_relaxed);
  if (factor.count() < 2) return;  // it warmed something up
  const size_t position = way == devices.devices.size() ? devices.home : way;
  PlacedTimes& seen = times_of(*devices.devices[position]);
  ++seen.calls;
  seen.predicted_us += times.predicted_us;
  seen.measured_us += times.measured_us;
}

bool is_excused(const Placing& placing) {
  if (placing.bucket == nullptr) return false;
  std::lock_guard<std::mutex> lock(scheduler_mutex());
  int& excused = placing.bucket->excused;
  excused = excused < kExcuses ? excused + 1 : 0;
  return excused > 0;
}

void note_placed(const Placing& placing, Stream& stream, double us) {
  if (placing.bucket == nullptr || placing.expected_us.empty()) return;
  const size_t way =
      placing.native ? stream.ordinal().devices.size() : placing.position;
  std::lock_guard<std::mutex> lock(scheduler_mutex());
  note_time(placing, stream, way, std::max(us - placing.moves_us, us / 10),
            {placing.cost_us + placing.moves_us, us}, &PlaceWay::factor);
}

bool note_building(const Placing& placing, Stream& stream,
                   const PhysicalDevice& device) {
  const Ordinal& devices = stream.ordinal();
  const size_t home = devices.home;
  const size_t position =
      std::ranges::find(devices.devices, &device) - devices.devices.begin();
  if (placing.bucket == nullptr || placing.candidates.empty()) return position == home;
  std::lock_guard<std::mutex> lock(scheduler_mutex());
  placing.bucket->ways[position].not_before_us = now_us() + kBuildPauseUs;
  placing.bucket->cached.store(0, std::memory_order_relaxed);
  // It was booked for nothing.
  clock_of(stream).backlog.book(position, placing.candidates[position].free_us);
  const Candidate& native = placing.candidates.back();
  return position == home ||
         (native.is_possible() && native.cost_us <= placing.candidates[home].cost_us);
}

size_t choose_position(const Work& work, Stream& stream, const Placing* decision) {
  const Ordinal& devices = stream.ordinal();
  if (devices.devices.size() == 1) return devices.home;
  if (decision == nullptr || decision->native) return choose_by_costs(work, stream);
  const size_t position = stays_home(work) ? devices.home : decision->position;
  if (decision->finish_us > 0 && !is_deterministic()) {
    std::lock_guard<std::mutex> lock(scheduler_mutex());
    Backlog& backlog = clock_of(stream).backlog;
    for (const c10::StorageImpl* storage : work.writes) {
      backlog.book_write(storage->data(), decision->finish_us);
    }
  }
  return position;
}

void note_submitted(Stream& stream, size_t position, const sycl::event& done) {
  if (stream.ordinal().devices.size() == 1 || is_capturing(stream)) return;
  std::lock_guard<std::mutex> lock(scheduler_mutex());
  StreamClock::Mark& mark = clock_of(stream).marks[position];
  if (!std::exchange(mark.wanted, false)) return;
  mark.done = done;
  mark.next_look_us = 0;
}

PlacedTimes placed_times(int physical_device_id) {
  std::lock_guard<std::mutex> lock(scheduler_mutex());
  return times()[std::clamp(physical_device_id, 0, kCountedDevices - 1)];
}

void reset_placed_times() {
  std::lock_guard<std::mutex> lock(scheduler_mutex());
  times().fill({});
}

}  // namespace xpurt
