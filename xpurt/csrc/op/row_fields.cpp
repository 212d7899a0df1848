#include "op/row_fields.h"

#include <c10/util/Exception.h>

#include <array>

namespace xpurt {
namespace {

// In the order of the alternatives of RowFields::Value.
constexpr std::array<const char*, std::variant_size_v<RowFields::Value>> kTypeNames{
    "a bool",        "an int",        "a float",       "a str",
    "a list of str", "a list of int", "a list of dict"};

std::string listed(const std::vector<std::string>& keys) {
  std::string text;
  for (const std::string& key : keys) text += (text.empty() ? "" : ", ") + key;
  return text.empty() ? "none" : text;
}

}  // namespace

template <typename T>
T RowFields::take(const std::string& key) {
  const auto found = values_.find(key);
  TORCH_CHECK_VALUE(found != values_.end(), owner_, " lacks the key \"", key,
                    "\": its kind needs it (described() in xpurt.kernels gives it)");
  Value value = std::move(found->second);
  values_.erase(found);
  taken_.push_back(key);
  if (const T* as_it_is = std::get_if<T>(&value)) return *as_it_is;
  if constexpr (std::is_same_v<T, double>) {
    if (const int64_t* whole = std::get_if<int64_t>(&value)) return *whole;
  }
  const Strings* strings = std::get_if<Strings>(&value);
  if constexpr (!std::is_arithmetic_v<T> && !std::is_same_v<T, std::string>) {
    if (strings != nullptr && strings->empty()) return {};
  }
  TORCH_CHECK_TYPE(false, "\"", key, "\" of ", owner_, " is ",
                   kTypeNames[value.index()], ", and should be ",
                   kTypeNames[Value(T()).index()]);
}

template bool RowFields::take(const std::string&);
template int64_t RowFields::take(const std::string&);
template double RowFields::take(const std::string&);
template std::string RowFields::take(const std::string&);
template RowFields::Strings RowFields::take(const std::string&);
template RowFields::Integers RowFields::take(const std::string&);
template std::vector<RowFields> RowFields::take(const std::string&);

void RowFields::refuse_others() const {
  if (values_.empty()) return;
  Strings others;
  for (const auto& [key, value] : values_) others.push_back(key);
  TORCH_CHECK_VALUE(false, owner_,
                    " has keys that its kind does not know: ", listed(others),
                    ". The kind takes ", listed(taken_));
}

}  // namespace xpurt
