// match(variant, handlers...): dispatch over a std::variant by overloads; every alternative must be handled.
#pragma once

#include <utility>
#include <variant>

namespace lemma::base {

template <class... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
};
template <class... Handlers>
Overloaded(Handlers...) -> Overloaded<Handlers...>;

template <class Variant, class... Handlers>
decltype(auto) match(Variant&& variant, Handlers&&... handlers) {
  return std::visit(Overloaded<std::decay_t<Handlers>...>{std::forward<Handlers>(handlers)...},
                    std::forward<Variant>(variant));
}

}  // namespace lemma::base
