#include "lemma/emit/device/registers.h"

#include <algorithm>
#include <map>

#include "lemma/base/check.h"
#include "lemma/emit/device/fold.h"
#include "lemma/layout/bits.h"
#include "lemma/layout/query.h"
#include "lemma/layout/text.h"
#include "lemma/tile/fragments.h"

namespace lemma::emit::device {

using layout::Axis;
using layout::Layout;
using scalar::Expr;
using scalar::Kind;
using tile::Access;
using tile::Range;

namespace {

// Per dimension, the steps of an axis' digits: all are bits.
std::vector<uint64_t> steps(const Layout& layout, Axis axis, size_t d) {
  std::vector<uint64_t> out;
  for (const layout::Digit& digit : layout[axis]) out.push_back(uint64_t(digit.step[d]));
  return out;
}

uint64_t any(const std::vector<uint64_t>& columns) {
  uint64_t out = 0;
  for (uint64_t c : columns) out |= c;
  return out;
}

// Whether a lane or warp holds what another one holds too: the text that is true in one of them.
std::string holder(const Layout& layout) {
  const auto redundant = layout::redundant_digits(layout);
  uint64_t lanes = 0, warps = 0;
  for (int d : redundant[size_t(Axis::Lane)]) lanes |= uint64_t(1) << d;
  for (int d : redundant[size_t(Axis::Warp)]) warps |= uint64_t(1) << d;
  std::string out;
  if (lanes) out = "(lm_lane & " + std::to_string(lanes) + ") == 0";
  if (warps) out += (out.empty() ? "" : " && ") + std::string("(lm_warp & ") + std::to_string(warps) + ") == 0";
  return out;
}

}  // namespace

std::string linear_text(const std::string& v, const std::vector<uint64_t>& columns) {
  std::map<int, uint64_t> masks;  // by how far a bit moves up
  for (size_t i = 0; i < columns.size(); ++i) {
    for (int t = 0; t < 63; ++t) {
      if (columns[i] >> t & 1) masks[t - int(i)] |= uint64_t(1) << i;
    }
  }
  std::string out;
  for (const auto& [distance, mask] : masks) {
    std::string term = "(" + v + " & " + std::to_string(mask) + ")";
    if (distance > 0) term = "(" + term + " << " + std::to_string(distance) + ")";
    if (distance < 0) term = "(" + term + " >> " + std::to_string(-distance) + ")";
    out += (out.empty() ? "" : " ^ ") + term;
  }
  return out.empty() ? "0" : "(" + out + ")";
}

std::vector<uint64_t> memory_columns(const Layout& placed) {
  layout::Echelon echelon;
  const std::vector<uint64_t> places = layout::columns(placed, Axis::Offset);
  for (uint64_t c : places) echelon.insert(c);
  std::vector<uint64_t> out;
  for (size_t i = 0; i < places.size(); ++i) {
    const auto place = echelon.solve(uint64_t(1) << i);
    LEMMA_CHECK(place.has_value(), "every element of a shared tile has a place");
    out.push_back(*place);
  }
  return out;
}

int register_count(const tile::Buffer& buffer) { return int(layout::count(*buffer.hints.placed, Axis::Register)); }

bool is_packed(const tile::Buffer& buffer) { return scalar::bits(buffer.type) == 16 && register_count(buffer) % 2 == 0; }

std::string register_declaration(const Text& text, int b) {
  const tile::Buffer& buffer = text.buffer(b);
  const int n = register_count(buffer);
  const bool narrow = scalar::is_float(buffer.type) && scalar::bits(buffer.type) <= 16;
  const std::string type(type_name(text.dialect, narrow ? Kind::U32 : scalar::kind_of(buffer.type)));
  return type + " " + text.buffer_names.at(b) + "[" + std::to_string(is_packed(buffer) ? n / 2 : n) + "];";
}

// What a register of the round is in a fragment's array.
std::string Text::register_place(const Access& access, const Scope& scope) const {
  LEMMA_CHECK(scope.round != nullptr, "a fragment in registers outside a round");
  std::vector<int> dimensions;
  for (const view::Form& c : access.coords) {
    const auto at = std::find(scope.round->vars.begin(), scope.round->vars.end(), c.as_index().value_or(-1));
    LEMMA_CHECK(at != scope.round->vars.end(), "a fragment in registers at what is no point");
    dimensions.push_back(int(at - scope.round->vars.begin()));
  }
  const std::vector<int> bits = tile::projected_registers(scope.round->points, dimensions);
  std::vector<uint64_t> columns(scope.round->points[Axis::Register].size(), 0);
  for (size_t i = 0; i < bits.size(); ++i) columns[size_t(bits[i])] = uint64_t(1) << i;
  return linear_text(scope.round->reg, columns);
}

std::shared_ptr<const Round> round_of(const Text& text, const std::vector<Range>& points, const std::vector<const Access*>& accesses) {
  for (const Access* a : accesses) {
    if (text.held.at(a->buffer) != Held::Registers) continue;
    const auto dimensions = tile::point_dimensions(*a, points);
    if (!dimensions || dimensions->size() != points.size()) continue;
    auto out = std::make_shared<Round>();
    out->points = tile::distribution_of(*text.buffer(a->buffer).hints.placed, *dimensions);
    for (const Range& r : points) out->vars.push_back(r.var);
    return out;
  }
  return nullptr;
}

// The thread's part of each coordinate, known from the kernel's beginning on.
std::vector<std::string> Text::thread_places(const Layout& layout) {
  std::vector<std::string>& out = places_[layout::print(layout)];
  if (!out.empty()) return out;
  for (size_t d = 0; d < layout.shape.size(); ++d) {
    const std::string name = fresh("at");
    const std::vector<uint64_t> lane = steps(layout, Axis::Lane, d), warp = steps(layout, Axis::Warp, d);
    prologue.push_back(fixed(dialect, "int", name, linear_text("lm_lane", lane) + ((any(lane) & any(warp)) ? " ^ " : " + ") + linear_text("lm_warp", warp)));
    out.push_back(name);
  }
  return out;
}

namespace {

// The points' variables at the round's register.
void define_points(Text& text, const Round& at, Scope& scope) {
  const std::vector<std::string> places = text.thread_places(at.points);
  for (size_t d = 0; d < at.vars.size(); ++d) {
    const std::string v = text.fresh("v");
    const std::vector<uint64_t> mine = steps(at.points, Axis::Register, d);
    const uint64_t others = any(steps(at.points, Axis::Lane, d)) | any(steps(at.points, Axis::Warp, d));
    text.define("int", v, places[d] + ((any(mine) & others) ? " ^ " : " + ") + linear_text(at.reg, mine));
    scope.vars[at.vars[d]] = v;
  }
}

}  // namespace

int open_round(Text& text, std::shared_ptr<const Round> round, Scope& scope, bool once, int step) {
  int opened = 1;
  if (once) {
    const std::string own = holder(round->points);
    if (!own.empty()) {
      text.test(own);
      ++opened;
    }
  }
  auto at = std::make_shared<Round>(*round);
  at->reg = text.fresh("r");
  text.out.line("LM_UNROLL");
  text.out.open("for (int " + at->reg + " = 0; " + at->reg + " < " + std::to_string(layout::count(round->points, Axis::Register)) + "; " + at->reg + " += " +
                std::to_string(step) + ")");
  define_points(text, *at, scope);
  scope.round = std::move(at);
  return opened;
}

void next_register(Text& text, Scope& scope) {
  auto at = std::make_shared<Round>(*scope.round);
  at->reg = "(" + at->reg + " + 1)";
  define_points(text, *at, scope);
  scope.round = std::move(at);
}

namespace {

// Lane bits that number folded points alone.
std::vector<int> folded_lanes(const Layout& points, size_t kept) {
  std::vector<int> out;
  const auto& lanes = points[Axis::Lane];
  for (size_t i = 0; i < lanes.size(); ++i) {
    bool stays = false, folded = false;
    for (size_t d = 0; d < lanes[i].step.size(); ++d) (d < kept ? stays : folded) |= lanes[i].step[d] != 0;
    if (folded && !stays) out.push_back(int(i));
  }
  return out;
}

// A thread folds its own elements into one state for each point it has, lanes that have other elements of the same points
// exchange theirs, and last comes what the states held before.
class RegisterReduction {
 public:
  RegisterReduction(Text& text, const tile::Reduce& r) : text_(text), r_(r), fold_(text, *r.monoid) {
    std::vector<Range> points = r.points;
    points.insert(points.end(), r.reduces.begin(), r.reduces.end());
    std::vector<const Access*> accesses;
    for (const Access& a : r.reads) accesses.push_back(&a);
    round_ = round_of(text, points, accesses);
    LEMMA_CHECK(round_ != nullptr, "a reduction of fragments without a fragment of all its points");
    std::vector<int> dimensions;
    for (size_t d = 0; d < r.points.size(); ++d) dimensions.push_back(int(d));
    auto states = std::make_shared<Round>();
    states->points = tile::project(round_->points, dimensions);
    for (const Range& p : r.points) states->vars.push_back(p.var);
    count_ = std::to_string(layout::count(states->points, Axis::Register));
    states_ = std::move(states);
  }

  base::Result<void> write(const Scope& outer) {
    if (const std::string why = fold_.refusal(); !why.empty()) {
      return base::unsupported("the reduction '" + r_.comment + "' has no form for devices yet: " + why);
    }
    begin();
    fold_own(outer);
    exchange();
    finish(outer);
    return {};
  }

 private:
  std::vector<std::string> at(const std::string& place) const {
    std::vector<std::string> out;
    for (const std::string& p : parts_) out.push_back(p + "[" + place + "]");
    return out;
  }
  std::string open_states() {
    const std::string i = text_.fresh("r");
    text_.out.line("LM_UNROLL");
    text_.out.open("for (int " + i + " = 0; " + i + " < " + count_ + "; ++" + i + ")");
    return i;
  }

  // What the thread has folded, an array a component: the identity.
  void begin() {
    for (size_t c = 0; c < fold_.components(); ++c) {
      parts_.push_back(text_.fresh("f"));
      text_.out.line(std::string(text_.type(fold_.kind(c))) + " " + parts_.back() + "[" + count_ + "];");
    }
    const std::vector<std::string> place = at(open_states()), identity = fold_.identity();
    for (size_t c = 0; c < place.size(); ++c) text_.out.line(place[c] + " = " + identity[c] + ";");
    text_.out.close();
  }

  void fold_own(const Scope& outer) {
    Scope scope = outer;
    const int opened = open_round(text_, round_, scope, false);
    std::vector<Expr> body;
    for (Expr e : r_.body) body.push_back(scalar::import(e, text_.arena));
    Access place;  // of the state in `parts_`
    for (const Range& p : r_.points) place.coords.push_back(view::Form::index(p.var));
    const std::string mine = text_.fresh("q");
    text_.define("int", mine, text_.register_place(place, scope));
    text_.reads(r_.reads, scope, needed(r_.reads, {}, r_.where));
    if (!r_.where.is_always()) text_.test(text_.condition(r_.where, scope));
    Scope within = scope;
    text_.reads(r_.reads, within, needed(r_.reads, body, r_.where));
    fold_.step(at(mine), text_.values(body, within));
    if (!r_.where.is_always()) text_.out.close();
    text_.out.close(opened);
  }

  void exchange() {
    const std::vector<int> lanes = folded_lanes(round_->points, r_.points.size());
    if (lanes.empty()) return;
    const std::string i = open_states();
    for (int bit : lanes) {
      std::vector<std::string> other;
      for (size_t c = 0; c < parts_.size(); ++c) {
        other.push_back(text_.fresh("y"));
        text_.define(text_.type(fold_.kind(c)), other.back(), "lm_shuffle_xor(" + parts_[c] + "[" + i + "], " + std::to_string(1 << bit) + ")");
      }
      fold_.combine(at(i), at(i), other);
    }
    text_.out.close();
  }

  void finish(const Scope& outer) {
    Scope scope = outer;
    const bool once = std::any_of(r_.states.begin(), r_.states.end(), [&](const Access& a) { return text_.held.at(a.buffer) != Held::Registers; });
    const int opened = open_round(text_, states_, scope, once);
    const std::vector<std::string> found = at(scope.round->reg);
    if (r_.accumulate) {
      Scope before = scope;
      before.reads.clear();
      before.known.clear();
      text_.reads(r_.states, before, std::vector<bool>(r_.states.size(), true));
      fold_.combine(found, before.reads, found);
    }
    for (size_t c = 0; c < found.size(); ++c) text_.store(r_.states[c], found[c], fold_.kind(c), scope);
    text_.out.close(opened);
  }

  Text& text_;
  const tile::Reduce& r_;
  Fold fold_;
  std::shared_ptr<const Round> round_, states_;
  std::string count_;                 // of a thread's points
  std::vector<std::string> parts_;
};

}  // namespace

base::Result<void> write_register_reduce(Text& text, const tile::Reduce& r, Scope& outer) { return RegisterReduction(text, r).write(outer); }

}  // namespace lemma::emit::device
