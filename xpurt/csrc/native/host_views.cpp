#include "native/host_views.h"

#include <memory>
#include <vector>

#include "memory/allocator.h"
#include "memory/cpu_allocator.h"
#include "memory/replica/replica.h"
#include "native/alias.h"
#include "native/alias_storage.h"
#include "native/host_bytes.h"
#include "native/host_call.h"
#include "stream/stream.h"

namespace xpurt {
namespace {

// A CPU tensor that can take over the properties of another tensor.
class ViewImpl final : public c10::TensorImpl {
 public:
  ViewImpl(c10::Storage&& storage, c10::DispatchKeySet keys, caffe2::TypeMeta dtype)
      : c10::TensorImpl(VIEW, std::move(storage), keys, dtype) {}

  void show(const c10::TensorImpl& original, c10::DispatchKeySet keys) {
    key_set_ = keys;
    data_type_ = original.dtype();
    is_wrapped_number_ = original.is_wrapped_number();
    if (sizes() == original.sizes() && strides() == original.strides()) {
      storage_offset_ = original.storage_offset();
    } else {
      set_sizes_and_strides(original.sizes(), original.strides(),
                            original.storage_offset());
    }
  }
};

}  // namespace

struct HostView {
  c10::Storage storage;
  at::Tensor tensor;

  explicit HostView(const c10::TensorImpl& like) { make(like); }

  void make(const c10::TensorImpl& like) {
    storage = c10::Storage(c10::make_intrusive<c10::StorageImpl>(
        c10::StorageImpl::use_byte_size_t(), 0,
        c10::DataPtr(nullptr, c10::Device(c10::DeviceType::CPU)),
        &switching_allocator(), false));
    tensor = at::detail::make_tensor<ViewImpl>(c10::Storage(storage),
                                               host_keys(like.key_set()), like.dtype());
  }

  ViewImpl* impl() const {
    return static_cast<ViewImpl*>(tensor.unsafeGetTensorImpl());
  }
  // Whether other code holds a reference to the tensor, or to the storage.
  bool is_tensor_kept() const {
    return tensor.use_count() != 1 || impl()->autograd_meta() != nullptr ||
           impl()->pyobj_slot()->load_pyobj() != nullptr;
  }
  bool is_storage_kept() const { return storage.use_count() != 2; }

  void show(c10::StorageImpl& original) {
    c10::StorageImpl* memory = storage.unsafeGetStorageImpl();
    if (C10_UNLIKELY(original.has_materializer())) {
      memory->set_data_ptr_noswap(alias_data(&original));
      memory->set_nbytes(original.nbytes());
      follow_original(*memory, original);
      return;
    }
    memory->set_data_ptr_noswap(c10::DataPtr(const_cast<void*>(original.data()),
                                             c10::Device(c10::DeviceType::CPU)));
    memory->set_nbytes(original.nbytes());
  }
};

// The views of a thread, used like a stack: a nested call uses the views above those of
// the outer call. Tensors of inference mode have no version counter, so they have
// separate views.
struct ThreadViews {
  std::vector<std::unique_ptr<HostView>> of_kind[2];
  size_t used = 0;

  HostView& next(c10::TensorImpl& like) {
    auto& all = of_kind[like.is_inference()];
    if (C10_UNLIKELY(all.size() <= used)) all.resize(used + 1);
    auto& slot = all[used++];
    if (C10_UNLIKELY(!slot)) slot = std::make_unique<HostView>(like);
    return *slot;
  }
};

namespace {

ThreadViews& thread_views() {
  thread_local ThreadViews views;
  return views;
}

at::Tensor tensor_of(c10::TensorImpl* impl) {
  return at::Tensor(
      c10::intrusive_ptr<c10::TensorImpl>::unsafe_reclaim_from_nonowning(impl));
}

c10::Storage storage_of(c10::StorageImpl* impl) {
  return c10::Storage(
      c10::intrusive_ptr<c10::StorageImpl>::unsafe_reclaim_from_nonowning(impl));
}

}  // namespace

HostViews::HostViews(c10::DeviceIndex index)
    : index_(index), views_(thread_views()), first_(views_.used) {}

HostViews::~HostViews() {
  // A tensor that the kernel kept also keeps the storage that it shares.
  for (const Operand& operand : operands_) {
    if (!operand.shares) continue;
    HostView& view = *operand.view;
    if (view.is_tensor_kept()) {
      view.make(*operand.tensor);
    } else {
      view.impl()->set_storage_keep_dtype(view.storage);
    }
  }
  for (const Operand& operand : operands_) {
    if (operand.shares) continue;
    HostView& view = *operand.view;
    c10::StorageImpl* memory = view.storage.unsafeGetStorageImpl();
    if (C10_LIKELY(!view.is_tensor_kept() && !view.is_storage_kept())) {
      if (C10_UNLIKELY(memory->has_materializer())) memory->clear_materializer();
      memory->set_data_ptr_noswap(c10::DataPtr());
    } else {
      materialize_alias(*memory);
      memory->set_data_ptr_noswap(alias_data(operand.storage));
      view.make(*operand.tensor);
    }
  }
  views_.used = first_;
}

at::Tensor& HostViews::to_other(const at::Tensor& tensor, bool written) {
  c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  if (!impl->is_xpu()) return const_cast<at::Tensor&>(tensor);
  c10::StorageImpl* storage = impl->unsafe_storage().unsafeGetStorageImpl();
  const bool moved = ready_for_host(*storage, impl, written, &writes_, &pending_);
  HostView* shown = nullptr;
  for (const Operand& known : operands_) {
    if (known.storage != storage) continue;
    if (!known.shares) {
      shown = known.view;
      if (C10_UNLIKELY(moved)) {
        shown->storage.unsafeGetStorageImpl()->clear_materializer();
        shown->show(*storage);
      }
    }
    if (known.tensor == impl) return known.view->tensor;
  }
  HostView& view = views_.next(*impl);
  operands_.push_back({&view, impl, storage, shown != nullptr});
  view.impl()->show(*impl, host_keys(impl->key_set()));
  if (shown == nullptr) {
    view.show(*storage);
  } else {
    view.impl()->set_storage_keep_dtype(shown->storage);
  }
  return view.tensor;
}

void HostViews::wait() {
  current_stream(index_).wait_for(pending_);
}

at::Tensor HostViews::to_own(at::Tensor result) {
  if (!result.defined() || !result.is_cpu()) return result;
  if (!is_plain(result) || !result.has_storage() || !result.storage()) {
    return HostCall(index_).to_own(std::move(result));
  }
  c10::StorageImpl* memory = result.storage().unsafeGetStorageImpl();
  for (const Operand& known : operands_) {
    if (known.view->tensor.is_same(result)) return tensor_of(known.tensor);
  }
  for (const Operand& known : operands_) {
    if (known.view->storage.unsafeGetStorageImpl() != memory || known.shares) continue;
    relabel(result, storage_of(known.storage));
    return result;
  }
  if (!label_as(*memory, c10::Device(c10::DeviceType::XPU, index_))) {
    return HostCall(index_).to_own(std::move(result));
  }
  relabel(result, storage_of(memory));
  return result;
}

}  // namespace xpurt
