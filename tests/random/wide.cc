#include "tests/random/wide.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "lemma/tensor/builder.h"

namespace lemma::random_graphs {
namespace {

using scalar::DType;
using scalar::Expr;
using scalar::Kind;
using scalar::Op;
using tensor::Builder;
using tensor::Draft;
using tensor::Value;
using view::AtomKind;
using view::Form;
using view::Formula;

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0xD1342543DE82EF95ull + 0x1234567) { state_ ^= state_ >> 29; }
  int below(int n) {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return int(((z ^ (z >> 31)) >> 16) % uint64_t(n));
  }
  bool chance(int percent) { return below(100) < percent; }
  template <class T>
  T pick(const std::vector<T>& list) { return list[size_t(below(int(list.size())))]; }

 private:
  uint64_t state_;
};

// How large a value may be and how fine: a float is a multiple of 2^-grain, held exactly by f32 if `exact`.
struct Size {
  bool exact = true;
  double grain = 0;
  double most = 1;
  void settle() { exact = exact && grain + std::log2(std::max(1.0, most)) <= 22; }
};

struct Typed {
  Expr e;
  Size size;
};

struct Known {
  Value value;
  std::vector<Form> extents;
  Kind kind;
  Size size;
  Formula domain;  // over dimensions
};

struct Frame {
  std::vector<Form> index;
  std::vector<Form> extent;
  int64_t points = 1;
};

class Generator {
 public:
  explicit Generator(const WideOptions& options) : options_(options), random_(options.seed), b_("random") {}

  Sample run() {
    make_extents();
    make_inputs();
    for (int s = 0; s < options_.steps; ++s) step();
    make_outputs();
    out_.graph = b_.finish();
    return std::move(out_);
  }

 private:
  // ---- what there is ----

  int64_t nominal(const Form& f) const {
    return f.evaluate([&](const view::Atom& a) { return out_.sizes[size_t(a.id)].value; });
  }

  void make_extents() {
    const bool symbolic = random_.chance(40);
    for (int e = 0; e < 4; ++e) {
      const int how = random_.below(100);
      int64_t n = how < 5 ? 0 : how < 15 ? 1 : how < 70 ? 2 + random_.below(6) : 8 + random_.below(33);
      const std::string name(1, char('K' + e));
      out_.sizes.push_back({name, n});
      extents_.push_back(b_.size(name));
      if (!symbolic || random_.chance(25)) out_.constant.push_back({name, n});
    }
  }

  Value add_input(const std::string& name, std::vector<Form> extents, DType type) {
    const Value v = b_.input(name, extents, type);
    Size size;
    size.grain = scalar::is_float(type) ? 2 : 0;
    size.most = scalar::is_float(type) ? 2 : 8;
    if (scalar::is_float(type) && random_.chance(15)) std::get<tensor::Input>(b_.graph.node(v.node)).strided = true;
    values_.push_back({v, std::move(extents), scalar::kind_of(type), size, {}});
    return v;
  }

  std::vector<Form> some_extents(int rank) {
    std::vector<Form> out;
    int64_t count = 1;
    for (int d = 0; d < rank; ++d) {
      const Form e = random_.pick(extents_);
      if (count * nominal(e) > options_.most_points) break;
      count *= std::max<int64_t>(nominal(e), 1);
      out.push_back(e);
    }
    return out;
  }

  void make_inputs() {
    const int count = 2 + random_.below(3);
    const std::vector<DType> types = {DType::F32, DType::F32, DType::F32, DType::F32, DType::F32, DType::F64, DType::F16,
                                      DType::BF16, DType::BF16, DType::I8, DType::U8, DType::I32, DType::I64, DType::Bool};
    for (int i = 0; i < count; ++i) {
      add_input("x" + std::to_string(i), some_extents(1 + random_.below(3)), i == 0 ? DType::F32 : random_.pick(types));
    }
    // Keys, some out of range, some promised to be in it; lengths.
    const Value key = add_input("key", {random_.pick(extents_)}, random_.chance(60) ? DType::I32 : DType::I64);
    if (random_.chance(40)) {
      auto& input = std::get<tensor::Input>(b_.graph.node(key.node));
      input.low = Form(0);
      input.high = Form(1 + random_.below(9));
    }
    if (random_.chance(40)) add_input("mask", some_extents(2), DType::Bool);
  }

  std::string name() { return "v" + std::to_string(next_name_++); }

  void know(Value v, Size size, Formula domain = {}) {
    size.settle();
    values_.push_back({v, tensor::extents(b_.graph, v), tensor::kind(b_.graph, v), size, std::move(domain)});
  }

  // Stores an output of a node in a narrower type.
  void narrow(Value v, Size& size) {
    auto& node = std::get<tensor::Comprehension>(b_.graph.node(v.node));
    DType& type = node.outputs[size_t(v.output)].type;
    if (type == DType::F32 && random_.chance(10)) {
      type = random_.chance(50) ? DType::BF16 : DType::F16;
      size.exact = false;
      out_.narrow = true;
    } else if (type == DType::I32 && random_.chance(20)) {
      type = random_.chance(50) ? DType::I8 : DType::I16;
    } else if (type == DType::U32 && random_.chance(20)) {
      type = random_.chance(50) ? DType::U8 : DType::U16;
    }
  }

  // ---- indices ----

  std::optional<Form> fitting_extent(const Frame& f) {
    for (int attempt = 0; attempt < 4; ++attempt) {
      Form e = random_.pick(extents_);
      if (random_.chance(8)) e = e + Form(1 + random_.below(3));
      if (f.points * std::max<int64_t>(nominal(e), 1) <= options_.most_points) return e;
    }
    return std::nullopt;
  }
  void add_index(Frame& f, const Form& index, const Form& extent) {
    f.index.push_back(index);
    f.extent.push_back(extent);
    f.points *= std::max<int64_t>(nominal(extent), 1);
  }
  void add_points(Draft& d, Frame& f, int count) {
    for (int i = 0; i < count; ++i) {
      if (const auto e = fitting_extent(f)) add_index(f, d.point("i" + std::to_string(f.index.size()), *e), *e);
    }
  }
  void add_reduces(Draft& d, Frame& f, int count) {
    for (int i = 0; i < count; ++i) {
      const Form e = fitting_extent(f).value_or(Form(2));
      add_index(f, d.reduce("r" + std::to_string(f.index.size()), e), e);
    }
  }

  // ---- reads ----

  const Known* find(Kind kind) {
    std::vector<size_t> fits;
    for (size_t v = 0; v < values_.size(); ++v) {
      if (values_[v].kind != kind) continue;
      fits.push_back(v);
      if (v + 4 > values_.size()) fits.push_back(v), fits.push_back(v);
    }
    return fits.empty() ? nullptr : &values_[random_.pick(fits)];
  }

  // A coordinate along a dimension, and where it may leave it.
  Form coordinate(Draft& d, const Frame& f, const Form& extent, Formula& guard) {
    std::vector<size_t> fits;
    for (size_t i = 0; i < f.index.size(); ++i) {
      if (f.extent[i] == extent) fits.push_back(i);
    }
    if (!fits.empty() && random_.chance(80)) {
      const Form i = f.index[random_.pick(fits)];
      const int how = random_.below(20);
      if (how == 0) return extent - Form(1) - i;
      if (how == 1) return Form::floor_div(i, Form(2));
      if (how == 2) return Form::mod(i, Form(3)) - Form::mod(i, Form(3)) + i;
      if (how < 18) return i;
    }
    Form c;
    if (f.index.empty()) {
      c = Form(random_.below(3));
    } else if (random_.chance(15)) {
      if (const auto key = key_read(d, f)) c = *key;
    } else {
      const Form i = random_.pick(f.index);
      switch (random_.below(8)) {
        case 0: c = i + Form(random_.below(5) - 2); break;
        case 1: c = Form(2) * i + Form(random_.below(3) - 1); break;
        case 2: c = Form::floor_div(i, Form(2 + random_.below(3))); break;
        case 3: c = Form::mod(i, Form(2 + random_.below(3))); break;
        case 4: c = i + random_.pick(f.index) - Form(1); break;
        case 5: c = extent - i; break;
        case 6: c = i * Form(random_.below(3)) + Form::floor_div(random_.pick(f.index), Form(3)); break;
        default: c = i;
      }
    }
    guard = guard && Formula::within(c, extent);
    return c;
  }

  // The value of an integer input at indices of the frame, as a coordinate.
  std::optional<Form> key_read(Draft& d, const Frame& f) {
    for (const Known& k : values_) {
      if ((k.kind != Kind::I32 && k.kind != Kind::I64) || k.extents.size() != 1 || !k.domain.is_always()) continue;
      if (k.size.most > 1000) continue;
      for (size_t i = 0; i < f.index.size(); ++i) {
        if (!(f.extent[i] == k.extents[0]) || random_.chance(30)) continue;
        return Draft::data(d.read(k.value, {f.index[i]})) + Form(random_.chance(70) ? 0 : random_.below(3) - 1);
      }
    }
    return std::nullopt;
  }

  // `optional`: absent terms may leave the node's domain.
  Typed read(Draft& d, const Frame& f, Kind kind, bool optional) {
    const Known* found = find(kind);
    if (!found) return literal(kind);
    const Known known = *found;
    std::vector<Form> coords;
    Formula guard;
    for (const Form& extent : known.extents) coords.push_back(coordinate(d, f, extent, guard));
    if (!known.domain.is_always()) guard = guard && known.domain.map_indices([&](int i) { return coords[size_t(i)]; });
    if (guard.is_never()) return literal(kind);
    const bool guarded = !guard.is_always();
    const Expr value = d.read(known.value, coords, guard);
    if (!guarded) return {value, known.size};
    if (optional && random_.chance(35)) {
      d.where(guard);
      return {value, known.size};
    }
    const Typed other = literal(kind);
    return {scalar::select(Draft::present(value), value, other.e), joined(known.size, other.size)};
  }

  static Size joined(const Size& a, const Size& b) {
    Size s{a.exact && b.exact, std::max(a.grain, b.grain), std::max(a.most, b.most)};
    s.settle();
    return s;
  }

  Typed literal(Kind kind) {
    const int n = random_.below(5) - 1;
    if (kind == Kind::F32 || kind == Kind::F64) return {scalar::constant(b_.arena(), kind, n * 0.5), {true, 1, 2}};
    if (kind == Kind::Bool) return {scalar::boolean(b_.arena(), n > 0), {}};
    return {scalar::constant_int(b_.arena(), kind, kind == Kind::U32 ? std::abs(n) : n), {true, 0, 4}};
  }

  // ---- expressions ----

  Typed expression(Draft& d, const Frame& f, Kind kind, int depth, bool optional) {
    if (kind == Kind::Bool) return logical(d, f, depth, optional);
    if (kind == Kind::F32 || kind == Kind::F64) return real(d, f, kind, depth, optional);
    return integer(d, f, kind, depth, optional);
  }

  static Size sum_of(const Size& a, const Size& b) {
    Size s{a.exact && b.exact, std::max(a.grain, b.grain), a.most + b.most};
    s.settle();
    return s;
  }
  static Size product_of(const Size& a, const Size& b) {
    Size s{a.exact && b.exact, a.grain + b.grain, a.most * b.most};
    s.settle();
    return s;
  }

  Expr number(Kind kind, double v) { return scalar::constant(b_.arena(), kind, v); }
  Expr one_more(Expr e) { return scalar::unary(Op::Abs, e) + number(e.kind(), 1); }

  Typed leaf(Draft& d, const Frame& f, Kind kind, bool optional) {
    if (random_.chance(10)) return literal(kind);
    if (random_.chance(8) && !f.index.empty()) {
      return {scalar::cast(d.index(random_.pick(f.index)), kind), {true, 0, 64}};
    }
    if (random_.chance(12)) {
      const Kind other = random_.pick(std::vector<Kind>{Kind::F32, Kind::F64, Kind::I32, Kind::I64, Kind::U32, Kind::Bool});
      if (find(other)) {
        Typed t = read(d, f, other, optional);
        if (other == kind) return t;
        const bool from_float = scalar::is_float(other), to_float = scalar::is_float(kind);
        if (!(from_float && !to_float && !t.size.exact) && t.size.most < 1e6) {
          if (!to_float) t.size.grain = 0;
          t.e = scalar::cast(t.e, kind);
          return t;
        }
      }
    }
    return read(d, f, kind, optional);
  }

  Typed real(Draft& d, const Frame& f, Kind kind, int depth, bool optional) {
    if (depth == 0 || random_.chance(15)) return leaf(d, f, kind, optional);
    Typed a = moderate(real(d, f, kind, depth - 1, optional));
    const auto rounded = [&](Expr e, double most) { return Typed{e, {false, 0, most}}; };
    switch (random_.below(22)) {
      case 0: case 1: case 2: { const Typed b = real(d, f, kind, depth - 1, optional); return {a.e + b.e, sum_of(a.size, b.size)}; }
      case 3: { const Typed b = real(d, f, kind, depth - 1, optional); return {a.e - b.e, sum_of(a.size, b.size)}; }
      case 4: case 5: case 6: case 7: {
        const Typed b = moderate(real(d, f, kind, depth - 1, optional));
        return moderate({a.e * b.e, product_of(a.size, b.size)});
      }
      case 8: { const Typed b = real(d, f, kind, depth - 1, optional); return {scalar::max(a.e, b.e), joined(a.size, b.size)}; }
      case 9: { const Typed b = real(d, f, kind, depth - 1, optional); return {scalar::min(a.e, b.e), joined(a.size, b.size)}; }
      case 10: case 11: {
        const Typed c = logical(d, f, 1, optional), b = real(d, f, kind, depth - 1, optional);
        return {scalar::select(c.e, a.e, b.e), joined(a.size, b.size)};
      }
      case 12: return rounded(scalar::unary(Op::Tanh, a.e), 1);
      case 13: return rounded(scalar::unary(Op::Sigmoid, a.e), 1);
      case 14: return rounded(scalar::exp(-scalar::unary(Op::Abs, a.e)), 1);
      case 15: { const Typed b = moderate(real(d, f, kind, depth - 1, optional)); return rounded(a.e / one_more(b.e), a.size.most); }
      case 16: return rounded(scalar::unary(random_.chance(50) ? Op::Sqrt : Op::Log, one_more(a.e)), 4);
      case 17: return rounded(scalar::unary(random_.chance(50) ? Op::Rsqrt : Op::Recip, one_more(a.e)), 1);
      case 18: return rounded(scalar::unary(random_.pick(std::vector<Op>{Op::Sin, Op::Cos, Op::Erf}), a.e), 1);
      case 19: if (a.size.exact) return {scalar::unary(random_.chance(50) ? Op::Floor : Op::Round, a.e), {true, 0, a.size.most + 1}}; return a;
      case 20: return {-a.e, a.size};
      default: return {scalar::unary(Op::Abs, a.e), a.size};
    }
  }

  // Keeps a float within 8.
  Typed moderate(Typed t) {
    while (t.size.most > 8) {
      const double by = std::exp2(std::ceil(std::log2(t.size.most / 8)));
      t.e = t.e * number(t.e.kind(), 1 / by);
      t.size.most /= by;
      t.size.grain += std::log2(by);
    }
    t.size.settle();
    return t;
  }

  Typed integer(Draft& d, const Frame& f, Kind kind, int depth, bool optional) {
    if (depth == 0 || random_.chance(20)) return leaf(d, f, kind, optional);
    const Typed a = integer(d, f, kind, depth - 1, optional), b = integer(d, f, kind, depth - 1, optional);
    const auto made = [&](Op op, double most) { return Typed{scalar::binary(op, a.e, b.e), {true, 0, most}}; };
    const double large = kind == Kind::U32 ? 4e9 : std::max(a.size.most, b.size.most) + 1;
    switch (random_.below(11)) {
      case 0: case 1: return made(Op::Add, a.size.most + b.size.most);
      case 2: return made(Op::Sub, kind == Kind::U32 ? 4e9 : a.size.most + b.size.most);
      case 3: return made(Op::Mul, a.size.most * b.size.most + 1);
      case 4: return made(Op::FloorDiv, large);
      case 5: return made(Op::Mod, large);
      case 6: return made(Op::Min, large);
      case 7: return made(Op::Max, large);
      case 8: return made(random_.pick(std::vector<Op>{Op::And, Op::Or, Op::Xor}), 4 * large + 4e9);
      case 9: {
        const Expr by = scalar::constant_int(b_.arena(), kind, random_.below(4));
        return {scalar::binary(random_.chance(50) ? Op::Shl : Op::Shr, a.e, by), {true, 0, 8 * large}};
      }
      default: {
        const Typed c = logical(d, f, 1, optional);
        return {scalar::select(c.e, a.e, b.e), {true, 0, large}};
      }
    }
  }

  Typed logical(Draft& d, const Frame& f, int depth, bool optional) {
    const int how = random_.below(10);
    if (how < 2 && find(Kind::Bool)) return read(d, f, Kind::Bool, optional);
    if (how < 3 && depth > 0) {
      const Expr a = logical(d, f, depth - 1, optional).e, b = logical(d, f, depth - 1, optional).e;
      return {scalar::binary(random_.chance(50) ? Op::And : Op::Or, a, b), {}};
    }
    if (how < 4 && depth > 0) return {scalar::unary(Op::Not, logical(d, f, depth - 1, optional).e), {}};
    const Op op = random_.pick(std::vector<Op>{Op::Le, Op::Lt, Op::Eq, Op::Ne});
    if (how < 7) {
      const Expr a = f.index.empty() ? b_.i64(1) : d.index(random_.pick(f.index));
      const Expr c = f.index.empty() || random_.chance(40) ? b_.i64(random_.below(5)) : d.index(random_.pick(f.index));
      return {scalar::binary(op, a, c), {}};
    }
    const Typed a = read(d, f, how < 9 ? Kind::F32 : Kind::I32, optional);
    if (!a.size.exact) return {scalar::binary(op, b_.i64(random_.below(2)), b_.i64(0)), {}};
    const Typed c = random_.chance(50) ? literal(a.e.kind()) : read(d, f, a.e.kind(), optional);
    if (!c.size.exact) return {scalar::binary(op, a.e, literal(a.e.kind()).e), {}};
    return {scalar::binary(op, a.e, c.e), {}};
  }

  Formula domain(Draft& d, const Frame& f) {
    if (f.index.empty()) return {};
    const Form a = f.index.back(), c = random_.pick(f.index);
    switch (random_.below(9)) {
      case 0: return Formula::less_equal(a, c);
      case 1: return Formula::less_equal(a, c) && Formula::less(c, a + Form(3));
      case 2: return Formula::equal(a, c) || Formula::less(a + Form(1), c);
      case 3: return Formula::less(a, Form(2)) || Formula::less(Form(4), a);
      case 4: return Formula::equal(Form::mod(a + c, Form(2)), Form(0));
      case 5: return Formula::less(Form::floor_div(a, Form(3)), c + Form(1));
      case 6: return !Formula::equal(a, c);
      default:
        if (const auto key = key_read(d, f)) return random_.chance(70) ? Formula::less(a, *key) : Formula::equal(a, *key);
        return Formula::less(a, f.extent.back() - Form(1));
    }
  }

  // ---- constructs ----

  void step() {
    switch (random_.below(20)) {
      case 0: case 1: case 2: return map();
      case 3: return partial_map();
      case 4: case 5: case 6: case 7: return reduction();
      case 8: case 9: return contraction();
      case 10: return window();
      case 11: case 12: return weights();
      case 13: return chosen();
      case 14: case 15: return scan();
      case 16: return scatter();
      case 17: return logic();
      default: return best();
    }
  }

  Kind some_kind() {
    return random_.pick(std::vector<Kind>{Kind::F32, Kind::F32, Kind::F32, Kind::F32, Kind::F32, Kind::F64, Kind::I32,
                                          Kind::I32, Kind::I64, Kind::U32, Kind::Bool});
  }

  Typed settled(Typed t) { return scalar::is_float(t.e.kind()) ? moderate(t) : t; }

  void finish_map(Draft& d, std::vector<Typed> bodies, const Formula& domain) {
    std::vector<Expr> e;
    for (const Typed& t : bodies) e.push_back(t.e);
    const Value v = d.map(std::move(e));
    for (size_t o = 0; o < bodies.size(); ++o) {
      narrow(tensor::sibling(v, int(o)), bodies[o].size);
      know(tensor::sibling(v, int(o)), bodies[o].size, domain);
    }
  }

  void map() {
    Draft d = b_.draft(name());
    Frame f;
    add_points(d, f, random_.below(4));
    std::vector<Typed> bodies{settled(expression(d, f, some_kind(), 2, false))};
    if (random_.chance(20)) bodies.push_back(settled(expression(d, f, some_kind(), 1, false)));
    finish_map(d, std::move(bodies), {});
  }

  void partial_map() {
    Draft d = b_.draft(name());
    Frame f;
    add_points(d, f, 1 + random_.below(2));
    if (f.index.empty()) return;
    const Form a = f.index.back(), c = f.index.front();
    const Formula where = f.index.size() > 1 && random_.chance(60) ? Formula::less_equal(a, c) : Formula::less(Form(0), a) || Formula::less(f.extent.back(), Form(3));
    d.where(where);
    finish_map(d, {settled(expression(d, f, some_kind(), 2, false))}, where);  // indices are the dimensions
  }

  void reduction() {
    Draft d = b_.draft(name());
    Frame f;
    add_points(d, f, random_.below(3));
    const int64_t before = f.points;
    add_reduces(d, f, 1 + random_.below(2));
    const double terms = double(f.points / std::max<int64_t>(before, 1));
    if (random_.chance(40)) d.where(domain(d, f));
    Kind kind = some_kind();
    if (kind == Kind::Bool) kind = Kind::F32;
    Typed body = settled(expression(d, f, kind, 2, true));
    monoid::MonoidRef m;
    Size size = body.size;
    const int which = random_.below(10);
    if (which < 5) {
      m = monoid::sum(kind);
      if (scalar::is_float(kind)) {
        const double by = std::exp2(std::floor(std::log2(std::max(1.0, terms / 4))));
        if (by > 1) body.e = body.e * number(kind, 1 / by), size.grain += std::log2(by), size.most /= by;
      }
      size.most *= std::max(1.0, terms);
    } else if (which < 7) {
      m = monoid::maximum(kind);
    } else if (which < 9) {
      m = monoid::minimum(kind);
    } else {
      m = monoid::product(kind);
      if (scalar::is_float(kind)) body.e = scalar::unary(Op::Tanh, body.e), size = {false, 0, 1};
      else size.most = 1e18;
    }
    const bool extreme = which >= 5 && which < 9;
    if (!extreme && random_.chance(12)) {
      const Value v = d.fold(monoid::pair(m, monoid::maximum(kind)), {body.e, body.e});
      know(v, size);
      return know_total(tensor::sibling(v, 1), body.size);
    }
    const Value v = d.fold(m, {body.e});
    if (extreme) return know_total(v, size);
    narrow(v, size);
    know(v, size);
  }

  // The value with the infinities (or least integers) of empty reductions replaced.
  void know_total(Value v, Size size) {
    if (random_.chance(30)) b_.output("raw" + std::to_string(outputs_++), v);
    if (!scalar::is_float(tensor::kind(b_.graph, v))) {
      size.most = 1e18;
      return know(v, size);
    }
    Draft d = b_.draft(name());
    std::vector<Form> coords;
    for (const Form& e : tensor::extents(b_.graph, v)) coords.push_back(d.point("i" + std::to_string(coords.size()), e));
    const Expr value = d.read(v, coords);
    const Expr huge = scalar::binary(Op::Le, number(value.kind(), 1e30), scalar::unary(Op::Abs, value));
    know(d.map({scalar::select(huge, number(value.kind(), 0), value)}), size);
  }

  // Matrix products, batched or not, with and without domains, gathered rows and an epilogue.
  void contraction() {
    Draft d = b_.draft(name());
    Frame all;
    const bool batched = random_.chance(30);
    if (batched) add_points(d, all, 1);
    const size_t batch = all.index.size();
    add_points(d, all, 2);
    add_reduces(d, all, 1 + (random_.chance(20) ? 1 : 0));
    if (all.index.size() < batch + 3) return;
    const Kind kind = random_.chance(85) ? Kind::F32 : random_.chance(50) ? Kind::F64 : Kind::I32;
    Frame left, right;
    for (size_t i = 0; i < all.index.size(); ++i) {
      const bool point = i >= batch && i < batch + 2;
      if (!point || i == batch) add_index(left, all.index[i], all.extent[i]);
      if (!point || i == batch + 1) add_index(right, all.index[i], all.extent[i]);
    }
    if (random_.chance(25)) d.where(domain(d, all));
    const Typed a = settled(expression(d, left, kind, random_.chance(70) ? 0 : 1, true));
    const Typed b = settled(expression(d, right, kind, random_.chance(70) ? 0 : 1, true));
    Typed term{a.e * b.e, product_of(a.size, b.size)};
    if (random_.chance(30)) term.e = term.e * scalar::cast(number(Kind::F32, kind == Kind::I32 ? 1 : 0.5), kind), term.size.grain += 1;
    term = settled(term);
    term.size.most *= 64;
    term.size.settle();
    const Value v = d.fold(monoid::sum(kind), {term.e});
    know(v, term.size);
    if (!random_.chance(60)) return;
    Draft e = b_.draft(name());
    Frame f;
    std::vector<Form> coords;
    for (const Form& extent : tensor::extents(b_.graph, v)) {
      coords.push_back(e.point("i" + std::to_string(coords.size()), extent));
      add_index(f, coords.back(), extent);
    }
    const Expr product = e.read(v, coords);
    Typed more = expression(e, f, kind, 1, false);
    more = settled({product + more.e, sum_of(term.size, more.size)});
    if (kind == Kind::F32 && random_.chance(50)) more = {scalar::unary(random_.chance(50) ? Op::Tanh : Op::Sigmoid, more.e), {false, 0, 1}};
    finish_map(e, {more}, {});
  }

  // Sums over windows of an image with borders.
  void window() {
    const Form h = random_.pick(extents_), w = random_.pick(extents_), c = Form(1 + random_.below(3)), o = Form(1 + random_.below(9));
    if (nominal(h) * nominal(w) > 300) return map();
    const int taps = 1 + random_.below(3), stride = 1 + random_.below(2);
    const Value image = [&] {
      Draft d = b_.draft(name());
      Frame f;
      add_index(f, d.point("h", h), h), add_index(f, d.point("w", w), w), add_index(f, d.point("c", c), c);
      return d.map({moderate(real(d, f, Kind::F32, 1, false)).e});
    }();
    const Value weight = [&] {
      Draft d = b_.draft(name());
      Frame f;
      add_index(f, d.point("r", Form(taps)), Form(taps)), add_index(f, d.point("s", Form(taps)), Form(taps));
      add_index(f, d.point("c", c), c), add_index(f, d.point("o", o), o);
      return d.map({moderate(real(d, f, Kind::F32, 1, false)).e});
    }();
    Draft d = b_.draft(name());
    const Form i = d.point("i", h), j = d.point("j", w), to = d.point("o", o);
    const Form r = d.reduce("r", Form(taps)), s = d.reduce("s", Form(taps)), from = d.reduce("c", c);
    const Form y = Form(stride) * i + r - Form(1), x = Form(stride) * j + s - Form(1);
    const Formula guard = Formula::within(y, h) && Formula::within(x, w);
    const Expr pixel = d.read(image, {y, x, from}, guard);
    const bool optional = random_.chance(50);
    if (optional) d.where(guard);
    const Expr factor = d.read(weight, {r, s, from, to});
    const Expr value = optional ? pixel : scalar::select(Draft::present(pixel), pixel, b_.f32(0));
    know(d.fold(monoid::sum(Kind::F32), {value * factor * b_.f32(1.0 / 32)}), {false, 0, 64});
  }

  // m = max s, z = sum exp(s - m), o = sum exp(s - m) v / z over a product's scores, under masks.
  void weights() {
    const Form n = random_.pick(extents_), k = random_.pick(extents_), c = random_.pick(extents_), w = Form(1 + random_.below(6));
    if (std::max<int64_t>(1, nominal(n)) * std::max<int64_t>(1, nominal(k)) * std::max<int64_t>(1, nominal(c)) > 4 * options_.most_points) return map();
    const int shape = random_.below(5);
    const bool guarded = random_.chance(75);
    const auto where = [&](Draft& d, const Form& i, const Form& j) {
      if (shape == 1) d.where(Formula::less_equal(j, i));
      if (shape == 2) d.where(Formula::less_equal(j, i) && Formula::less(i, j + Form(3)));
      if (shape == 3) d.where(Formula::less_equal(j, i) || Formula::less(j, Form(2)));
    };
    const bool product = random_.chance(70), masked = random_.chance(35);
    Draft sd = b_.draft(name());
    Frame sf;
    add_index(sf, sd.point("i", n), n), add_index(sf, sd.point("j", k), k);
    Value s;
    if (product) {
      Frame left{{sf.index[0]}, {n}, 1}, right{{sf.index[1]}, {k}, 1};
      const Form r = sd.reduce("w", w);
      add_index(left, r, w), add_index(right, r, w);
      const Typed a = moderate(real(sd, left, Kind::F32, 0, false)), b = moderate(real(sd, right, Kind::F32, 0, false));
      s = sd.fold(monoid::sum(Kind::F32), {a.e * b.e * b_.f32(0.25)});
    } else {
      s = sd.map({moderate(real(sd, sf, Kind::F32, 1, false)).e});
    }
    const Expr least = b_.f32(-std::numeric_limits<double>::infinity());
    if (masked) {
      Draft d = b_.draft(name());
      Frame f;
      add_index(f, d.point("i", n), n), add_index(f, d.point("j", k), k);
      const Expr score = d.read(s, f.index);
      s = d.map({scalar::select(logical(d, f, 1, false).e, score, least)});
    }
    const auto folded = [&](auto body, const monoid::MonoidRef& monoid) {
      Draft d = b_.draft(name());
      const Form i = d.point("i", n), j = d.reduce("j", k);
      where(d, i, j);
      const Expr e = body(d, i, j);
      return d.fold(monoid, {e});
    };
    const Value m = folded([&](Draft& d, Form i, Form j) { return d.read(s, {i, j}); }, monoid::maximum(Kind::F32));
    const auto weight = [&](Draft& d, const Form& i, const Form& j) {
      const Expr at = d.read(s, {i, j}), most = d.read(m, {i}), e = scalar::exp(at - most);
      return guarded ? scalar::select(scalar::binary(Op::Eq, at, least), b_.f32(0), e) : e;
    };
    const Value z = folded(weight, monoid::sum(Kind::F32));
    Draft od = b_.draft(name());
    const Form i = od.point("i", n), cc = od.point("c", c), j = od.reduce("j", k);
    where(od, i, j);
    Frame vf;
    add_index(vf, j, k), add_index(vf, cc, c);
    const Expr norm = od.read(z, {i}), e = weight(od, i, j);
    const Expr p = guarded ? scalar::select(scalar::binary(Op::Eq, norm, b_.f32(0)), b_.f32(0), e / norm) : e / norm;
    const Typed v = moderate(real(od, vf, Kind::F32, 0, false));
    know(od.fold(monoid::sum(Kind::F32), {p * v.e}), {false, 0, 8});
  }

  // The best of the columns of a matrix product.
  void chosen() {
    const Form n = random_.pick(extents_), k = random_.pick(extents_), w = random_.pick(extents_);
    if (nominal(n) * nominal(k) * nominal(w) > 4 * options_.most_points) return map();
    Draft d = b_.draft(name());
    const Form i = d.point("i", n), j = d.point("j", k), r = d.reduce("w", w);
    Frame left{{i, r}, {n, w}, 1}, right{{j, r}, {k, w}, 1};
    const Typed a = real(d, left, Kind::F32, 0, false), b = real(d, right, Kind::F32, 0, false);
    Size size = product_of(a.size, b.size);
    size.most *= 41;
    size.settle();
    const Value s = d.fold(monoid::sum(Kind::F32), {a.e * b.e});
    know(s, size);
    if (!size.exact) return;
    Draft t = b_.draft(name());
    const Form at = t.point("i", n), slot = t.axis("slot", Form(1 + random_.below(4))), place = t.reduce("j", k);
    const int64_t slots = *t.node.indices[size_t(*slot.as_index())].extent.constant();
    if (random_.chance(30)) t.where(Formula::less_equal(place, at));
    const Expr value = t.read(s, {at, place});
    const Value v = t.fold(monoid::top_k(Kind::F32, int(slots), random_.chance(40)), {value, t.index(place)});
    know(tensor::sibling(v, 1), {true, 0, 41});
    know_total(v, size);
  }

  void scan() {
    Draft d = b_.draft(name());
    Frame f;
    add_points(d, f, random_.below(3));
    const auto e = fitting_extent(f);
    if (!e) return map();
    add_index(f, d.scan("t", *e, {random_.chance(30), random_.chance(30)}), *e);
    if (random_.chance(25)) d.where(domain(d, f));
    const int which = random_.below(6);
    const Kind kind = which == 4 ? Kind::I32 : random_.chance(85) ? Kind::F32 : Kind::F64;
    Typed x = settled(expression(d, f, kind, 1, true));
    if (which < 2) {
      const Typed a{scalar::unary(Op::Sigmoid, real(d, f, kind == Kind::I32 ? Kind::F32 : kind, 1, true).e), {}};
      if (random_.chance(30)) d.node.initial = {number(kind, 1), number(kind, 0.5)};
      const Value v = d.fold(monoid::affine(kind), {a.e, x.e});
      return know(tensor::sibling(v, 1), {false, 0, 8 * 64});
    }
    Size size = x.size;
    if (which == 5) {
      if (random_.chance(50)) d.node.initial = {number(kind, 0.25)};
      const Value v = d.fold(monoid::maximum(kind), {x.e});
      return know_total(v, size);
    }
    size.most = size.most * 64 + 1;
    if (random_.chance(30)) d.node.initial = {scalar::constant(b_.arena(), kind, 1)};
    const Value v = d.fold(monoid::sum(kind), {x.e});
    if (random_.chance(25)) {
      auto& node = std::get<tensor::Comprehension>(b_.graph.node(v.node));
      tensor::Output last = node.outputs[0];
      last.name += "_last";
      last.final_state = true;
      last.dims.clear();
      for (int id : node.with_role(tensor::Role::Point)) last.dims.push_back(id);
      node.outputs.push_back(last);
      know(tensor::sibling(v, 1), size);
    }
    know(v, size);
  }

  void scatter() {
    Draft d = b_.draft(name());
    Frame f;
    add_points(d, f, 1 + random_.below(2));
    if (f.index.empty()) return map();
    tensor::Scatter s;
    const Kind kind = random_.chance(75) ? Kind::F32 : Kind::I32;
    const Known* base = find(kind);
    std::vector<Form> extents;
    if (base && base->extents.size() == f.index.size() && base->domain.is_always() && !base->extents.empty() && random_.chance(60)) {
      extents = base->extents;
      s.base = base->value;
      s.type = tensor::type(b_.graph, base->value);
    } else {
      extents = f.extent;
      s.type = scalar::dtype_of(kind);
    }
    Size base_size = s.base ? base->size : Size{};
    const bool whole = s.base && random_.chance(40);  // without a monoid: a permutation, or a spread over the base
    for (size_t i = 0; i < f.index.size(); ++i) {
      if (whole) {
        s.coords.push_back(random_.chance(50) ? Form(2) * f.index[i] + Form(1) : f.extent[i] - Form(1) - f.index[i]);
      } else if (const auto key = i == 0 ? key_read(d, f) : std::nullopt) {
        s.coords.push_back(*key);
      } else {
        s.coords.push_back(random_.chance(30) ? Form::floor_div(f.index[i], Form(2)) : random_.chance(30) ? f.index[i] - Form(1) : f.index[i]);
      }
    }
    if (!whole && random_.chance(30)) d.where(domain(d, f));
    const Typed body = settled(expression(d, f, kind, 1, true));
    Size size = joined(body.size, base_size);
    if (!whole) {
      const int which = random_.below(4);
      s.monoid = which < 2 ? monoid::sum(kind) : which == 2 ? monoid::maximum(kind) : monoid::minimum(kind);
      if (which < 2) size.most = size.most * 1600 + base_size.most;
    }
    const bool extreme = s.monoid && !s.base && s.monoid->name != "sum";
    s.name = d.node.name;
    s.indices = d.node.indices;
    s.domain = d.node.domain;
    s.reads = d.node.reads;
    s.body = body.e;
    s.extents = extents;
    const Value v = b_.scatter(std::move(s));
    if (extreme) return know_total(v, size);
    know(v, size);
  }

  void logic() {
    Draft d = b_.draft(name());
    Frame f;
    add_points(d, f, random_.below(3));
    add_reduces(d, f, 1);
    if (random_.chance(40)) d.where(domain(d, f));
    const int which = random_.below(3);
    const Expr c = logical(d, f, 1, true).e;
    if (which == 2) return know(d.fold(monoid::sum(Kind::I64), {scalar::cast(c, Kind::I64)}), {true, 0, 4000});
    know(d.fold(which ? monoid::any() : monoid::all(), {c}), {});
  }

  // The place of the best element, or the best few.
  void best() {
    Draft d = b_.draft(name());
    Frame f;
    add_points(d, f, random_.below(3));
    const bool some = random_.chance(50);
    const int slots = 1 + random_.below(5);
    if (some) d.axis("slot", Form(slots));
    // The axis takes an index number between points and reduces.
    const Form e = fitting_extent(f).value_or(Form(2));
    add_index(f, d.reduce("r", e), e);
    if (random_.chance(35)) d.where(domain(d, f));
    const Kind kind = random_.chance(75) ? Kind::F32 : random_.chance(50) ? Kind::F64 : Kind::I32;
    Typed value = settled(expression(d, f, kind, 1, true));
    if (!value.size.exact) value = read(d, f, kind, true);
    if (!value.size.exact) value = {scalar::cast(d.index(f.index.back()), kind), {true, 0, 41}};
    const Expr place = d.index(f.index.back());
    if (some) {
      const Value v = d.fold(monoid::top_k(kind, slots, random_.chance(50)), {value.e, place});
      know(tensor::sibling(v, 1), {true, 0, 41});
      return know_total(v, value.size);
    }
    know(d.fold(random_.chance(60) ? monoid::arg_maximum(kind) : monoid::arg_minimum(kind), {value.e, place}), {true, 0, 41});
  }

  // ---- outputs ----

  void make_outputs() {
    std::vector<bool> updated(b_.graph.nodes.size());
    for (size_t v = values_.size(); v-- > 0 && outputs_ < 4;) {
      const Known& k = values_[v];
      if (!k.domain.is_always() || std::holds_alternative<tensor::Input>(b_.graph.node(k.value.node))) continue;
      if (outputs_ > 0 && !random_.chance(45)) continue;
      b_.output("out" + std::to_string(outputs_++), k.value);
      tensor::GraphOutput& o = b_.graph.outputs.back();
      if (o.type == DType::F32 && random_.chance(8)) o.type = random_.chance(50) ? DType::BF16 : DType::F16;
      if (!random_.chance(40)) continue;
      for (size_t n = 0; n < b_.graph.nodes.size(); ++n) {
        const auto* input = std::get_if<tensor::Input>(&b_.graph.nodes[n]);
        if (!input || updated[n] || input->strided || input->low || input->extents != k.extents || input->type != o.type) continue;
        o.updates = tensor::Tensor{int32_t(n)};
        updated[n] = true;
        break;
      }
    }
    if (b_.graph.outputs.empty()) {
      Draft d = b_.draft(name());
      Frame f;
      add_points(d, f, 1);
      const Typed t = moderate(real(d, f, Kind::F32, 1, false));
      b_.output("out", d.map({t.e}));
    }
  }

  const WideOptions options_;
  Random random_;
  Builder b_;
  Sample out_;
  std::vector<Form> extents_;
  std::vector<Known> values_;
  int next_name_ = 0;
  int outputs_ = 0;
};

}  // namespace

Sample generate_wide(const WideOptions& options) { return Generator(options).run(); }

}  // namespace lemma::random_graphs
