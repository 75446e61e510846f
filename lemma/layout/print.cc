#include "lemma/layout/text.h"

namespace lemma::layout {
namespace {

// The only dimension that a step moves along; -1 if there is none or more.
int only_dimension(const Point& step) {
  int found = -1;
  for (size_t d = 0; d < step.size(); ++d) {
    if (step[d] == 0) continue;
    if (found >= 0) return -1;
    found = int(d);
  }
  return found;
}

// How many bits from `begin` on double a step along one dimension.
size_t run_length(const std::vector<Digit>& digits, size_t begin) {
  const int d = only_dimension(digits[begin].step);
  if (d < 0 || digits[begin].radix != 2) return 1;
  size_t n = 1;
  Point next = digits[begin].step;
  while (begin + n < digits.size()) {
    next[size_t(d)] *= 2;
    if (digits[begin + n].radix != 2 || digits[begin + n].step != next) break;
    ++n;
  }
  return n;
}

std::string print_step(const Digit& first, const Digit& last) {
  std::string out = first.radix == 2 ? "" : std::to_string(first.radix) + "*";
  if (is_zero(first.step)) return out + "0";
  out += "(";
  for (size_t d = 0; d < first.step.size(); ++d) {
    if (d > 0) out += ",";
    out += std::to_string(first.step[d]);
    if (first.step[d] != last.step[d]) out += ".." + std::to_string(last.step[d]);
  }
  return out + ")";
}

}  // namespace

std::string print(const Layout& layout) {
  std::string out = "layout [";
  for (size_t d = 0; d < layout.shape.size(); ++d) out += (d > 0 ? ", " : "") + std::to_string(layout.shape[d]);
  out += "]";
  for (Axis axis : axes) {
    const std::vector<Digit>& digits = layout[axis];
    if (!digits.empty()) out += " " + std::string(name(axis));
    for (size_t i = 0; i < digits.size();) {
      size_t n = run_length(digits, i);
      if (n < 3) n = 1;  // two steps are as short
      out += " " + print_step(digits[i], digits[i + n - 1]);
      i += n;
    }
  }
  return out;
}

}  // namespace lemma::layout
