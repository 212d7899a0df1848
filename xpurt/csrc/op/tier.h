// The tiers: how an op is computed.
#pragma once

#include <array>

namespace xpurt {

enum class Tier {
  sycl,    // a row's kernel on the device's queue
  onednn,  // a oneDNN primitive on that queue
  native,  // PyTorch's CPU kernel on the same bytes
  copy,    // PyTorch's CPU kernel on copies of the bytes
};

constexpr int kTiers = 4;
constexpr std::array<const char*, kTiers> kTierNames{"sycl", "onednn", "native",
                                                     "copy"};

}  // namespace xpurt
