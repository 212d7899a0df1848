#include "op/row_spec.h"

#include "host/fault_message.h"
#include "op/element_type.h"
#include "stream/stream.h"

#include <algorithm>
#include <map>
#include <unordered_map>

namespace xpurt {
namespace {

using Specs = std::vector<std::unique_ptr<RowSpec>>;

std::map<std::string, SpecMaker>& kinds() {
  static auto* const leaked = new std::map<std::string, SpecMaker>;
  return *leaked;
}

std::unique_ptr<RowSpec> read_spec(RowFields& fields) {
  const auto kind = fields.take<std::string>("kind");
  const auto found = kinds().find(kind);
  TORCH_CHECK_VALUE(found != kinds().end(), "no kind of rows is called \"", kind,
                    "\": its file in csrc registers it with register_kind()");
  std::unique_ptr<RowSpec> spec = found->second(fields);
  fields.refuse_others();
  return spec;
}

// Rows of aten ops have names without the namespace; other rows have it.
std::string full_name(const std::string& name) {
  return name.find("::") == std::string::npos ? "aten::" + name : name;
}

// Every overload of the rows' ops, by name.
using Overloads = std::unordered_map<std::string, std::vector<c10::OperatorHandle>>;

Overloads find_overloads(const Specs& specs) {
  Overloads found;
  for (const auto& spec : specs) {
    found.try_emplace(full_name(spec->name));
    found.try_emplace(full_name(spec->name) + "_");
  }
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    const auto wanted = found.find(name.name);
    if (wanted == found.end()) continue;
    const auto handle = dispatcher.findSchema(name);
    if (!handle.has_value()) continue;
    // A kernel on the XPU key would remove the gradient formula of an op that is
    // differentiated through its parts. An op with a CPU kernel is not such an op.
    constexpr auto kComposite = c10::DispatchKey::CompositeImplicitAutograd;
    if (handle->hasKernelForDispatchKey(kComposite) &&
        !handle->hasKernelForDispatchKey(c10::DispatchKey::CPU)) {
      continue;
    }
    wanted->second.push_back(*handle);
  }
  return found;
}

bool is_for(const RowSpec& spec, const c10::OperatorHandle& op) {
  const std::string& overload = op.schema().overload_name();
  return spec.overloads.empty() ||
         std::ranges::find(spec.overloads, overload) != spec.overloads.end();
}

// Leaked: kernels refer to their rows until the process ends.
const Specs* all_rows = nullptr;

// Kernels write a row's number, counted from 1, when they find a wrong index, and the
// number of a message when an assertion fails.
void raise_fault_of(int32_t number) {
  if (number < 0) raise_message(number);
  const auto row = static_cast<size_t>(number - 1);
  TORCH_CHECK_INDEX(all_rows != nullptr && row < all_rows->size(),
                    "index out of range in an op that was submitted earlier: its "
                    "result is not to be used");
  (*all_rows)[row]->raise_fault();
}

}  // namespace

bool Overload::returns_one_tensor() const {
  const auto& returns = schema().returns();
  return returns.size() == 1 && is_tensor(returns[0]);
}

std::optional<c10::OperatorHandle> Overload::functional() const {
  const auto& arguments = schema().arguments();
  if (std::ranges::none_of(arguments, is_written)) return op;
  std::vector<const c10::Argument*> wanted;
  for (const c10::Argument& each : arguments) {
    if (!each.is_out()) wanted.push_back(&each);
  }
  std::string name = schema().name();
  const bool in_place = wanted.size() == arguments.size();
  if (in_place && name.back() == '_') name.pop_back();
  for (const c10::OperatorHandle& other : all) {
    if (other.schema().name() != name) continue;
    const auto& theirs = other.schema().arguments();
    if (std::ranges::any_of(theirs, is_written)) continue;
    const bool same =
        std::ranges::equal(wanted, theirs, [](const auto* a, const c10::Argument& b) {
          return a->name() == b.name() && *a->type() == *b.type();
        });
    if (same) return other;
  }
  return std::nullopt;
}

RowSpec::RowSpec(RowFields& fields)
    : index(static_cast<int>(fields.take<int64_t>("index"))),
      name(fields.take<std::string>("name")),
      dtypes(fields.take<std::string>("dtypes")),
      flops(fields.take<double>("flops")),
      cost_class(xpurt::cost_class(fields.take<std::string>("cost_class"))),
      overloads(fields.take<RowFields::Strings>("overloads")) {}

void RowSpec::raise_fault() const {
  TORCH_CHECK_INDEX(false, "index out of range in ", full_name(name),
                    ", which was submitted earlier: its result is not to be used");
}

bool RowSpec::has_type(c10::ScalarType type) const {
  const char letter = letter_of(type);
  return letter != 0 && dtypes.find(letter) != std::string::npos;
}

bool register_kind(const std::string& kind, SpecMaker make) {
  return kinds().emplace(kind, make).second;
}

ComputeRule take_compute_rule(RowFields& fields) {
  const auto name = fields.take<std::string>("compute");
  if (name == "common") return ComputeRule::common;
  if (name == "floating") return ComputeRule::floating;
  if (name == "self") return ComputeRule::self;
  if (name == "source") return ComputeRule::source;
  TORCH_CHECK_VALUE(name == "widened", "no rule of computation is called ", name);
  return ComputeRule::widened;
}

ResultRule take_result_rule(RowFields& fields) {
  const auto name = fields.take<std::string>("result");
  if (name == "compute") return ResultRule::compute;
  if (name == "self") return ResultRule::self;
  if (name == "real") return ResultRule::real;
  TORCH_CHECK_VALUE(name == "boolean", "no rule of results is called ", name);
  return ResultRule::boolean;
}

bool takes_type(bool same_type, c10::ScalarType type, c10::ScalarType first,
                bool is_out) {
  const bool wants_first = same_type || (is_out && !is_index_or_bool(type));
  return !wants_first || type == first;
}

RowPrior prior_of(const RowSpec& spec) {
  RowPrior prior;
  prior.row = spec.index;
  prior.cost_class = spec.cost_class;
  return prior;
}

RowPrior asked_prior(const RowSpec& spec, double build_us) {
  RowPrior prior = prior_of(spec);
  prior.by_operands = false;
  prior.build_us = build_us;
  return prior;
}

void add_rows(std::vector<RowFields> rows) {
  Specs specs;
  for (RowFields& fields : rows) specs.push_back(read_spec(fields));
  const Specs& kept = *new Specs(std::move(specs));
  all_rows = &kept;
  set_fault(&raise_fault_of);
  const Overloads overloads = find_overloads(kept);
  for (const auto& spec : kept) {
    std::vector<c10::OperatorHandle> all = overloads.at(full_name(spec->name));
    const auto& in_place = overloads.at(full_name(spec->name) + "_");
    all.insert(all.end(), in_place.begin(), in_place.end());
    for (const c10::OperatorHandle& op : all) {
      if (!is_for(*spec, op)) continue;
      auto made = spec->make({op, all});
      if (made) set_row(op, made.release());
    }
  }
}

}  // namespace xpurt
