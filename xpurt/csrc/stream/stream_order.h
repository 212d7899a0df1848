// What is known of the order between the queues of one stream.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "stream/uses.h"

namespace xpurt {

// Note [Order by data]
// ~~~~~~~~~~~~~~~~~~~~
// A stream of an ordinal with several devices has a lane for each of them: an in-order
// queue. Work that says which memory it reads and writes (Operands) waits for the uses
// of that memory and no others, so that lanes without a dependency run at the same
// time. All other work (another library's kernel, a captured graph, whoever was given
// the queue) keeps total order: it runs after everything that was submitted to the
// stream before it, and before everything that comes later. The last such piece is the
// gate, which every lane passes before it goes on.
//
// Each submission has a number in its lane, and a lane remembers how far each other
// lane had come when it waited for it: what a lane is behind of already costs nothing.
// Numbers up to which somebody has waited on the host are finished.
//
// Who looks at the stream from outside sees one sequence: an event that is recorded on
// it stands for all lanes.
class StreamOrder {
 public:
  explicit StreamOrder(size_t lanes);

  // Under the stream's mutex, all but has_seen().

  // Says which queue a lane is, before it is first named.
  void open(size_t lane, sycl::queue& queue) { lanes_[lane]->queue = &queue; }

  // The lane's next submission comes after everything. It is the gate.
  Ticket after_all(size_t lane);

  // ... after the gate and `before`, some of which is `self`'s.
  Ticket after(size_t lane, const Stream& self, const Uses& before);

  // ... after the gate and `event`, and is the gate. False if the host has to wait for
  // the event.
  bool after_event(size_t lane, const sycl::event& event);

  // Somebody else submits to the lane, too: nothing is known of its end.
  void touch(size_t lane) { ++lanes_[lane]->number; }

  // Complete when all lanes are. `joins` gives a queue without work of its own.
  sycl::event end(const std::function<sycl::queue&()>& joins);

  // The gate, as long as it is not finished.
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
    std::vector<uint64_t> behind;  // by lane: the number that this one waits for
    uint64_t tail_number = 0;
    sycl::event tail;  // complete when number tail_number is
  };

  bool is_behind(size_t lane, size_t other, uint64_t number) const;
  // Adds what the lane has to wait for to be behind all that was submitted to another.
  void follow(size_t lane, size_t other, std::vector<sycl::event>* events);
  void pass_gate(size_t lane, std::vector<sycl::event>* events);
  const sycl::event& tail(Lane& lane);

  std::vector<std::unique_ptr<Lane>> lanes_;
  Ticket gate_;
};

// What is submitted to `queue` from now on starts after the events. False where the
// driver does not take an event of another context, such as of another sub-device of
// one CPU: then the host has to wait for them.
bool order_after(sycl::queue& queue, const std::vector<sycl::event>& events);

}  // namespace xpurt
