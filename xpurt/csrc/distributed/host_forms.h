// CPU tensors in place of the xpu tensors of a collective.
#pragma once

#include <ATen/core/Tensor.h>

#include <deque>
#include <vector>

#include "memory/replica/host_writes.h"
#include "stream/event.h"

namespace xpurt {

// Note [Host forms]
// ~~~~~~~~~~~~~~~~~
// The inner backend reads and writes host memory, in threads of its own, after the call
// returned. So each xpu tensor of a collective gets a *host form*, a contiguous CPU
// tensor that lives as long as the collective:
//
// | the host          | tensor               | host form                              |
// |-------------------|----------------------|----------------------------------------|
// | reads the memory  | contiguous           | an alias: the same bytes               |
// | reads the memory  | strided, conjugated  | a copy, made on the host               |
// | does not          | any                  | a copy in pinned memory                |
//
// The steps, and where each runs:
// 1. take(), in the thread of the call: submits copies from the device to the current
//    stream, and records events there. Under AUTO the bytes are brought home.
// 2. fill(), where the collective is launched: waits for the events.
// 3. The inner backend works.
// 4. deliver(), in a thread of the inner backend: copies results back, on the current
//    stream of that thread. Aliases need nothing: the host wrote the tensor itself. If
//    all results are copied by streams, deliver() comes after take() already, on a
//    stream that waits: see Note [Waiting for a collective].
//
// Under AUTO an alias that is written is announced as a write of the host (see Note
// [Host writes]) until deliver(). So other devices keep working on other bytes of the
// storage, such as other buckets of gradients, and take none of these.
//
// Gloo has eight element types. A collective that only copies gives it bytes: the host
// form of shape (a, b) is one of shape (a, b, size of an element). A sum of complex
// numbers is a sum of their real and imaginary parts, likewise in a last dimension.
class HostForms {
 public:
  enum class Elements { copied, summed, reduced };

  HostForms(Elements elements, bool changes_inputs)
      : elements_(elements), changes_inputs_(changes_inputs) {}
  HostForms(const HostForms&) = delete;
  HostForms& operator=(const HostForms&) = delete;

  void take(const std::vector<at::Tensor>& read,
            const std::vector<at::Tensor>& written);
  // Whether fill() would wait for no device.
  bool is_ready() const;
  void fill();
  // Returns the storages that work on the current stream writes.
  std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>> deliver();

  // The host forms, for the inner backend.
  at::Tensor operator()(const at::Tensor& tensor) const;
  std::vector<at::Tensor> operator()(const std::vector<at::Tensor>& tensors) const;
  std::vector<std::vector<at::Tensor>> operator()(
      const std::vector<std::vector<at::Tensor>>& tensors) const;

  // The host forms with the elements' own type.
  std::vector<at::Tensor> all_read() const;
  std::vector<at::Tensor> all_written() const;

  // The ordinals of the tensors, each once.
  const std::vector<c10::Device>& devices() const { return devices_; }
  // Whether a tensor is copied to or from memory that the host does not read.
  bool is_staged() const;
  // Whether there are results, and deliver() only submits copies of them to streams.
  bool has_queued_results() const;

 private:
  struct Form {
    at::Tensor original;
    bool read;
    bool written;
    bool staged = false;
    at::Tensor alias;  // on the host, of the same strides; undefined if staged
    at::Tensor host;   // contiguous
  };

  // An input that the collective changes, and the caller keeps.
  bool needs_own_memory(const Form& form) const {
    return changes_inputs_ && form.read && !form.written;
  }
  Form& form_of(const at::Tensor& tensor);
  const Form& known(const at::Tensor& tensor) const;
  void take(Form& form);
  void take_alias(Form& form);
  void take_staged(Form& form);
  void take_sparse(Form& form);
  at::Tensor for_backend(const at::Tensor& host) const;

  const Elements elements_;
  const bool changes_inputs_;
  std::vector<Form> forms_;
  std::vector<c10::Device> devices_;
  std::vector<Event> before_;
  LastingHostWrites writes_;
};

}  // namespace xpurt
