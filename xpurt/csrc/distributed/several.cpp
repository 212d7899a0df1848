// Several collectives whose works are one: coalesced ones, and chunks of a large
// tensor.
#include "distributed/backend.h"
#include "distributed/collective_work.h"
#include "native/alias.h"

namespace xpurt {
namespace {

// Note [Chunks]
// ~~~~~~~~~~~~~
// A tensor in memory that the host does not read is copied to the host, exchanged, and
// copied back. A large one takes these steps in chunks: while one chunk is exchanged,
// the next is copied to the host, and an earlier one back. Each chunk is a collective
// of its own. Gloo exchanges two at a time.
//
// Each chunk costs commands, changes of threads and messages. An all_reduce of 64 MB on
// the strict virtual GPU, two ranks on two processors (AMD EPYC, 2026-11-25, the least
// of 15, by the size of a chunk): 8 MB 88 to 95 ms, 16 MB 72 to 77 ms, 32 MB 71 to 84
// ms, not divided 74 ms. Of that the exchange takes 40 to 65 ms, and the copies of an
// undivided tensor 13 ms. There the copies take the processors that gloo needs. Those
// of a GPU take none, so chunks are kept.
constexpr int64_t kChunkBytes = 16 << 20;

}  // namespace

Tensors chunks_of(const Tensors& tensors) {
  if (tensors.size() != 1) return {};
  const at::Tensor& whole = tensors.front();
  const bool is_large = whole.is_xpu() && whole.layout() == c10::kStrided &&
                        static_cast<int64_t>(whole.nbytes()) >= 2 * kChunkBytes;
  if (!is_large || host_reads(whole.device().index())) return {};
  if (!whole.is_contiguous() || whole.is_conj() || whole.is_neg()) return {};
  return whole.detach().view(-1).split(kChunkBytes / whole.itemsize());
}

WorkPointer XpuBackend::run_chunks(c10d::OpType type, const Tensors& whole,
                                   const Tensors& chunks,
                                   const std::function<WorkPointer(Tensors&)>& each) {
  std::vector<WorkPointer> works;
  for (const at::Tensor& chunk : chunks) {
    Tensors one{chunk};
    works.push_back(each(one));
  }
  return c10::make_intrusive<JoinedWork>(type, std::move(works), whole);
}

WorkPointer XpuBackend::run_pairs(
    c10d::OpType type, Tensors& outputs, Tensors& inputs,
    const std::function<WorkPointer(at::Tensor&, at::Tensor&)>& each) {
  TORCH_CHECK_VALUE(outputs.size() == inputs.size(), name_of(type),
                    " needs an output for each input; found ", outputs.size(), " and ",
                    inputs.size());
  std::vector<WorkPointer> works;
  for (size_t i = 0; i < outputs.size(); ++i) {
    works.push_back(each(outputs[i], inputs[i]));
  }
  return c10::make_intrusive<JoinedWork>(type, std::move(works), outputs);
}

// Collectives between the two calls are launched as they come.
void XpuBackend::startCoalescing() {
  const std::lock_guard<Mutex> lock(mutex_);
  is_coalescing_ = true;
  coalesced_.clear();
}

WorkPointer XpuBackend::endCoalescing() {
  std::vector<WorkPointer> works;
  {
    const std::lock_guard<Mutex> lock(mutex_);
    is_coalescing_ = false;
    works = std::exchange(coalesced_, {});
  }
  Tensors results;
  for (const WorkPointer& each : works) {
    const Tensors some = each->result();
    results.insert(results.end(), some.begin(), some.end());
  }
  return c10::make_intrusive<JoinedWork>(c10d::OpType::COALESCED, std::move(works),
                                         std::move(results));
}

}  // namespace xpurt
