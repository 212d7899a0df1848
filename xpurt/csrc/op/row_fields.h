// A row as described in Python: values by key.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace xpurt {

// Each kind of row takes its own keys. A key that is not taken is an error.
class RowFields {
 public:
  using Strings = std::vector<std::string>;
  using Integers = std::vector<int64_t>;
  // An empty list is a list of strings.
  using Value = std::variant<bool, int64_t, double, std::string, Strings, Integers,
                             std::vector<RowFields>>;

  // `owner` is for messages: "the row add".
  explicit RowFields(std::string owner) : owner_(std::move(owner)) {}
  void set(const std::string& key, Value value) { values_[key] = std::move(value); }

  // Removes and returns the value of a key. Throws ValueError if there is none, and
  // TypeError if it has another type. T: bool, int64_t, double, std::string, Strings,
  // Integers, std::vector<RowFields>.
  template <typename T>
  T take(const std::string& key);

  // Throws ValueError if there is a key that was not taken.
  void refuse_others() const;

 private:
  std::string owner_;
  std::map<std::string, Value> values_;
  Strings taken_;
};

}  // namespace xpurt
