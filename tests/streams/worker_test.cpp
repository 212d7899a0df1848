// Checks csrc's Worker by itself; compiled and run by test_worker.py. Prints the name
// of each check that held, and ends at the first that did not.
#include "worker.h"

#include <pthread.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using xpurt::Worker;
using namespace std::chrono_literals;

// Locks are not checked here: mutex.cpp needs Python.
namespace xpurt {
std::atomic<bool> locks_are_checked{false};
void enter_lock(Rank) {}
void leave_lock(Rank) noexcept {}
}  // namespace xpurt

namespace {

constexpr auto kLong = 10s;  // no check takes so long unless it fails

void check(bool holds, const char* what) {
  if (holds) return;
  std::printf("FAILED: %s\n", what);
  std::fflush(stdout);
  std::_Exit(1);
}

// Lets threads on once so many have come; false if they do not come.
class Gate {
 public:
  explicit Gate(int wanted) : wanted_(wanted) {}
  bool pass() {
    std::unique_lock<std::mutex> lock(mutex_);
    ++come_;
    changed_.notify_all();
    return changed_.wait_for(lock, kLong, [this] { return come_ >= wanted_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  const int wanted_;
  int come_ = 0;
};

Worker& leaked(const char* name, size_t threads) {
  return *new Worker(name, threads);
}

void tasks_run_at_once_where_there_is_no_limit() {
  Worker& worker = leaked("test", Worker::kNoLimit);
  constexpr int kTasks = 40;
  Gate gate(kTasks);
  std::atomic<bool> all{true};
  std::vector<Worker::Handle> tasks;
  for (int i = 0; i < kTasks; ++i) {
    tasks.push_back(worker.submit([&] { all = gate.pass() && all; }));
  }
  for (const auto& task : tasks) worker.wait(task);
  check(all, "each task has a thread of its own");
}

void no_more_threads_than_the_limit() {
  Worker& worker = leaked("test", 3);
  Gate gate(3);
  std::atomic<int> running{0}, most{0};
  for (int i = 0; i < 30; ++i) {
    worker.submit([&, i] {
      const int now = ++running;
      for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
      }
      if (i < 3) check(gate.pass(), "three tasks run at once");
      --running;
    });
  }
  worker.wait_for_all();
  check(most == 3, "three threads at most");
}

void tasks_begin_in_order() {
  Worker& worker = leaked("test", 1);
  std::vector<int> order;
  for (int i = 0; i < 100; ++i) worker.submit([&order, i] { order.push_back(i); });
  worker.wait_for_all();
  for (int i = 0; i < 100; ++i) check(order.at(i) == i, "tasks begin in order");
}

void who_waits_gets_the_exception() {
  Worker& worker = leaked("test", 2);
  const auto task = worker.submit([] { throw std::runtime_error("of the task"); });
  std::string told;
  try {
    worker.wait(task);
  } catch (const std::runtime_error& error) {
    told = error.what();
  }
  check(told == "of the task", "the exception of the task");
  Gate gate(1);
  worker.wait(worker.submit([&] { gate.pass(); }));  // its thread goes on
}

void a_wait_can_be_left() {
  Worker& worker = leaked("test", Worker::kNoLimit);
  Gate gate(2);
  std::atomic<bool> passed{false};
  const auto task = worker.submit([&] { passed = gate.pass(); });
  int calls = 0;
  bool left = false;
  try {
    worker.wait(task, 1ms, [&] {
      if (++calls == 3) throw std::runtime_error("interrupted");
    });
  } catch (const std::runtime_error&) {
    left = true;
  }
  check(left && calls == 3, "what `meanwhile` throws ends the wait");
  check(!passed, "the task is still running");
  gate.pass();
  worker.wait(task, 1ms, [] {});
  check(passed, "the task went on");
}

void what_a_task_holds_goes_before_it_is_over() {
  Worker& worker = leaked("test", 4);
  for (int i = 0; i < 200; ++i) {
    auto held = std::make_shared<int>(i);
    std::weak_ptr<int> seen = held;
    const auto task = worker.submit([held = std::move(held)] { (void)*held; });
    worker.wait(task);
    check(seen.expired(), "a task's body is gone when the task is over");
  }
}

void wait_for_all_waits_for_running_tasks() {
  Worker& worker = leaked("test", 2);
  std::atomic<int> ended{0};
  for (int i = 0; i < 4; ++i) {
    worker.submit([&] {
      std::this_thread::sleep_for(5ms);
      ++ended;
    });
  }
  worker.wait_for_all();
  check(ended == 4, "all tasks are over");
}

void stop_drops_what_has_not_begun() {
  Worker& worker = leaked("test", 1);
  Gate began(2), end(2);
  const auto running = worker.submit([&] {
    began.pass();
    end.pass();
  });
  began.pass();
  std::atomic<bool> ran{false};
  const auto dropped = worker.submit([&] { ran = true; });
  worker.stop(20ms);  // the first one hangs: it is left behind
  bool thrown = false;
  try {
    worker.wait(dropped);
  } catch (const std::runtime_error&) {
    thrown = true;
  }
  check(thrown && !ran, "who waits for a dropped task is told");
  check(worker.submit([&] { ran = true; }) == nullptr, "nothing is taken any more");
  end.pass();
  worker.wait(running);
  worker.stop(20ms);
  check(!ran, "a dropped task is never run");
}

void threads_have_names() {
  Worker& worker = leaked("xpurt-test", 1);
  char name[16] = "";
  const auto ask = [&] { pthread_getname_np(pthread_self(), name, sizeof(name)); };
  worker.wait(worker.submit(ask));
  check(std::string(name) == "xpurt-test", "the thread has the worker's name");
}

// Threads that submit and wait, all at the same time.
void many_use_one_worker() {
  for (const size_t threads : {size_t{2}, Worker::kNoLimit}) {
    Worker& worker = leaked("test", threads);
    std::atomic<int> done{0};
    std::vector<std::thread> users;
    for (int user = 0; user < 8; ++user) {
      users.emplace_back([&] {
        for (int i = 0; i < 500; ++i) {
          const auto task = worker.submit([&] { ++done; });
          check(task != nullptr, "there is a thread");
          if (i % 2 == 0) worker.wait(task);
          if (i % 100 == 0) worker.wait_for_all();
        }
      });
    }
    for (std::thread& each : users) each.join();
    worker.wait_for_all();
    check(done == 8 * 500, "each task ran once");
  }
}

}  // namespace

#define RUN(test) (test(), std::puts(#test))

int main() {
  RUN(tasks_run_at_once_where_there_is_no_limit);
  RUN(no_more_threads_than_the_limit);
  RUN(tasks_begin_in_order);
  RUN(who_waits_gets_the_exception);
  RUN(a_wait_can_be_left);
  RUN(what_a_task_holds_goes_before_it_is_over);
  RUN(wait_for_all_waits_for_running_tasks);
  RUN(stop_drops_what_has_not_begun);
  RUN(threads_have_names);
  RUN(many_use_one_worker);
}
