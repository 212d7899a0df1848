#include "op/custom_kernel_spec.h"

#include <algorithm>

#include "op/element_type.h"
#include "op/meta_call.h"

namespace xpurt {
namespace {

StepPart take_part(RowFields& fields) {
  const auto name = fields.take<std::string>("part");
  if (name == "own") return StepPart::own;
  if (name == "before") return StepPart::before_primitive;
  TORCH_CHECK_VALUE(name == "after", "no part of a row is called ", name);
  return StepPart::after_primitive;
}

std::array<int64_t, 2> take_share(RowFields& fields) {
  const auto share = fields.take<RowFields::Integers>("share");
  TORCH_CHECK_VALUE(share.size() == 2, "\"share\" of a step is two numbers, not ",
                    share.size());
  return {share[0], share[1]};
}

template <typename Part>
std::vector<Part> take_parts(RowFields& fields, const std::string& key) {
  std::vector<Part> parts;
  for (RowFields& each : fields.take<std::vector<RowFields>>(key)) {
    parts.emplace_back(each);
    each.refuse_others();
  }
  return parts;
}

}  // namespace

Step::Step(RowFields& fields)
    : over(fields.take<std::string>("over")),
      along(fields.take<RowFields::Strings>("along")),
      lanes(fields.take<bool>("lanes")),
      faults(fields.take<bool>("faults")),
      share(take_share(fields)),
      reads(fields.take<RowFields::Strings>("reads")),
      writes(fields.take<RowFields::Strings>("writes")),
      part(take_part(fields)) {}

Scratch::Scratch(RowFields& fields)
    : name(fields.take<std::string>("name")),
      like(fields.take<std::string>("like")),
      integral(fields.take<bool>("integral")),
      of_halves(fields.take<bool>("of_halves")),
      dims(fields.take<RowFields::Integers>("dims")),
      copies(fields.take<int64_t>("copies")) {}

ResultSpec::ResultSpec(RowFields& fields)
    : type_of(fields.take<RowFields::Strings>("type_of")),
      laid_out_like(fields.take<std::string>("laid_out_like")),
      empty_without(fields.take<std::string>("empty_without")) {}

CustomKernelSpec::CustomKernelSpec(RowFields& fields)
    : RowSpec(fields),
      steps(take_parts<Step>(fields, "steps")),
      scratch(take_parts<Scratch>(fields, "scratch")),
      begins_as(fields.take<std::string>("begins_as")),
      like(fields.take<std::string>("like")),
      results(take_parts<ResultSpec>(fields, "results")),
      contiguous(fields.take<RowFields::Strings>("contiguous")),
      dense(fields.take<RowFields::Strings>("dense")),
      rows(fields.take<RowFields::Strings>("rows")),
      same_type(fields.take<bool>("same_type")),
      alike(fields.take<RowFields::Strings>("alike")),
      parameters(fields.take<RowFields::Strings>("parameters")),
      per_channel(fields.take<bool>("per_channel")),
      counts(fields.take<RowFields::Strings>("counts")),
      types(fields.take<RowFields::Strings>("types")),
      draws(fields.take<bool>("draws")),
      fault(fields.take<std::string>("fault")),
      primitive(fields.take<std::string>("primitive")) {}

void CustomKernelSpec::raise_fault() const {
  TORCH_CHECK(fault.empty(), fault,
              ", in work that was submitted earlier: its result is not to be used");
  RowSpec::raise_fault();
}

bool CustomKernelSpec::takes(const std::string& argument, c10::ScalarType type) const {
  const char letter = letter_of(type);
  for (const std::string& each : types) {
    const size_t end = each.find('=');
    if (each.compare(0, end, argument) == 0) {
      return each.find(letter, end + 1) != std::string::npos;
    }
  }
  if (argument == "index" || argument == "indices")
    return letter == 'i' || letter == 'l';
  const bool is_listed = argument.starts_with("indices");
  return !is_listed || std::string_view("iltu").find(letter) != std::string_view::npos;
}

CustomKernelOverload::CustomKernelOverload(const CustomKernelSpec& spec,
                                           const Overload& overload)
    : op(overload.op),
      functional(overload.functional()),
      schema(op.schema()),
      has_meta(has_strict_meta(schema)) {
  for (const c10::Argument& each : schema.arguments()) {
    const int at = static_cast<int>(arguments.size());
    arguments.push_back(&each);
    if (is_written(each)) written.push_back(at);
    if (each.is_out()) ++outs;
    if (each.name() == spec.begins_as) copied = at;
    if (is_optional_tensor_list(each)) indices = at;
    if (each.name() == spec.like) like = at;
    if (std::ranges::find(spec.counts, each.name()) != spec.counts.end()) {
      counts.push_back(at);
    }
  }
  // The steps write arguments that are written and not returned, such as running
  // statistics. The results are new tensors.
  const auto& returns = schema.returns();
  const bool new_results = std::ranges::none_of(
      returns, [](const c10::Argument& each) { return each.alias_info() != nullptr; });
  if (new_results && !returns.empty()) written.clear();
}

bool CustomKernelOverload::is_changed(const std::string& name) const {
  return std::ranges::any_of(arguments, [&](const c10::Argument* each) {
    return is_written(*each) && !each->is_out() && each->name() == name;
  });
}

}  // namespace xpurt
