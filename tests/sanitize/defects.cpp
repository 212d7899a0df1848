// Defects that sanitizers must report; run by run_sanitizers.py, which loads this as a
// library into Python, as it loads the extension.
#include <climits>
#include <memory>
#include <mutex>
#include <thread>

namespace {

struct Counter {
  std::mutex first;
  std::mutex second;
  int value = 0;
};

template <typename Body>
void in_two_threads(Body body) {
  std::thread one(body), other(body);
  one.join();
  other.join();
}

// Hides a value from the optimizer, and from the compiler's warnings.
template <typename T>
T opaque(T value) {
  asm volatile("" : "+r"(value) : : "memory");
  return value;
}

}  // namespace

extern "C" {

void nothing() {
  const auto counter = std::make_unique<Counter>();
  in_two_threads([&] {
    std::lock_guard lock(counter->first);
    ++counter->value;
  });
}

void race() {
  const auto counter = std::make_unique<Counter>();
  in_two_threads([&] { ++counter->value; });
}

void opposite_locks() {
  const auto counter = std::make_unique<Counter>();
  {
    std::lock_guard lock(counter->first);
    std::lock_guard inner(counter->second);
  }
  {
    std::lock_guard lock(counter->second);
    std::lock_guard inner(counter->first);
  }
}

int overflow() {
  const auto values = std::make_unique<int[]>(4);
  return values[opaque(4)];
}

int use_after_free() {
  auto owner = std::make_unique<int>(1);
  const int* value = opaque(owner.get());
  owner.reset();
  return *value;
}

int signed_overflow() {
  return opaque(INT_MAX) + opaque(1);
}
}
