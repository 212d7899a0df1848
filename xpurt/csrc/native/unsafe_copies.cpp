#include "native/unsafe_copies.h"

#include <ATen/core/jit_type.h>
#include <ATen/SparseCsrTensorImpl.h>
#include <ATen/SparseTensorImpl.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string_view>

#include "device/device.h"
#include "host/errors.h"
#include "host/gil.h"
#include "memory/cpu_allocator.h"
#include "native/alias.h"
#include "op/stack_tensors.h"

namespace xpurt {
namespace {

std::atomic<bool> checks_trusted{false};

// Collectives: the schemas do not mark the lists that are written, and the work
// continues in a thread of the backend after the op returned.
constexpr std::string_view kCollectives[] = {
    "c10d",
    "c10d_functional",
    "_c10d_functional",
    "_c10d_functional_autograd",
    "symm_mem",
    "_dtensor",
    "rpc",
};

// Ops on byte tensors that hold a pointer to a packed weight.
constexpr std::string_view kPointers[] = {
    "quantized::linear_prepack_legacy",
    "quantized::linear_prepack_fp16_legacy",
    "quantized::linear_unpack.legacy",
    "quantized::linear_unpack_fp16.legacy",
    "_quantized::linear_prepack_fp16_legacy",
    "_quantized::_wrapped_linear_prepack",
    "_quantized::_wrapped_quantized_linear_prepacked",
    "_quantized::wrapped_fbgemm_pack_gemm_matrix_fp16",
    "_quantized::wrapped_fbgemm_linear_fp16_weight",
};

// Classes of PyTorch whose objects are made once from weights, and then only read.
constexpr std::string_view kPacked[] = {
    "__torch__.torch.classes.quantized.",
    "__torch__.torch.classes.rnn.",
    "__torch__.torch.classes.sparse.",
    "__torch__.torch.classes.mkldnn.",
};

bool is_packed(const c10::Type& type) {
  if (type.kind() != c10::TypeKind::ClassType) return false;
  const std::string name = type.str();
  return std::ranges::any_of(
      kPacked, [&](std::string_view prefix) { return name.starts_with(prefix); });
}

// Types of values that hold no tensors except those that HostRun converts.
bool is_plain_value(const c10::Type& type) {
  switch (type.kind()) {
    case c10::TypeKind::TensorType:
    case c10::TypeKind::StorageType:
    case c10::TypeKind::NumberType:
    case c10::TypeKind::IntType:
    case c10::TypeKind::FloatType:
    case c10::TypeKind::ComplexType:
    case c10::TypeKind::BoolType:
    case c10::TypeKind::SymIntType:
    case c10::TypeKind::SymFloatType:
    case c10::TypeKind::SymBoolType:
    case c10::TypeKind::StringType:
    case c10::TypeKind::NoneType:
    case c10::TypeKind::DeviceObjType:
    case c10::TypeKind::GeneratorType:
    case c10::TypeKind::ScalarTypeType:
    case c10::TypeKind::LayoutType:
    case c10::TypeKind::MemoryFormatType:
    case c10::TypeKind::QSchemeType:
      return true;
    default:
      return false;
  }
}

// The first type in `type`, also within lists and optionals, that is neither plain nor
// packed; nullptr if there is none. Sets *packs if it finds a packed type.
const c10::Type* unknown_in(const c10::Type& type, bool* packs) {
  const bool holds = type.kind() == c10::TypeKind::ListType ||
                     type.kind() == c10::TypeKind::OptionalType;
  if (holds) {
    for (const c10::TypePtr& each : type.containedTypes()) {
      if (const c10::Type* found = unknown_in(*each, packs)) return found;
    }
    return nullptr;
  }
  if (is_plain_value(type)) return nullptr;
  if (!is_packed(type)) return &type;
  *packs = true;
  return nullptr;
}

bool is_among(std::string_view name, std::span<const std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

// A checksum of all bytes, in four lanes that a processor computes in parallel.
uint64_t sum_of(const c10::StorageImpl& storage) {
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;
  const auto* bytes = static_cast<const char*>(storage.data());
  const size_t size = storage.nbytes();
  std::array<uint64_t, 4> lanes{1, 2, 3, 4};
  size_t at = 0;
  for (; at + sizeof lanes <= size; at += sizeof lanes) {
    std::array<uint64_t, 4> words;
    std::memcpy(words.data(), bytes + at, sizeof words);
    for (size_t i = 0; i < 4; ++i) lanes[i] = (lanes[i] ^ words[i]) * kOdd;
    for (uint64_t& lane : lanes) lane ^= lane >> 29;
  }
  uint64_t sum = size;
  for (; at < size; ++at) sum = (sum ^ static_cast<uint8_t>(bytes[at])) * kOdd;
  for (const uint64_t lane : lanes) sum = (sum ^ lane ^ (sum >> 31)) * kOdd;
  return sum;
}

// Visits the storages of a tensor of any layout.
template <typename Visit>
void for_each_storage(const at::Tensor& tensor, const Visit& visit) {
  if (!tensor.defined()) return;
  if (tensor.key_set().has(c10::DispatchKey::Sparse)) {
    const auto* coo = static_cast<at::SparseTensorImpl*>(tensor.unsafeGetTensorImpl());
    visit(coo->indices().storage());
    visit(coo->values().storage());
  } else if (tensor.key_set().has(c10::DispatchKey::SparseCsr)) {
    auto* parts = static_cast<at::SparseCsrTensorImpl*>(tensor.unsafeGetTensorImpl());
    visit(parts->compressed_indices().storage());
    visit(parts->plain_indices().storage());
    visit(parts->values().storage());
  } else if (tensor.has_storage() && tensor.storage()) {
    visit(tensor.storage());
  }
}

std::string device_of(c10::DeviceIndex index) {
  return c10::str("xpu:", static_cast<int>(index), " (",
                  ordinal(index).home_device().name, ")");
}

constexpr char kRemedies[] =
    "use the mapping \"CPU\", whose memory the host reads; or give the op CPU tensors, "
    "tensor.cpu(), and copy back what it wrote, tensor.copy_(result)";

}  // namespace

CopyVerdict copy_verdict(const c10::FunctionSchema& schema) {
  const std::string& name = schema.name();
  const std::string_view library = std::string_view(name).substr(0, name.find("::"));
  if (is_among(toString(schema.operator_name()), kPointers)) {
    return {CopyRule::never,
            "a tensor of its holds a pointer to an object of the host"};
  }
  if (library == "aten") return {CopyRule::trusted, {}};
  if (is_among(library, kCollectives)) {
    return {CopyRule::refused,
            "a collective writes to tensors that its schema calls inputs, after it "
            "returned"};
  }
  if (schema.is_vararg() || schema.is_varret()) {
    return {CopyRule::refused, "its schema does not say what it takes and returns"};
  }
  bool packs = false;
  for (const auto* all : {&schema.arguments(), &schema.returns()}) {
    for (const c10::Argument& each : *all) {
      if (const c10::Type* unknown = unknown_in(*each.type(), &packs)) {
        return {CopyRule::refused, "nothing is known of what it does with a " +
                                       unknown->str() +
                                       ": it may keep tensors there, and read or write "
                                       "them later"};
      }
    }
  }
  return {CopyRule::checked, {}, packs};
}

void check_may_copy(const OpRecord& record, c10::DeviceIndex index, bool copies) {
  if (C10_LIKELY(record.is_aten_op)) return;
  if (!copies && !is_among(record.name, kPointers)) return;
  const CopyVerdict verdict = copy_verdict(record.op.schema());
  if (verdict.rule == CopyRule::never) {
    throw_fallback_error(c10::str(record.name, " is refused on ", device_of(index),
                                  ": ", verdict.reason,
                                  ", and no xpu tensor can. Give it CPU tensors."));
  }
  if (verdict.rule != CopyRule::refused) return;
  throw_fallback_error(
      c10::str(record.name, " is refused on ", device_of(index),
               ": the host can't read that memory, so that the CPU kernel would run on "
               "copies; and ",
               verdict.reason, ". To go on, ", kRemedies, "."));
}

void check_trusted_copies(bool value) {
  checks_trusted = value;
}

CopyAudit::CopyAudit(const OpRecord& record, c10::DeviceIndex index)
    : record_(record), index_(index), checks_(!record.is_aten_op || checks_trusted) {
  if (checks_) packs_ = copy_verdict(record.op.schema()).packs;
}

void CopyAudit::record_storage(const c10::Storage& storage, int position,
                               bool may_be_kept, bool written) {
  c10::StorageImpl* impl = storage.unsafeGetStorageImpl();
  for (Copied& known : copied_) {
    if (known.storage._unsafe_get_target() != impl) continue;
    known.written |= written;
    known.may_be_kept |= may_be_kept;
    return;
  }
  copied_.push_back(
      {Weak(storage.getWeakStorageImpl()), position, may_be_kept, written});
}

void CopyAudit::record_argument(size_t position, const at::Tensor& original,
                                const at::Tensor& host) {
  if (C10_LIKELY(!checks_) || !original.defined() || !original.is_xpu()) return;
  if (host_reads(original.device().index())) return;
  const c10::AliasInfo* alias = record_.op.schema().arguments()[position].alias_info();
  for_each_storage(host, [&](const c10::Storage& storage) {
    record_storage(storage, static_cast<int>(position), packs_ || alias != nullptr,
                   record_.written[position]);
  });
}

void CopyAudit::kernel_begins() {
  for (Copied& each : copied_) {
    if (!each.written) each.sum = sum_of(*each.storage._unsafe_get_target());
  }
}

void CopyAudit::kernel_ended(const torch::jit::Stack& stack) {
  if (C10_LIKELY(!checks_)) return;
  for (const Copied& each : copied_) {
    if (each.written) continue;
    if (each.sum == sum_of(*each.storage._unsafe_get_target())) continue;
    refuse("it wrote to " + describe(each) +
           ", which its schema calls an input. Let the schema say so (Tensor(a!), or "
           "mutates_args of torch.library.custom_op)");
  }
  for (size_t at = stack.size() - record_.returns; at < stack.size(); ++at) {
    for_each_tensor(stack[at], [&](const at::Tensor& result) {
      if (!result.defined() || !result.is_cpu()) return;
      for_each_storage(result, [&](const c10::Storage& storage) {
        // An empty storage is not copied: the xpu result takes it over.
        if (storage.nbytes() != 0) record_storage(storage, -1, packs_, true);
      });
    });
  }
}

const CopyAudit::Copied* CopyAudit::kept() const {
  const auto* found = std::ranges::find_if(copied_, [](const Copied& each) {
    return !each.may_be_kept && !each.storage.expired();
  });
  return found == copied_.end() ? nullptr : &*found;
}

void CopyAudit::run_ended() const {
  if (C10_LIKELY(kept() == nullptr)) return;
  // A kernel in Python may leave garbage that references the copies.
  if (Py_IsInitialized() && !python_ends()) {
    const WithGil gil;
    PyGC_Collect();
  }
  if (const Copied* copied = kept()) {
    refuse("when it returned, it kept " + describe(*copied) +
           ", which is a copy. What is read or written there later is not the xpu "
           "tensor's. Let the op keep a clone");
  }
}

std::string CopyAudit::describe(const Copied& copied) const {
  if (copied.position < 0) return "a result";
  return "argument " + record_.op.schema().arguments()[copied.position].name();
}

void CopyAudit::refuse(const std::string& what) const {
  throw_fallback_error(c10::str(record_.name,
                                " ran on copies, since the host can't read "
                                "the memory of ",
                                device_of(index_), ", and ", what, ". Otherwise ",
                                kRemedies,
                                "; or register a kernel for \"xpu\" with "
                                "torch.library."));
}

}  // namespace xpurt
