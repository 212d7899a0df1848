// Memory for the kernels.
#pragma once

#include <cstdint>
#include <memory>

namespace xpurt {

inline int64_t divide_up(int64_t number, int64_t by) {
  return (number + by - 1) / by;
}

// Memory that begins with a line of the caches, and is not cleared.
template <typename Number>
class Lines {
 public:
  explicit Lines(int64_t size)
      : memory_(std::make_unique_for_overwrite<Line[]>(divide_up(size, kLine))) {}

  Number* first() { return memory_[0].numbers; }

 private:
  static constexpr int64_t kLine = 64 / sizeof(Number);

  struct alignas(64) Line {
    Number numbers[kLine];
  };

  std::unique_ptr<Line[]> memory_;
};

}  // namespace xpurt
