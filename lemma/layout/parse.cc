#include <cctype>
#include <limits>
#include <optional>
#include <string>

#include "lemma/layout/text.h"

namespace lemma::layout {
namespace {

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  base::Result<Layout> parse() {
    Layout out;
    LEMMA_TRY_VOID(expect("layout"));
    LEMMA_TRY(out.shape, extents());
    std::optional<Axis> axis;
    for (skip(); position_ < text_.size(); skip()) {
      if (std::isalpha(static_cast<unsigned char>(text_[position_]))) {
        LEMMA_TRY(axis, axis_name(axis));
      } else if (!axis) {
        return error("found a step before the name of an axis", "write register, lane, warp or offset first");
      } else {
        LEMMA_TRY_VOID(digit(out, *axis));
      }
    }
    const base::Result<void> valid = validate(out);
    if (valid.ok()) return out;
    base::Diagnostic fault = valid.error();
    fault.span = {"", 1, 1, int(text_.size())};
    return fault;
  }

 private:
  void skip() {
    while (position_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[position_]))) {
      if (text_[position_++] == '\n') ++line_, line_start_ = position_;
    }
  }
  bool accept(std::string_view s) {
    skip();
    if (text_.substr(position_, s.size()) != s) return false;
    position_ += s.size();
    return true;
  }
  base::Diagnostic error(std::string message, std::string suggestion = {}) const {
    return base::invalid(std::move(message), {"", line_, int(position_ - line_start_) + 1, 1}, std::move(suggestion));
  }
  std::string found() const {
    if (position_ >= text_.size()) return "the end of the text";
    return "`" + std::string(1, text_[position_]) + "`";
  }
  base::Result<void> expect(std::string_view s) {
    if (accept(s)) return {};
    return error("expected `" + std::string(s) + "` in a layout, found " + found());
  }
  base::Result<int32_t> number() {
    skip();
    int64_t value = 0;
    const size_t begin = position_;
    for (; position_ < text_.size() && text_[position_] >= '0' && text_[position_] <= '9'; ++position_) {
      value = value * 10 + (text_[position_] - '0');
      if (value > std::numeric_limits<int32_t>::max()) return error("a number beyond 2147483647 in a layout");
    }
    if (position_ == begin) return error("expected a number in a layout, found " + found());
    return int32_t(value);
  }
  base::Result<Point> extents() {
    Point out;
    LEMMA_TRY_VOID(expect("["));
    do {
      LEMMA_TRY(const int32_t extent, number());
      out.push_back(extent);
    } while (accept(","));
    LEMMA_TRY_VOID(expect("]"));
    return out;
  }
  // Axes stand in their order, each once.
  base::Result<std::optional<Axis>> axis_name(std::optional<Axis> last) {
    for (Axis axis : axes) {
      const size_t begin = position_;
      if (!accept(name(axis))) continue;
      if (!last || *last < axis) return std::optional<Axis>(axis);
      position_ = begin;
      return error("the axis " + std::string(name(axis)) + " after " + std::string(name(*last)),
                   "axes stand in the order register, lane, warp, offset, each once");
    }
    return error("expected the name of an axis, found " + found(), "write register, lane, warp or offset");
  }
  base::Result<void> digit(Layout& out, Axis axis) {
    const size_t rank = out.shape.size();
    int32_t radix = 2;
    if (!accept("(")) {
      LEMMA_TRY(radix, number());
      if (radix == 0) {
        out[axis].push_back({2, Point(rank, 0)});
        return {};
      }
      LEMMA_TRY_VOID(expect("*"));
      if (accept("0")) {
        out[axis].push_back({radix, Point(rank, 0)});
        return {};
      }
      LEMMA_TRY_VOID(expect("("));
    }
    return steps(out, axis, radix);
  }
  // After the bracket: coordinates, one of which may be a run of doublings.
  base::Result<void> steps(Layout& out, Axis axis, int32_t radix) {
    Point step;
    int32_t last = 0;
    size_t run = 0;
    do {
      LEMMA_TRY(const int32_t v, number());
      step.push_back(v);
      if (!accept("..")) continue;
      if (radix != 2) return error("a run of a digit of radix " + std::to_string(radix), "write the digit's one step");
      if (last != 0) return error("a second run in one step", "a run is of bits along one dimension");
      LEMMA_TRY(last, number());
      run = step.size() - 1;
      if (v <= 0 || last % v != 0 || !is_power_of_two(last / v)) {
        return error("a run from " + std::to_string(v) + " to " + std::to_string(last) + ", expected doublings");
      }
    } while (accept(","));
    LEMMA_TRY_VOID(expect(")"));
    if (step.size() != out.shape.size()) {
      return error("a step of " + std::to_string(step.size()) + " coordinates in a tile of " +
                   std::to_string(out.shape.size()) + " dimensions");
    }
    if (last == 0) {
      out[axis].push_back({radix, step});
      return {};
    }
    for (int64_t v = step[run]; v <= last; v *= 2) {
      step[run] = int32_t(v);
      out[axis].push_back({2, step});
    }
    return {};
  }

  std::string_view text_;
  size_t position_ = 0;
  size_t line_start_ = 0;
  int line_ = 1;
};

}  // namespace

base::Result<Layout> parse(std::string_view text) { return Parser(text).parse(); }

}  // namespace lemma::layout
