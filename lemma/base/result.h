// Result<T>: a value or a Diagnostic. The library throws nothing across its interface.
#pragma once

#include <optional>
#include <utility>
#include <variant>

#include "lemma/base/check.h"
#include "lemma/base/diagnostic.h"

namespace lemma::base {

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Diagnostic diagnostic) : state_(std::in_place_index<1>, std::move(diagnostic)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & { LEMMA_CHECK(ok(), "value() of a failed result"); return std::get<0>(state_); }
  const T& value() const& { LEMMA_CHECK(ok(), "value() of a failed result"); return std::get<0>(state_); }
  T&& value() && { LEMMA_CHECK(ok(), "value() of a failed result"); return std::move(std::get<0>(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Diagnostic& error() const { LEMMA_CHECK(!ok(), "error() of a result that holds a value"); return std::get<1>(state_); }

 private:
  std::variant<T, Diagnostic> state_;
};

// The result of an action that yields nothing.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Diagnostic diagnostic) : error_(std::move(diagnostic)) {}
  bool ok() const { return !error_; }
  explicit operator bool() const { return ok(); }
  const Diagnostic& error() const { LEMMA_CHECK(!ok(), "error() of a result that holds a value"); return *error_; }

 private:
  std::optional<Diagnostic> error_;
};

}  // namespace lemma::base

// Returns the failure of `expression` from the enclosing function, else binds its value to `declaration`.
#define LEMMA_JOIN_(a, b) a##b
#define LEMMA_JOIN(a, b) LEMMA_JOIN_(a, b)
#define LEMMA_TRY(declaration, expression) LEMMA_TRY_(LEMMA_JOIN(lemma_try_, __LINE__), declaration, expression)
#define LEMMA_TRY_(name, declaration, expression) \
  auto name = (expression);                       \
  if (!name.ok()) return name.error();            \
  declaration = *std::move(name)

// The same for a Result<void>.
#define LEMMA_TRY_VOID(expression) \
  if (auto lemma_try_ = (expression); !lemma_try_.ok()) return lemma_try_.error()
