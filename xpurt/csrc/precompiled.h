// What is costly to read and wanted by most files: setup.py compiles it once for all.
// A file includes what it needs nonetheless, since other builds do without this one.
#pragma once

#include <ATen/Context.h>
#include <ATen/DeviceGuard.h>
#include <ATen/TensorUtils.h>
#include <ATen/TracerMode.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <sycl/sycl.hpp>
#include <unordered_map>
#include <vector>
