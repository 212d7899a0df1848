#include "native/alias_storage.h"

#include "memory/cpu_allocator.h"

namespace xpurt {
namespace {

// The context of an alias's DataPtr is the original storage, with one reference.
void release_original(void* context) {
  c10::raw::intrusive_ptr::decref(static_cast<c10::StorageImpl*>(context));
}

// The materializer of an alias. A kernel gets a mutable pointer even to an argument
// that its schema declares an input.
void make_original_private(c10::StorageImpl* alias) {
  c10::DataPtr& data = alias->_mutable_data_ptr_no_checks();
  c10::StorageImpl* original = original_of(*alias);
  if (original == nullptr) return;
  original->mutable_data();
  data = alias_data(original);
}

}  // namespace

c10::DataPtr alias_data(c10::StorageImpl* original, c10::Device device) {
  c10::raw::intrusive_ptr::incref(original);
  void* data = const_cast<void*>(original->data());
  return {data, original, &release_original, device};
}

c10::Storage alias_of(c10::StorageImpl* original) {
  auto alias = c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), original->nbytes(), alias_data(original),
      &switching_allocator(), original->resizable());
  follow_original(*alias, *original);
  return c10::Storage(std::move(alias));
}

c10::StorageImpl* original_of(const c10::StorageImpl& storage) {
  const c10::DataPtr& data = storage.data_ptr();
  if (data.get_deleter() != &release_original) return nullptr;
  return static_cast<c10::StorageImpl*>(data.get_context());
}

void follow_original(c10::StorageImpl& alias, c10::StorageImpl& original) {
  if (C10_UNLIKELY(original.has_materializer())) {
    alias.set_materializer(&make_original_private);
  }
}

void materialize_alias(c10::StorageImpl& alias) {
  if (alias.has_materializer()) alias.mutable_data();
}

}  // namespace xpurt
