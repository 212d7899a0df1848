#include "onednn.h"

#include <ATen/ops/empty.h>
#include <dnnl.hpp>
#include <dnnl_sycl.hpp>
#include <c10/util/Exception.h>

#include <deque>
#include <mutex>
#include <string>
#include <unordered_map>

#include "replica.h"

namespace xpurt {
namespace {

using at::Tensor;
using c10::ScalarType;
using Descriptor = dnnl::memory::desc;

constexpr size_t kKeptPrimitives = 1024;  // per device; all are dropped beyond

dnnl::memory::data_type data_type(ScalarType type) {
  switch (type) {
    case ScalarType::Float:
      return dnnl::memory::data_type::f32;
    case ScalarType::Half:
      return dnnl::memory::data_type::f16;
    case ScalarType::BFloat16:
      return dnnl::memory::data_type::bf16;
    default:
      return dnnl::memory::data_type::undef;
  }
}

// A product whose primitive has been made. The descriptors are cheap copies of
// shared handles.
struct Made {
  dnnl::matmul::primitive_desc descriptor;
  dnnl::matmul primitive;
};

// oneDNN on one device. Leaked: see Note [Leaked on purpose].
struct Library {
  explicit Library(const PhysicalDevice& device) : owner(&device) {
    // Of other devices it says on the standard output that it does not know them.
    constexpr uint32_t kIntel = 0x8086;
    using sycl::info::device::vendor_id;
    if (!device.is_cpu && device.device.get_info<vendor_id>() != kIntel) return;
    try {
      engine = dnnl::sycl_interop::make_engine(device.device, device.context);
      has_engine = true;
    } catch (const std::exception&) {
      // A device that oneDNN does not know: others will do its products.
    }
  }
  bool multiplies(ScalarType type);
  std::shared_ptr<Made> find(const MatrixProduct& product);
  dnnl::stream& on(sycl::queue& queue);

  const PhysicalDevice* owner;
  dnnl::engine engine;
  bool has_engine = false;
  std::mutex mutex;
  std::unordered_map<ScalarType, bool> types;
  std::unordered_map<std::string, std::shared_ptr<Made>> made;
  std::unordered_map<sycl::queue*, dnnl::stream> streams;
};

Library& library(const PhysicalDevice& device) {
  static std::mutex* const mutex = new std::mutex;
  static auto* const all = new std::deque<Library>;
  static thread_local Library* last = nullptr;
  if (last != nullptr && last->owner == &device) return *last;
  std::lock_guard<std::mutex> lock(*mutex);
  for (Library& each : *all) {
    if (each.owner == &device) return *(last = &each);
  }
  return *(last = &all->emplace_back(device));
}

Descriptor describe(const Tensor& tensor) {
  dnnl::memory::dims sizes = tensor.sizes().vec(), strides = tensor.strides().vec();
  const MatrixStrides of_matrix = matrix_strides(tensor);
  strides[strides.size() - 2] = of_matrix.row;
  strides.back() = of_matrix.column;
  return {sizes, data_type(tensor.scalar_type()), strides};
}

// The bias as a matrix that is broadcast along all dimensions but the last.
Descriptor describe_bias(const Tensor& bias, int64_t dims) {
  dnnl::memory::dims sizes(dims, 1);
  sizes.back() = bias.numel();
  return {sizes, data_type(bias.scalar_type()), dnnl::memory::dims(dims, bias.numel())};
}

dnnl::matmul::primitive_desc make_descriptor(const dnnl::engine& engine,
                                             const MatrixProduct& product) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  dnnl::post_ops after;
  if (product.alpha != 1) {
    after.append_eltwise(dnnl::algorithm::eltwise_linear, product.alpha, 0);
  }
  if (product.beta != 0) after.append_sum(product.beta);
  attributes.set_post_ops(after);
  const Descriptor a = describe(product.a), b = describe(product.b);
  const Descriptor out = describe(product.out);
  if (!product.bias.defined()) return {engine, a, b, out, attributes};
  return {engine, a,         b, describe_bias(product.bias, product.out.dim()),
          out,    attributes};
}

void append(std::string* key, const void* data, size_t bytes) {
  key->append(static_cast<const char*>(data), bytes);
}

std::string key_of(const MatrixProduct& product) {
  std::string key;
  for (const Tensor* each : {&product.out, &product.a, &product.b}) {
    append(&key, each->sizes().data(), each->dim() * sizeof(int64_t));
    append(&key, each->strides().data(), each->dim() * sizeof(int64_t));
  }
  const auto type = product.out.scalar_type();
  append(&key, &type, sizeof(type));
  append(&key, &product.alpha, sizeof(float));
  append(&key, &product.beta, sizeof(float));
  key += product.bias.defined() ? 'b' : '-';
  return key;
}

bool Library::multiplies(ScalarType type) {
  if (!has_engine || data_type(type) == dnnl::memory::data_type::undef) return false;
  std::lock_guard<std::mutex> lock(mutex);
  const auto known = types.find(type);
  if (known != types.end()) return known->second;
  const Descriptor square({16, 16}, data_type(type), dnnl::memory::format_tag::ab);
  const dnnl::matmul::primitive_desc asked(engine, square, square, square, {},
                                           /*allow_empty=*/true);
  const bool can = asked.get(/*allow_empty=*/true) != nullptr;
  types.emplace(type, can);
  return can;
}

std::shared_ptr<Made> Library::find(const MatrixProduct& product) {
  std::string key = key_of(product);
  std::lock_guard<std::mutex> lock(mutex);
  const auto found = made.find(key);
  if (found != made.end()) return found->second;
  if (made.size() >= kKeptPrimitives) made.clear();
  auto fresh = std::make_shared<Made>();
  fresh->descriptor = make_descriptor(engine, product);
  fresh->primitive = dnnl::matmul(fresh->descriptor);
  made.emplace(std::move(key), fresh);
  return fresh;
}

dnnl::stream& Library::on(sycl::queue& queue) {
  std::lock_guard<std::mutex> lock(mutex);
  const auto found = streams.find(&queue);
  if (found != streams.end()) return found->second;
  return streams.emplace(&queue, dnnl::sycl_interop::make_stream(engine, queue))
      .first->second;
}

}  // namespace

bool onednn_multiplies(const PhysicalDevice& device, ScalarType type) {
  return library(device).multiplies(type);
}

void onednn_multiply(const MatrixProduct& product, size_t position, Stream& stream) {
  Library& onednn = library(*stream.ordinal().devices[position]);
  try {
    const std::shared_ptr<Made> made = onednn.find(product);
    const auto& descriptor = made->descriptor;
    Operands operands(stream, position);
    c10::SmallVector<std::pair<int, Descriptor>, 5> roles;
    const auto add = [&](int role, const Descriptor& of, const Tensor& tensor,
                         Access access) {
      operands.add(tensor, access);
      roles.emplace_back(role, of);
    };
    const Access written = product.beta == 0 ? Access::write : Access::read_write;
    add(DNNL_ARG_SRC, descriptor.src_desc(), product.a, Access::read);
    add(DNNL_ARG_WEIGHTS, descriptor.weights_desc(), product.b, Access::read);
    add(DNNL_ARG_DST, descriptor.dst_desc(), product.out, written);
    if (product.bias.defined()) {
      add(DNNL_ARG_BIAS, descriptor.bias_desc(), product.bias, Access::read);
    }
    const auto bytes = static_cast<int64_t>(descriptor.scratchpad_desc().get_size());
    if (bytes > 0) {
      add(DNNL_ARG_SCRATCHPAD, descriptor.scratchpad_desc(),
          at::empty({bytes}, product.out.options().dtype(ScalarType::Byte)),
          Access::write);
    }
    operands.resolve();
    std::unordered_map<int, dnnl::memory> arguments;
    for (size_t i = 0; i < roles.size(); ++i) {
      arguments.emplace(roles[i].first,
                        dnnl::sycl_interop::make_memory(
                            roles[i].second, onednn.engine,
                            dnnl::sycl_interop::memory_kind::usm, operands[i]));
    }
    const auto submission = stream.queue(position);
    dnnl::stream& on = onednn.on(*submission);
    operands.submitted(dnnl::sycl_interop::execute(made->primitive, on, arguments),
                       DeviceWork::named("onednn_matmul"));
  } catch (const dnnl::error& error) {
    TORCH_CHECK(false, "oneDNN could not multiply ", product.a.sizes(), " by ",
                product.b.sizes(), " (", product.a.scalar_type(), "): ", error.what());
  }
}

}  // namespace xpurt
