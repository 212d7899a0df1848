#include "schedule/kernel_refusal.h"

#include <c10/util/Exception.h>

#include "device/device.h"
#include "op/op_record.h"
#include "program/program_build.h"
#include "schedule/cached_choice.h"

namespace xpurt {
namespace {

// Whether no warning was given for the row before. Leaked: see Note [Leaked on
// purpose].
bool is_first_of(int row) {
  static auto* const mutex = new Mutex(Rank::refusal_warnings);
  static auto* const rows = new std::set<int>;
  std::lock_guard<Mutex> lock(*mutex);
  return rows->insert(row).second;
}

Refusals& refusals_of(OpRecord& record) {
  Refusals* found = record.refusals.load(std::memory_order_acquire);
  if (found != nullptr) return *found;
  auto* made = new Refusals;  // never freed, like the record
  if (record.refusals.compare_exchange_strong(found, made)) return *made;
  delete made;
  return *found;
}

std::string who_computes(const PhysicalDevice& refuses, const PhysicalDevice& home) {
  if (&refuses != &home) return home.name + " computes it";
  const std::string native = "PyTorch's CPU kernel computes it";
  return home.host_accessible ? native : native + ", on copies";
}

}  // namespace

bool is_refused(const OpRecord& record, int device_id, c10::ScalarType type) {
  Refusals* refusals = record.refusals.load(std::memory_order_acquire);
  if (C10_LIKELY(refusals == nullptr)) return false;
  std::lock_guard<Mutex> lock(refusals->mutex);
  return refusals->known.count({device_id, type}) != 0;
}

void remember_refusal(OpRecord& record, const RowKernel& row, c10::ScalarType type,
                      const PhysicalDevice& home) {
  const Refusal& said = last_refusal();
  const PhysicalDevice& device = *said.device;
  Refusals& refusals = refusals_of(record);
  {
    std::lock_guard<Mutex> lock(refusals.mutex);
    refusals.known.emplace(device.id, type);
  }
  change_choices();
  if (!is_first_of(row.prior.row)) return;
  TORCH_WARN("the driver of ", device.name, " refuses to build kernel ", said.entry,
             " of ", record.name, ": from now on ", who_computes(device, home),
             ". The driver says:\n", said.log,
             "\nThis is said once per kernel; "
             "xpurt.set_kernel_policy(\"sycl\") raises it as an error, with the "
             "source.");
}

}  // namespace xpurt
