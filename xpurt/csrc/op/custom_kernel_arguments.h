// The arguments of a custom kernel, and the part of its key that describes them.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstring>
#include <string>
#include <vector>

#include "op/element_type.h"

namespace xpurt {

// A tensor that steps use, with its name in their texts.
struct NamedTensor {
  std::string name;
  at::Tensor tensor;  // undefined: None
};

// Note [Arguments of custom kernels]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// A kernel takes the pointers of the tensors that are given, in the order of the key,
// then the address of the fault word if the step uses FAULT, and one structure. The
// members of the structure have 8 bytes each: the number of work-items; the number of
// the row, from 1; per tensor its number of elements, sizes and strides; then the other
// arguments. The key describes them, as "self=f2" (a float tensor of two dimensions),
// "mask=N" (not given), "dim=I" (an integer), "eps=D" (a float, and its rounding error:
// the given number minus the float), "padding=L2" (two integers), "mode='reflect" (a
// string).
class CustomKernelArguments {
 public:
  // `flat`: a contiguous tensor is described as one-dimensional.
  void add(const NamedTensor& named, bool flat) {
    name(named.name);
    if (!named.tensor.defined()) {
      key_ += 'N';
      return;
    }
    const at::Tensor& t = named.tensor;
    key_ += letter_of(t.scalar_type());
    words_.push_back(t.numel());
    if (flat && t.is_contiguous()) {
      key_ += '1';
      words_.insert(words_.end(), {t.numel(), 1});
      return;
    }
    key_ += std::to_string(t.dim());
    words_.insert(words_.end(), t.sizes().begin(), t.sizes().end());
    words_.insert(words_.end(), t.strides().begin(), t.strides().end());
  }

  void add(const std::string& called, const c10::IValue& value, bool as_double) {
    name(called);
    if (value.isNone()) {
      key_ += 'N';
    } else if (value.isBool()) {
      integer(value.toBool());
    } else if (value.isInt()) {
      integer(value.toInt());
    } else if (value.isDouble()) {
      real(value.toDouble(), as_double);
    } else if (value.isIntList() || value.isBoolList()) {
      const auto list = value.toListRef();
      key_ += 'L' + std::to_string(list.size());
      for (const c10::IValue& each : list) {
        words_.push_back(each.isBool() ? each.toBool() : each.toInt());
      }
    } else if (value.isString()) {
      key_ += '\'' + value.toStringRef();
    } else {
      TORCH_INTERNAL_ASSERT(false, "a custom kernel knows no argument like ", called);
    }
  }

  const std::string& key() const { return key_; }
  std::vector<int64_t>& words() { return words_; }

 private:
  void name(const std::string& called) {
    if (!key_.empty()) key_ += ',';
    key_ += called + '=';
  }
  void integer(int64_t value) {
    key_ += 'I';
    words_.push_back(value);
  }
  void real(double value, bool as_double) {
    key_ += 'D';
    int64_t word = 0;
    const auto narrow = static_cast<float>(value);
    const float parts[2] = {narrow, static_cast<float>(value - narrow)};
    static_assert(sizeof(parts) == sizeof(word));
    if (as_double) {
      std::memcpy(&word, &value, sizeof(value));
    } else {
      std::memcpy(&word, parts, sizeof(parts));
    }
    words_.push_back(word);
  }

  std::string key_;
  std::vector<int64_t> words_{0, 0};
};

}  // namespace xpurt
