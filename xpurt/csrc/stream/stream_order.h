// The known order between the queues of one stream.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "stream/uses.h"

namespace xpurt {

// Note [Order by data]
// ~~~~~~~~~~~~~~~~~~~~
// A stream of an ordinal with several devices has lanes for each of them. A lane is an
// in-order queue. Work that names the memory it reads and writes (Operands) waits for
// the uses of that memory and for no others, so that lanes without a dependency run at
// the same time. All other work (another library's kernel, a captured graph, work on a
// queue that was handed out) keeps total order: it runs after everything submitted to
// the stream before it, and before everything submitted later. The last such submission
// is the gate. Every lane waits for the gate before its next work.
//
// Each submission has a number in its lane. A lane records, for each other lane, the
// number up to which it has waited. A second wait for the same work costs nothing.
// Numbers that a wait on the host has covered are finished.
//
// Outside of the stream, its work is one sequence: an event recorded on it covers all
// lanes.
class StreamOrder {
 public:
  explicit StreamOrder(size_t lanes);

  // All but is_finished() require the stream's mutex.

  // Sets a lane's queue, before the lane's first use.
  void open(size_t lane, sycl::queue& queue) { lanes_[lane]->queue = &queue; }

  // The lane's next submission comes after everything, and is the gate.
  Ticket after_all(size_t lane);

  // ... after the gate and `before`, a part of which may be `self`'s.
  Ticket after(size_t lane, const Stream& self, const Uses& before);

  // ... after the gate and `event`, and is the gate. False if the host has to wait for
  // the event.
  bool after_event(size_t lane, const sycl::event& event);

  // Other code submits to the lane, too: its end is not known.
  void touch(size_t lane) { ++lanes_[lane]->number; }

  // Completes when all lanes have completed. `joins` returns a queue without work of
  // its own.
  sycl::event end(const std::function<sycl::queue&()>& joins);

  // Adds the gate to `to` if it is not finished.
  void add_gate(Stream& self, Uses* to);

  std::vector<uint64_t> numbers() const;
  void finished(const std::vector<uint64_t>& numbers);
  void finished(const Ticket& ticket);
  bool all_finished() const;

  // Whether a wait on the host has covered it.
  bool is_finished(const Ticket& ticket) const {
    return lanes_[ticket.lane]->finished.load(std::memory_order_acquire) >=
           ticket.number;
  }

  sycl::queue* queue(size_t lane) const { return lanes_[lane]->queue; }

 private:
  struct Lane {
    sycl::queue* queue = nullptr;
    uint64_t number = 0;  // of the last submission
    std::atomic<uint64_t> finished{0};
    std::vector<uint64_t> behind;  // by lane: the number that this lane waits for
    uint64_t tail_number = 0;
    sycl::event tail;  // complete when number tail_number is
  };

  bool is_behind(size_t lane, size_t other, uint64_t number) const;
  // Adds the events after which the lane is behind all work of another.
  void follow(size_t lane, size_t other, std::vector<sycl::event>* events);
  void pass_gate(size_t lane, std::vector<sycl::event>* events);
  const sycl::event& tail(Lane& lane);

  std::vector<std::unique_ptr<Lane>> lanes_;
  Ticket gate_;
};

// Work submitted to `queue` from now on starts after the events. False if the driver
// rejects an event of another context, such as that of another sub-device of one CPU:
// then the host has to wait for them.
bool order_after(sycl::queue& queue, const std::vector<sycl::event>& events);

}  // namespace xpurt
