// xpurt.errors.FallbackError, thrown from C++.
#pragma once

#include <string>

namespace xpurt {

[[noreturn]] void throw_fallback_error(const std::string& message);

}  // namespace xpurt
