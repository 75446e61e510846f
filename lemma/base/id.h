// A typed index: ids of different tables do not mix.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace lemma::base {

template <class Tag>
struct Id {
  int32_t index = -1;
  bool valid() const { return index >= 0; }
  auto operator<=>(const Id&) const = default;
};

}  // namespace lemma::base

template <class Tag>
struct std::hash<lemma::base::Id<Tag>> {
  size_t operator()(lemma::base::Id<Tag> id) const { return std::hash<int32_t>{}(id.index); }
};
