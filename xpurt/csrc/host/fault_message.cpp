#include "host/fault_message.h"

#include <c10/util/Exception.h>

#include <atomic>

namespace xpurt {
namespace {

// The newest first. Leaked: a kernel may write a number until the process ends.
struct Message {
  std::string text;
  int32_t number;
  const Message* next;
};
std::atomic<const Message*> messages{nullptr};

}  // namespace

int32_t number_of_message(const std::string& text) {
  const Message* newest = messages.load();
  for (const Message* each = newest; each != nullptr; each = each->next) {
    if (each->text == text) return each->number;
  }
  constexpr int32_t kFirst = -2;  // compiled kernels write -1
  const int32_t number = newest == nullptr ? kFirst : newest->number - 1;
  messages = new Message{text, number, newest};
  return number;
}

void raise_message(int32_t number) {
  for (const Message* each = messages.load(); each != nullptr; each = each->next) {
    TORCH_CHECK(each->number != number, each->text);
  }
}

}  // namespace xpurt
