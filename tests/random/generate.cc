#include "tests/random/generate.h"

#include <functional>
#include <limits>
#include <string>

#include "lemma/tensor/builder.h"

namespace lemma::random_graphs {
namespace {

using scalar::Expr;
using scalar::Kind;
using scalar::Op;
using tensor::Builder;
using tensor::Draft;
using tensor::Value;
using view::Form;
using view::Formula;

// A small generator of its own: standard distributions differ between libraries.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 2654435761u + 12345) {}
  int below(int n) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return int((state_ >> 11) % uint64_t(n));
  }
  bool chance(int percent) { return below(100) < percent; }
  template <class T>
  const T& pick(const std::vector<T>& list) { return list[size_t(below(int(list.size())))]; }

 private:
  uint64_t state_;
};

class Generator {
 public:
  explicit Generator(const GenerateOptions& options) : options_(options), random_(options.seed), b_("random") {}

  tensor::Graph run() {
    make_extents();
    make_inputs();
    for (int s = 0; s < options_.steps; ++s) step();
    const size_t count = values_.size();
    for (size_t v = count; v-- > 0 && outputs_ < 3;) {
      if (v + 1 == count || random_.chance(40)) b_.output("out" + std::to_string(outputs_++), values_[v].value);
    }
    return b_.finish();
  }

 private:
  // Float values of the graph that exist everywhere.
  struct Known {
    Value value;
    std::vector<Form> extents;
  };

  void make_extents() {
    for (int e = 0; e < 3; ++e) {
      extents_.push_back(options_.symbolic ? b_.size(std::string(1, char('L' + e))) : Form(1 + random_.below(5)));
    }
    if (!options_.symbolic && random_.chance(6)) extents_[2] = Form(0);
  }

  void make_inputs() {
    const int count = 2 + random_.below(2);
    for (int i = 0; i < count; ++i) {
      std::vector<Form> extents;
      const int rank = 1 + random_.below(3);
      for (int d = 0; d < rank; ++d) extents.push_back(random_.pick(extents_));
      const Value v = b_.input("x" + std::to_string(i), extents, random_.chance(15) ? scalar::DType::BF16 : scalar::DType::F32);
      values_.push_back({v, extents});
    }
    if (options_.gathers) {
      keys_ = b_.input("key", {extents_[0]}, scalar::DType::I32);
      auto& input = std::get<tensor::Input>(b_.graph.node(keys_.node));
      input.low = Form(0);
      input.high = Form(4);
      mask_ = b_.input("mask", {extents_[0], extents_[1]}, scalar::DType::Bool);
    }
  }

  std::string name() { return "v" + std::to_string(next_name_++); }
  void know(Value v) { values_.push_back({v, tensor::extents(b_.graph, v)}); }

  // Indices of the draft, by extent.
  struct Frame {
    std::vector<Form> index;
    std::vector<Form> extent;
    size_t points = 0;
  };

  Frame add_points(Draft& d, int count) {
    Frame f;
    for (int i = 0; i < count; ++i) {
      const Form e = random_.pick(extents_);
      f.index.push_back(d.point("i" + std::to_string(i), e));
      f.extent.push_back(e);
    }
    f.points = f.index.size();
    return f;
  }
  void add_reduces(Draft& d, Frame& f, int count) {
    for (int i = 0; i < count; ++i) {
      const Form e = random_.pick(extents_);
      f.index.push_back(d.reduce("r" + std::to_string(i), e));
      f.extent.push_back(e);
    }
  }

  // A read of a value at indices of the frame; guarded wherever it might leave the value.
  Expr read(Draft& d, const Frame& f) {
    const Known known = values_.size() > 3 && random_.chance(60) ? values_[values_.size() - 1 - size_t(random_.below(3))]
                                                                  : random_.pick(values_);
    std::vector<Form> coords;
    Formula guard;
    for (const Form& extent : known.extents) {
      std::vector<size_t> fits;
      for (size_t i = 0; i < f.index.size(); ++i) {
        if (f.extent[i] == extent) fits.push_back(i);
      }
      Form c;
      if (!fits.empty() && random_.chance(85)) {
        c = f.index[random_.pick(fits)];
      } else if (!f.index.empty()) {
        c = random_.pick(f.index);
        if (random_.chance(40)) c = c + random_.pick(f.index) - Form(1);
        if (random_.chance(20)) c = Form(2) * c;
        if (random_.chance(15)) c = Form::floor_div(c, Form(2));
        guard = guard && Formula::within(c, extent);
      } else {
        guard = guard && Formula::within(c, extent);
      }
      coords.push_back(c);
    }
    if (options_.gathers && !coords.empty() && random_.chance(12)) {
      for (size_t i = 0; i < f.index.size(); ++i) {
        if (!(f.extent[i] == extents_[0])) continue;
        coords[0] = Draft::data(d.read(keys_, {f.index[i]}));
        guard = guard && Formula::within(coords[0], known.extents[0]);
        break;
      }
    }
    const bool guarded = !guard.is_always();
    const Expr value = d.read(known.value, coords, guard);
    return guarded ? scalar::select(Draft::present(value), value, b_.f32(random_.chance(70) ? 0 : 1)) : value;
  }

  Expr condition(Draft& d, const Frame& f) {
    const auto index = [&] {
      return f.index.empty() ? b_.i64(random_.below(3)) : d.index(random_.pick(f.index));
    };
    if (options_.gathers && f.index.size() >= 2 && f.extent[0] == extents_[0] && f.extent[1] == extents_[1] && random_.chance(40)) {
      return d.read(mask_, {f.index[0], f.index[1]});
    }
    const Expr a = index(), c = random_.chance(60) ? index() : b_.i64(random_.below(4));
    const Op op = random_.pick(std::vector<Op>{Op::Le, Op::Lt, Op::Eq, Op::Ne});
    return scalar::binary(op, a, c);
  }

  Expr expression(Draft& d, const Frame& f, int depth) {
    if (depth == 0 || random_.chance(15)) {
      if (random_.chance(12)) return b_.f32(random_.below(5) * 0.5 - 1);
      if (random_.chance(8) && !f.index.empty()) return scalar::cast(d.index(random_.pick(f.index)), Kind::F32);
      return read(d, f);
    }
    const Expr a = expression(d, f, depth - 1);
    switch (random_.below(12)) {
      case 0: case 1: return a + expression(d, f, depth - 1);
      case 2: return a - expression(d, f, depth - 1);
      case 3: case 4: case 5: return scalar::unary(Op::Tanh, a) * expression(d, f, depth - 1);
      case 6: return scalar::unary(Op::Tanh, a);
      case 7: return scalar::max(a, expression(d, f, depth - 1));
      case 8: {
        const Expr holds = condition(d, f);
        return scalar::select(holds, a, b_.f32(0));
      }
      case 9: return scalar::exp(-scalar::unary(Op::Abs, a));
      case 10: return a / b_.f32(4);
      default: return scalar::unary(Op::Sigmoid, a);
    }
  }

  Formula domain(const Frame& f) {
    if (f.index.size() < 2) return {};
    const Form a = f.index.back(), c = f.index[size_t(random_.below(int(f.index.size()) - 1))];
    switch (random_.below(4)) {
      case 0: return Formula::less_equal(a, c);
      case 1: return Formula::less_equal(a, c) && Formula::less(c, a + Form(3));
      case 2: return Formula::equal(a, c) || Formula::less(a + Form(1), c);
      default: return Formula::less(a, Form(2));
    }
  }

  void step() {
    switch (random_.below(10)) {
      case 0: case 1: case 2: return map();
      case 3: case 4: case 5: return reduction();
      case 6: return weights();
      case 7: return random_.chance(34) ? distance() : random_.chance(50) ? moments() : siblings();
      case 8: return options_.scans ? scan() : map();
      default: return best();
    }
  }

  void map() {
    Draft d = b_.draft(name());
    const Frame f = add_points(d, random_.below(4));
    std::vector<Expr> bodies{bounded(expression(d, f, 2))};
    if (random_.chance(15)) bodies.push_back(bounded(expression(d, f, 1)));
    const size_t count = bodies.size();
    const Value v = d.map(std::move(bodies));
    for (size_t o = 0; o < count; ++o) know(tensor::sibling(v, int(o)));
  }

  // Keeps values moderate through any number of steps.
  Expr bounded(Expr e) { return random_.chance(50) ? scalar::unary(Op::Tanh, e) : e * b_.f32(0.5); }

  void reduction() {
    Draft d = b_.draft(name());
    Frame f = add_points(d, random_.below(3));
    add_reduces(d, f, 1 + random_.below(2));
    if (random_.chance(35)) d.where(domain(f));
    Expr body = expression(d, f, 2);
    if (random_.chance(20)) body = scalar::select(condition(d, f), body, b_.f32(0));
    const int which = random_.below(8);
    if (which < 5) return know(d.fold(monoid::sum(Kind::F32), {body * b_.f32(0.25)}));
    if (which == 5) return know(total(d.fold(monoid::maximum(Kind::F32), {body})));
    if (which == 6) return know(total(d.fold(monoid::minimum(Kind::F32), {body})));
    know(d.fold(monoid::product(Kind::F32), {scalar::unary(Op::Tanh, body)}));
  }

  // The value with its infinities (of empty reductions) replaced by 0.
  Value total(Value v) {
    Draft d = b_.draft(name());
    Frame f;
    std::vector<Form> coords;
    for (const Form& e : tensor::extents(b_.graph, v)) coords.push_back(d.point("i" + std::to_string(coords.size()), e));
    const Expr value = d.read(v, coords);
    const Expr huge = scalar::binary(Op::Le, b_.f32(1e30), scalar::unary(Op::Abs, value));
    return d.map({scalar::select(huge, b_.f32(0), value)});
  }

  // m = max s, e = exp(s - m), z = sum e, p = e / z, o = sum p*v, guarded or not, with a domain or not.
  void weights() {
    const Form n = random_.pick(extents_), k = random_.pick(extents_), c = random_.pick(extents_);
    const bool causal = random_.chance(50), masked = random_.chance(40), guarded = random_.chance(70) || masked || causal;
    Draft sd = b_.draft(name());
    Frame sf{{sd.point("i", n), sd.point("j", k)}, {n, k}, 2};
    Expr score = expression(sd, sf, 2);
    const Expr least = b_.f32(-std::numeric_limits<double>::infinity());
    if (masked) score = scalar::select(condition(sd, sf), score, least);
    const Value s = sd.map({score});

    const auto folded = [&](const std::string& name, const std::function<Expr(Draft&, Form, Form)>& body,
                            const monoid::MonoidRef& monoid) {
      Draft d = b_.draft(name);
      const Form i = d.point("i", n), j = d.reduce("j", k);
      if (causal) d.where(Formula::less_equal(j, i));
      const Expr e = body(d, i, j);
      return d.fold(monoid, {e});
    };
    const Value m = folded(name(), [&](Draft& d, Form i, Form j) { return d.read(s, {i, j}); }, monoid::maximum(Kind::F32));
    const auto weight = [&](Draft& d, const Form& i, const Form& j) {
      const Expr at = d.read(s, {i, j});
      const Expr max = d.read(m, {i}), e = scalar::exp(at - max);
      return guarded ? scalar::select(scalar::binary(Op::Eq, at, least), b_.f32(0), e) : e;
    };
    const Value z = folded(name(), weight, monoid::sum(Kind::F32));
    Draft od = b_.draft(name());
    const Form i = od.point("i", n), cc = od.point("c", c), j = od.reduce("j", k);
    if (causal) od.where(Formula::less_equal(j, i));
    Frame vf{{j, cc}, {k, c}, 2};
    const Expr norm = od.read(z, {i}), w = weight(od, i, j);
    const Expr p = guarded ? scalar::select(scalar::binary(Op::Eq, norm, b_.f32(0)), b_.f32(0), w / norm) : w / norm;
    const Expr g = random_.chance(80) ? p * read(od, vf) : p;
    know(total_or(od.fold(monoid::sum(Kind::F32), {g}), guarded));
    if (random_.chance(40)) {
      Draft l = b_.draft(name());
      const Form at = l.point("i", n);
      const Expr max = l.read(m, {at}), sum = l.read(z, {at});
      know(total(l.map({max + scalar::unary(Op::Log, sum)})));
    }
  }

  Value total_or(Value v, bool already) { return already ? v : total(v); }

  void distance() {
    const Form n = random_.pick(extents_), m = random_.pick(extents_), k = random_.pick(extents_);
    Draft d = b_.draft(name());
    const Form i = d.point("i", n), j = d.point("j", m), c = d.reduce("c", k);
    const Frame left{{i, c}, {n, k}, 2}, right{{j, c}, {m, k}, 2};
    const Expr a = read(d, left), b = read(d, right), x = a - b;
    know(d.fold(monoid::sum(Kind::F32), {x * x}));
  }

  void moments() {
    const Form n = random_.pick(extents_), k = Form(1 + random_.below(5));
    const Value x = [&] {
      Draft d = b_.draft(name());
      const Frame f{{d.point("i", n), d.point("j", k)}, {n, k}, 2};
      return d.map({expression(d, f, 1)});
    }();
    const Expr count = b_.f32(double(*k.constant()));
    Draft sd = b_.draft(name());
    const Form i = sd.point("i", n), j = sd.reduce("j", k);
    const Value mean = sd.fold(monoid::sum(Kind::F32), {sd.read(x, {i, j}) / count});
    Draft vd = b_.draft(name());
    const Form vi = vd.point("i", n), vj = vd.reduce("j", k);
    const Expr element = vd.read(x, {vi, vj}), centred = element - vd.read(mean, {vi});
    const Value variance = vd.fold(monoid::sum(Kind::F32), {centred * centred / count});
    Draft y = b_.draft(name());
    const Form yi = y.point("i", n), yj = y.point("j", k);
    const Expr at = y.read(x, {yi, yj}), centre = y.read(mean, {yi}), spread = y.read(variance, {yi});
    know(y.map({(at - centre) * scalar::unary(Op::Rsqrt, spread + b_.f32(0.1))}));
  }

  // Two reductions of one value, and one whose terms split.
  void siblings() {
    const Known known = random_.pick(values_);
    if (known.extents.size() < 2) return map();
    const size_t points = known.extents.size() - 1;
    const auto fold = [&](int which) {
      Draft d = b_.draft(name());
      std::vector<Form> coords;
      for (size_t i = 0; i < points; ++i) coords.push_back(d.point("i" + std::to_string(i), known.extents[i]));
      coords.push_back(d.reduce("r", known.extents.back()));
      const Expr x = d.read(known.value, coords);
      if (which == 0) return d.fold(monoid::sum(Kind::F32), {x});
      if (which == 1) return d.fold(monoid::sum(Kind::F32), {x * x});
      if (which == 2) return total(d.fold(monoid::maximum(Kind::F32), {x}));
      const Expr i = scalar::cast(d.index(coords[0]), Kind::F32);
      return d.fold(monoid::sum(Kind::F32), {x - b_.f32(0.5) + i});
    };
    const int first = random_.below(4), second = (first + 1 + random_.below(3)) % 4;
    const Value a = fold(first), c = fold(second);
    know(bounded_value(a));
    know(bounded_value(c));
  }

  Value bounded_value(Value v) {
    Draft d = b_.draft(name());
    std::vector<Form> coords;
    for (const Form& e : tensor::extents(b_.graph, v)) coords.push_back(d.point("i" + std::to_string(coords.size()), e));
    return d.map({scalar::unary(Op::Tanh, d.read(v, coords))});
  }

  void scan() {
    Draft d = b_.draft(name());
    Frame f = add_points(d, random_.below(2));
    const Form e = random_.pick(extents_);
    f.index.push_back(d.scan("t", e, {random_.chance(30), random_.chance(30)}));
    f.extent.push_back(e);
    if (random_.chance(20)) d.where(domain(f));
    const bool affine = random_.chance(40);
    const Expr x = expression(d, f, 1) * b_.f32(0.25);
    if (!affine) return know(d.fold(monoid::sum(Kind::F32), {x}));
    const Value v = d.fold(monoid::affine(Kind::F32), {scalar::unary(Op::Sigmoid, expression(d, f, 1)), x});
    know(tensor::sibling(v, 1));
  }

  // The place of the best element, or the best few.
  void best() {
    Draft d = b_.draft(name());
    Frame f = add_points(d, random_.below(2));
    const bool some = random_.chance(50);
    if (some) d.axis("slot", Form(2));
    add_reduces(d, f, 1);
    if (random_.chance(30)) d.where(domain(f));
    const Expr value = expression(d, f, 1), place = d.index(f.index.back());
    if (some) {
      know(total(d.fold(monoid::top_k(Kind::F32, 2, random_.chance(50)), {value, place})));
      return;
    }
    const Value v = d.fold(monoid::arg_maximum(Kind::F32), {value, place});
    Draft cast = b_.draft(name());
    std::vector<Form> coords;
    for (const Form& e : tensor::extents(b_.graph, v)) coords.push_back(cast.point("i" + std::to_string(coords.size()), e));
    const Expr index = cast.read(v, coords);
    know(cast.map({scalar::cast(index, Kind::F32) * b_.f32(0.25)}));
  }

  const GenerateOptions options_;
  Random random_;
  Builder b_;
  std::vector<Form> extents_;
  std::vector<Known> values_;
  Value keys_, mask_;
  int next_name_ = 0;
  int outputs_ = 0;
};

}  // namespace

tensor::Graph generate(const GenerateOptions& options) { return Generator(options).run(); }

}  // namespace lemma::random_graphs
