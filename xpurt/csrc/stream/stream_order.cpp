#include "stream/stream_order.h"

#include <algorithm>

#include "device/event_status.h"
#include "stream/events_across.h"
#include "stream/stream.h"

namespace xpurt {
namespace {

void order(sycl::queue& queue, const std::vector<sycl::event>& events) {
  if (!events.empty()) queue.ext_oneapi_submit_barrier(events);
}

// The event, or an event of the queue's context that completes after it.
sycl::event event_for(const sycl::queue& queue, const sycl::event& event,
                      const sycl::context& context) {
  const sycl::context own = queue.get_context();
  return own == context ? event : event_in(own, event);
}

}  // namespace

bool order_after(sycl::queue& queue, const std::vector<sycl::event>& events) {
  try {
    queue.ext_oneapi_submit_barrier(events);
  } catch (const sycl::exception&) {
    return false;
  }
  return true;
}

StreamOrder::StreamOrder(size_t lanes) {
  for (size_t i = 0; i < lanes; ++i) {
    lanes_.push_back(std::make_unique<Lane>());
    lanes_.back()->behind.resize(lanes);
  }
}

bool StreamOrder::is_behind(size_t lane, size_t other, uint64_t number) const {
  return lane == other || lanes_[lane]->behind[other] >= number ||
         is_finished({other, number});
}

const sycl::event& StreamOrder::tail(Lane& lane) {
  if (lane.tail_number != lane.number) {
    lane.tail = lane.queue->ext_oneapi_submit_barrier();
    lane.tail_number = lane.number;
  }
  return lane.tail;
}

void StreamOrder::follow(size_t lane, size_t other, std::vector<sycl::event>* events) {
  Lane& to = *lanes_[other];
  if (is_behind(lane, other, to.number)) return;
  const sycl::queue& waits = *lanes_[lane]->queue;
  events->push_back(event_for(waits, tail(to), to.queue->get_context()));
  std::vector<uint64_t>& behind = lanes_[lane]->behind;
  behind[other] = to.number;
  for (size_t i = 0; i < behind.size(); ++i) {
    if (i != lane) behind[i] = std::max(behind[i], to.behind[i]);
  }
}

void StreamOrder::pass_gate(size_t lane, std::vector<sycl::event>* events) {
  if (!is_behind(lane, gate_.lane, gate_.number)) follow(lane, gate_.lane, events);
}

Ticket StreamOrder::after_all(size_t lane) {
  std::vector<sycl::event> events;
  for (size_t other = 0; other < lanes_.size(); ++other) {
    if (lanes_[other]->queue != nullptr) follow(lane, other, &events);
  }
  order(*lanes_[lane]->queue, events);
  return gate_ = {lane, ++lanes_[lane]->number};
}

Ticket StreamOrder::after(size_t lane, const Stream& self, const Uses& before) {
  std::vector<sycl::event> events;
  pass_gate(lane, &events);
  for (const Use& use : before) {
    const auto [other, number] = use.ticket;
    if (use.stream == &self) {
      if (is_behind(lane, other, number)) continue;
      lanes_[lane]->behind[other] = number;
    } else if (use.stream->has_seen(use.ticket)) {
      continue;
    }
    if (is_over(use.done)) continue;
    const PhysicalDevice& device = *use.stream->ordinal().devices[other / 2];
    events.push_back(event_for(*lanes_[lane]->queue, use.done, device.context));
  }
  order(*lanes_[lane]->queue, events);
  return {lane, ++lanes_[lane]->number};
}

bool StreamOrder::after_event(size_t lane, const sycl::event& event) {
  std::vector<sycl::event> events;
  pass_gate(lane, &events);
  // The event's context is not known, and a barrier that the driver rejects breaks the
  // queue.
  sycl::queue& queue = *lanes_[lane]->queue;
  if (!is_over(event)) events.push_back(event_in(queue.get_context(), event));
  order(queue, events);
  gate_ = {lane, ++lanes_[lane]->number};
  return true;
}

sycl::event StreamOrder::end(const std::function<sycl::queue&()>& joins) {
  std::vector<size_t> open;
  for (size_t lane = 0; lane < lanes_.size(); ++lane) {
    if (!is_finished({lane, lanes_[lane]->number})) open.push_back(lane);
  }
  if (open.empty()) return {};
  for (const size_t lane : open) {
    const bool last = std::all_of(open.begin(), open.end(), [&](size_t other) {
      return is_behind(lane, other, lanes_[other]->number);
    });
    if (last) return tail(*lanes_[lane]);
  }
  // Not on a lane: the lane's next work would then wait for the other lanes.
  sycl::queue& queue = joins();
  std::vector<sycl::event> ends;
  for (const size_t each : open) {
    Lane& lane = *lanes_[each];
    ends.push_back(event_for(queue, tail(lane), lane.queue->get_context()));
  }
  order(queue, ends);
  return queue.ext_oneapi_submit_barrier();
}

void StreamOrder::add_gate(Stream& self, Uses* to) {
  if (is_finished(gate_)) return;
  Lane& lane = *lanes_[gate_.lane];
  const sycl::event& done = tail(lane);
  to->add({&self, {gate_.lane, lane.number}, done});
}

std::vector<uint64_t> StreamOrder::numbers() const {
  std::vector<uint64_t> result;
  for (const auto& lane : lanes_) result.push_back(lane->number);
  return result;
}

void StreamOrder::finished(const Ticket& ticket) {
  auto& finished = lanes_[ticket.lane]->finished;
  uint64_t before = finished.load();
  while (before < ticket.number &&
         !finished.compare_exchange_weak(before, ticket.number)) {
  }
}

void StreamOrder::finished(const std::vector<uint64_t>& numbers) {
  for (size_t lane = 0; lane < numbers.size(); ++lane)
    finished(Ticket{lane, numbers[lane]});
}

bool StreamOrder::all_finished() const {
  return std::all_of(lanes_.begin(), lanes_.end(), [](const auto& lane) {
    return lane->finished.load() >= lane->number;
  });
}

}  // namespace xpurt
