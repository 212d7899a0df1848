// Exceptions that become those of xpurt.errors in Python.
#pragma once

#include <string>

namespace xpurt {

// MappingError: what was requested does not exist under the mapping.
[[noreturn]] void throw_mapping_error(std::string message);

// FallbackError: an op would have to leave the device.
[[noreturn]] void throw_fallback_error(std::string message);

}  // namespace xpurt
