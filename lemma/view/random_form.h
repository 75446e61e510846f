// Random forms and formulas for tests, each beside what it must mean.
#pragma once

#include <functional>
#include <random>
#include <utility>
#include <vector>

#include "lemma/view/floor.h"
#include "lemma/view/formula.h"

namespace lemma::view::test {

using Random = std::mt19937_64;
inline int below(Random& random, int n) { return int(random() % uint64_t(n)); }

// Values of index 0..2, size 0..1 (S, never 0) and data 0..1.
struct Point {
  int64_t index[3] = {}, size[2] = {}, data[2] = {};
  int64_t operator()(const Atom& a) const {
    return a.kind == AtomKind::Index ? index[a.id] : a.kind == AtomKind::Size ? size[a.id] : data[a.id];
  }
};
inline Point random_point(Random& random) {
  Point p;
  for (int64_t& v : p.index) v = below(random, 41) - 20;
  for (int64_t& v : p.size) v = below(random, 9) + 1;
  for (int64_t& v : p.data) v = below(random, 21) - 10;
  return p;
}

using Meaning = std::function<int64_t(const Point&)>;
struct Meant {
  Form form;
  Meaning meaning;
};

inline Meant random_leaf(Random& random, bool data) {
  const int id = below(random, 3);
  switch (below(random, data ? 5 : 4)) {
    case 0: { const int64_t c = below(random, 13) - 6; return {Form(c), [c](const Point&) { return c; }}; }
    case 1: return {Form::size(id % 2), [id](const Point& p) { return p.size[id % 2]; }};
    case 4: return {Form::data(id % 2), [id](const Point& p) { return p.data[id % 2]; }};
    default: return {Form::index(id), [id](const Point& p) { return p.index[id]; }};
  }
}

// Denominators: constants of either sign and 0, sizes, products of them.
inline Meant random_denominator(Random& random) {
  const int64_t c = below(random, 17) - 6;
  const int id = below(random, 2);
  switch (below(random, 6)) {
    case 0: return {Form::size(id), [id](const Point& p) { return p.size[id]; }};
    case 1: return {Form(2) * Form::size(id), [id](const Point& p) { return 2 * p.size[id]; }};
    case 2: return {Form::size(0) * Form::size(1), [](const Point& p) { return p.size[0] * p.size[1]; }};
    case 3: return {-Form::size(id), [id](const Point& p) { return -p.size[id]; }};
    default: return {Form(c), [c](const Point&) { return c; }};
  }
}

inline Meant random_form(Random& random, int operations, bool data = true) {
  std::vector<Meant> pool;
  for (int i = 0; i < 4; ++i) pool.push_back(random_leaf(random, data));
  for (int i = 0; i < operations; ++i) {
    const Meant a = pool[pool.size() - 1 - size_t(below(random, 3))], b = pool[size_t(below(random, int(pool.size())))];
    const Meaning f = a.meaning, g = b.meaning;
    const Meant d = random_denominator(random);
    const Meaning h = d.meaning;
    switch (below(random, 7)) {
      case 0: case 1: pool.push_back({a.form + b.form, [f, g](const Point& p) { return f(p) + g(p); }}); break;
      case 2: pool.push_back({a.form - b.form, [f, g](const Point& p) { return f(p) - g(p); }}); break;
      case 3:
        if (a.form.terms().size() * b.form.terms().size() > 12) continue;
        pool.push_back({a.form * b.form, [f, g](const Point& p) { return f(p) * g(p); }});
        break;
      case 4: case 5:
        pool.push_back({Form::floor_div(a.form, d.form), [f, h](const Point& p) { return floor_quotient(f(p), h(p)); }});
        break;
      default:
        pool.push_back({Form::mod(a.form, d.form), [f, h](const Point& p) {
                          return h(p) == 0 ? 0 : f(p) - h(p) * floor_quotient(f(p), h(p));
                        }});
    }
  }
  return pool.back();
}

// A random formula beside its meaning.
struct MeantFormula {
  Formula formula;
  std::function<bool(const Point&)> meaning;
};

inline MeantFormula random_formula(Random& random, int operations) {
  std::vector<MeantFormula> pool;
  for (int k = 0; k < 3; ++k) {
    const Meant f = random_form(random, 1);
    const auto g = f.meaning;
    if (below(random, 3) == 0) pool.push_back({Formula::zero(f.form), [g](const Point& p) { return g(p) == 0; }});
    else pool.push_back({Formula::non_negative(f.form), [g](const Point& p) { return g(p) >= 0; }});
  }
  for (int k = 0; k < operations; ++k) {
    const MeantFormula a = pool[size_t(below(random, int(pool.size())))], b = pool[pool.size() - 1];
    const auto f = a.meaning, g = b.meaning;
    switch (below(random, 3)) {
      case 0: pool.push_back({a.formula && b.formula, [f, g](const Point& p) { return f(p) && g(p); }}); break;
      case 1: pool.push_back({a.formula || b.formula, [f, g](const Point& p) { return f(p) || g(p); }}); break;
      default: pool.push_back({!a.formula, [f](const Point& p) { return !f(p); }});
    }
    if (pool.back().formula.cases().size() > 30) pool.pop_back();
  }
  return pool.back();
}

inline Names plain_names() {
  return {[](int i) { return std::string(1, char('i' + i)); }, [](int s) { return std::string(1, char('S' + s)); },
          [](int d) { return "d" + std::to_string(d); }};
}

}  // namespace lemma::view::test
