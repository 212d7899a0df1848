#include "layouts/temporary_layout.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/clone.h>
#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>

#include <atomic>
#include <memory>

#include "layouts/layout_block.h"
#include "layouts/layout_keys.h"
#include "layouts/weak_tensor.h"
#include "stream/captured_now.h"

namespace xpurt {
namespace {

using at::Tensor;
using c10::StorageImpl;
using c10::TensorImpl;

// Of a tensor whose storage had more than one owner when the op had made it: how many,
// and how many copies of the tensor are alive that no op made.
class AliasCount final : public c10::BackendMeta {
 public:
  explicit AliasCount(size_t owners)
      : owners(owners), copies_(std::make_shared<std::atomic<int>>(0)) {}
  AliasCount(const AliasCount& of)
      : owners(of.owners), copies_(of.copies_), is_copy_(true) {
    ++*copies_;
  }
  ~AliasCount() override {
    if (is_copy_) --*copies_;
  }
  c10::intrusive_ptr<BackendMeta> clone(
      const c10::intrusive_ptr<BackendMeta>&) const override {
    return c10::make_intrusive<AliasCount>(*this);
  }
  int copies() const { return *copies_; }

  const size_t owners;

 private:
  std::shared_ptr<std::atomic<int>> copies_;
  bool is_copy_ = false;
};

// Those that were noted, as far as they are alive.
using Noted = std::vector<WeakTensor>;
Noted& noted() {
  thread_local Noted found;
  return found;
}
thread_local size_t count_to_sweep = 64;

// PyTorch has no function that sets one of these keys.
struct KeySet : TensorImpl {
  static c10::DispatchKeySet& of(TensorImpl& tensor) {
    return tensor.*(&KeySet::key_set_);
  }
};

StorageImpl& storage_of(const TensorImpl& tensor) {
  return *tensor.storage().unsafeGetStorageImpl();
}

// Somebody takes a pointer to write by: the storage forgets the materializer.
void seen(StorageImpl*) {}

bool can_be_temporary(const Tensor& tensor) {
  return tensor.defined() && tensor.layout() == at::kStrided &&
         (tensor.is_cpu() || tensor.is_xpu()) && tensor.numel() > 0 &&
         !storage_of(*tensor.unsafeGetTensorImpl()).has_materializer() &&
         !tensor.unsafeGetTensorImpl()->is_python_dispatch() &&
         tensor.is_non_overlapping_and_dense() && !tensor.is_contiguous();
}

bool is_seen(TensorImpl& tensor) {
  StorageImpl& storage = storage_of(tensor);
  const auto* aliases = dynamic_cast<AliasCount*>(tensor.get_backend_meta());
  return !storage.has_materializer() || storage.pyobj_slot()->load_pyobj() != nullptr ||
         tensor.storage().use_count() > (aliases == nullptr ? 1 : aliases->owners) ||
         (aliases != nullptr && aliases->copies() > 0);
}

// The tensor is one as any other.
void forget(TensorImpl& tensor) {
  KeySet::of(tensor) = KeySet::of(tensor).remove(layout_keys().tensor);
  storage_of(tensor).clear_materializer();
  if (dynamic_cast<AliasCount*>(tensor.get_backend_meta()) != nullptr) {
    tensor.set_backend_meta(nullptr);
  }
}

void sweep() {
  if (noted().size() < count_to_sweep) return;
  std::erase_if(noted(), [](const auto& each) { return each.expired(); });
  count_to_sweep = std::max<size_t>(64, 2 * noted().size());
}

void check_no_recording(const Tensor& tensor) {
  TORCH_CHECK(
      !tensor.is_xpu() || !current_stream_is_captured(),
      "a tensor of a block of xpurt.autocast can't be made plain while a graph is "
      "recorded, since the graph runs later; found ",
      tensor.sizes(),
      ", made before. Begin the block within the recording, or use "
      "x.contiguous() before it");
}

}  // namespace

void note_temporary(const Tensor& tensor) {
  if (layout_block() == nullptr || !can_be_temporary(tensor)) return;
  sweep();
  TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  if (const size_t owners = tensor.storage().use_count(); owners > 1) {
    impl.set_backend_meta(c10::make_intrusive<AliasCount>(owners));
  }
  storage_of(impl).set_materializer(&seen);
  KeySet::of(impl) = KeySet::of(impl).add(layout_keys().tensor);
  noted().emplace_back(tensor.getIntrusivePtr());
}

bool is_temporary(const Tensor& tensor) {
  return tensor.defined() && tensor.key_set().has(layout_keys().tensor);
}

bool make_plain(const Tensor& tensor) {
  if (!is_temporary(tensor)) return true;
  TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  if (is_seen(impl)) return false;
  check_no_recording(tensor);
  forget(impl);
  const WithoutLayouts without;
  const at::AutoDispatchBelowADInplaceOrView below;
  const Tensor plain = tensor.clone(at::MemoryFormat::Contiguous);
  impl.set_storage_keep_dtype(plain.storage());
  impl.set_sizes_and_strides(plain.sizes(), plain.strides(), plain.storage_offset());
  return true;
}

Tensor plain(const Tensor& tensor) {
  if (make_plain(tensor)) return tensor;
  const WithoutLayouts without;
  return tensor.contiguous();
}

void begin_use(TensorImpl& tensor) {
  if (storage_of(tensor).has_materializer()) {
    storage_of(tensor).clear_materializer();
  } else {
    forget(tensor);
  }
}

void end_use(TensorImpl& tensor) {
  if (!KeySet::of(tensor).has(layout_keys().tensor)) return;
  // The op may have made a copy on write of it, which has a materializer of its own.
  if (storage_of(tensor).has_materializer()) {
    KeySet::of(tensor) = KeySet::of(tensor).remove(layout_keys().tensor);
  } else {
    storage_of(tensor).set_materializer(&seen);
  }
}

std::vector<Tensor> known_to_python() {
  std::vector<Tensor> found;
  for (const auto& each : noted()) {
    auto tensor = each.lock();
    if (tensor && tensor->pyobj_slot()->load_pyobj() != nullptr) {
      found.emplace_back(std::move(tensor));
    }
  }
  return found;
}

void forget_temporaries() {
  for (const auto& each : noted()) {
    const auto tensor = each.lock();
    if (tensor && tensor->key_set().has(layout_keys().tensor)) forget(*tensor);
  }
  noted().clear();
}

size_t count_temporaries() {
  size_t alive = 0;
  for (const auto& each : noted()) alive += !each.expired();
  return alive;
}

}  // namespace xpurt
