// Scalar expressions as text that the language reads back to the very same expression: the kind of every constant is
// plain from what stands beside it, or stated by a cast. Part of print.cc.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "lemma/scalar/expr.h"

namespace lemma::tensor {

struct BodyNames {
  // The value of Arg(i); `strength` is that of an atom. Present(i); an index; a size.
  std::function<std::string(int)> arg, present, index, size;
  // `read` of select(Present(r), Arg(r), v): the text before ` else v`, or "" if there is none.
  std::function<std::string(int)> optional_read;
  // A fresh name for a shared or deep part.
  std::function<std::string()> let;
};

struct PrintedBody {
  std::vector<std::string> roots;                           // each binds at least as tightly as a product
  std::vector<std::pair<std::string, std::string>> lets;    // name, text; each may use those before it
};

PrintedBody print_body(const std::vector<scalar::Expr>& roots, const BodyNames& names);

}  // namespace lemma::tensor
