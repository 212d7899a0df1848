// Exceptions that Python sees as those of xpurt.errors.
#pragma once

#include <string>

namespace xpurt {

// MappingError: what was requested is not to be had under the mapping.
[[noreturn]] void throw_mapping_error(std::string message);

// FallbackError: an op would have to leave the device.
[[noreturn]] void throw_fallback_error(std::string message);

}  // namespace xpurt
