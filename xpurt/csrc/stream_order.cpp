#include "stream_order.h"

#include <algorithm>

#include "stream.h"

namespace xpurt {
namespace {

// Note [Events of another context]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// A barrier with a list of events gives them to the driver, which takes those of its own
// context alone. What a command depends on, the SYCL runtime looks after itself: it
// submits the command once an event of another context has come to pass, and holds up
// the in-order queue until then. A barrier without a list can depend on events, too.
bool depend_on(sycl::queue& queue, const std::vector<sycl::event>& events) {
  try {
    queue.submit([&](sycl::handler& handler) {
      handler.depends_on(events);
      handler.ext_oneapi_barrier();
    });
  } catch (const sycl::exception&) {
    return false;
  }
  return true;
}

// Waits on the host where the driver can't. With the GIL: to take it back while
// holding the stream's mutex could be a deadlock.
void order(sycl::queue& queue, std::vector<sycl::event> events) {
  if (events.empty() || depend_on(queue, events)) return;
  for (sycl::event& event : events) event.wait();
}

}  // namespace

bool order_after(sycl::queue& queue, const std::vector<sycl::event>& events) {
  try {
    queue.ext_oneapi_submit_barrier(events);
  } catch (const sycl::exception&) {
    return depend_on(queue, events);
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
  events->push_back(tail(to));
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
  order(*lanes_[lane]->queue, std::move(events));
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
    events.push_back(use.done);
  }
  order(*lanes_[lane]->queue, std::move(events));
  return {lane, ++lanes_[lane]->number};
}

bool StreamOrder::after_event(size_t lane, const sycl::event& event) {
  std::vector<sycl::event> events;
  pass_gate(lane, &events);
  order(*lanes_[lane]->queue, std::move(events));
  gate_ = {lane, ++lanes_[lane]->number};
  return depend_on(*lanes_[lane]->queue, {event});
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
  // Not on a lane: what comes next there would wait for the others.
  std::vector<sycl::event> ends;
  for (const size_t lane : open) ends.push_back(tail(*lanes_[lane]));
  sycl::queue& queue = joins();
  order(queue, std::move(ends));
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
  for (size_t lane = 0; lane < numbers.size(); ++lane) finished(Ticket{lane, numbers[lane]});
}

bool StreamOrder::all_finished() const {
  return std::all_of(lanes_.begin(), lanes_.end(), [](const auto& lane) {
    return lane->finished.load() >= lane->number;
  });
}

}  // namespace xpurt
