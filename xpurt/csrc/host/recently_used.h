// A cache of bounded size that keeps the entries used last (LRU).
#pragma once

#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "host/mutex.h"

namespace xpurt {

// Thread-safe. A value lives as long as the cache or a caller holds it.
template <typename Value>
class RecentlyUsed {
 public:
  using Shared = std::shared_ptr<const Value>;

  explicit RecentlyUsed(size_t most, Rank rank) : most_(most), mutex_(rank) {}

  // The value of the key. If there is none, calls make() while other threads wait. If
  // make() throws, this throws the same, and the cache stays unchanged.
  template <typename Make>
  Shared find(std::string key, const Make& make) {
    Shared dropped;  // destroyed without the lock: a tensor may need the GIL
    std::lock_guard<Mutex> lock(mutex_);
    if (Shared known = used(key)) return known;
    Shared made = std::make_shared<const Value>(make());
    dropped = add(std::move(key), made);
    return made;
  }

  // The same without a lock during make(): two threads may make the same value.
  template <typename Make>
  Shared find_unlocked(std::string key, const Make& make) {
    {
      std::lock_guard<Mutex> lock(mutex_);
      if (Shared known = used(key)) return known;
    }
    Shared made = std::make_shared<const Value>(make());
    Shared dropped;
    std::lock_guard<Mutex> lock(mutex_);
    if (Shared known = used(key)) return known;
    dropped = add(std::move(key), made);
    return made;
  }

  size_t size() const {
    std::lock_guard<Mutex> lock(mutex_);
    return entries_.size();
  }

 private:
  struct Entry {
    std::string key;
    Shared value;
  };

  Shared used(const std::string& key) {
    const auto known = places_.find(key);
    if (known == places_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, known->second);
    return known->second->value;
  }

  // Returns the value that left the cache.
  Shared add(std::string key, Shared value) {
    Shared dropped;
    if (entries_.size() >= most_) {
      places_.erase(entries_.back().key);
      dropped = std::move(entries_.back().value);
      entries_.pop_back();
    }
    entries_.push_front({std::move(key), std::move(value)});
    places_.emplace(entries_.front().key, entries_.begin());
    return dropped;
  }

  const size_t most_;
  mutable Mutex mutex_;
  std::list<Entry> entries_;  // the entry used last comes first
  std::unordered_map<std::string_view, typename std::list<Entry>::iterator> places_;
};

}  // namespace xpurt
