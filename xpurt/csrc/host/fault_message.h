// The messages of assertions that kernels check.
#pragma once

#include <cstdint>
#include <string>

namespace xpurt {

// The number that a kernel writes to its stream's fault word if the assertion with this
// message fails: below -1, other than the numbers of rows and of compiled kernels.
// Called under the GIL.
int32_t number_of_message(const std::string& text);

// Throws c10::Error with the message of that number.
void raise_message(int32_t number);

}  // namespace xpurt
