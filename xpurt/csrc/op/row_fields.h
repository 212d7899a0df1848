// A row as Python describes it: values by key.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace xpurt {

// Each kind of rows takes the keys that it knows; what is left then is an error.
class RowFields {
 public:
  using Strings = std::vector<std::string>;
  using Integers = std::vector<int64_t>;
  // An empty list is one of strings.
  using Value = std::variant<bool, int64_t, double, std::string, Strings, Integers,
                             std::vector<RowFields>>;

  // `owner` is for messages: "the row add".
  explicit RowFields(std::string owner) : owner_(std::move(owner)) {}
  void set(const std::string& key, Value value) { values_[key] = std::move(value); }

  // The value of a key, which is used up. Raises ValueError if there is none, and
  // TypeError if it is of another type. T: bool, int64_t, double, std::string, Strings,
  // Integers, std::vector<RowFields>.
  template <typename T>
  T take(const std::string& key);

  // Raises ValueError if there is a key that was not taken.
  void refuse_others() const;

 private:
  std::string owner_;
  std::map<std::string, Value> values_;
  Strings taken_;
};

}  // namespace xpurt
