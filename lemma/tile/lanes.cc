#include "lemma/tile/lanes.h"

#include <algorithm>

namespace lemma::tile {
namespace {

using view::Atom;
using view::AtomKind;
using view::Form;

// The columns that stand anywhere in `form`, each once.
std::vector<int> columns_in(const Form& form, const ColumnOf& column_of) {
  std::vector<int> out;
  for (AtomKind kind : {AtomKind::Index, AtomKind::Data}) {
    for (int id : form.ids(kind)) {
      if (const int c = column_of({kind, id, nullptr}); c >= 0) out.push_back(c);
    }
  }
  return out;
}

}  // namespace

LaneForm::LaneForm(const Form& form, const ColumnOf& column_of) : form_(form), rest_(form), column_of_(column_of) {
  // Data are renamed to indices of their own so that they split off as variables do.
  constexpr int kFirst = 1 << 29;
  rest_ = form.substitute([&](const Atom& a) -> std::optional<Form> {
    const int c = a.kind == AtomKind::Size ? -1 : column_of(a);
    if (c < 0) return std::nullopt;
    return Form::index(kFirst + c);
  });
  for (int c : columns_in(form, column_of)) {
    const auto split = rest_.split(kFirst + c);
    if (!split) {
      affine_ = false;
      break;
    }
    for (int id : split->coefficient.ids(AtomKind::Index)) affine_ = affine_ && id < kFirst;
    parts_.push_back({c, split->coefficient});
    rest_ = split->rest;
  }
}

void LaneForm::begin(const Form::Lookup& fixed) {
  fixed_ = fixed;
  if (!affine_) return;
  base_ = rest_.evaluate(fixed);
  for (Part& p : parts_) p.value = p.coefficient.evaluate(fixed);
}

void LaneForm::evaluate(const Lanes& lanes, int64_t* out) const {
  if (!affine_) {
    for (int l = 0; l < lanes.count; ++l) {
      out[l] = form_.evaluate([&](const Atom& a) {
        const int c = a.kind == AtomKind::Size ? -1 : column_of_(a);
        return c < 0 ? fixed_(a) : lanes.columns[size_t(c)][size_t(l)];
      });
    }
    return;
  }
  std::fill(out, out + lanes.count, base_);
  for (const Part& p : parts_) {
    const int64_t* column = lanes.columns[size_t(p.column)].data();
    // Wraps as Form::evaluate does.
    for (int l = 0; l < lanes.count; ++l) out[l] = int64_t(uint64_t(out[l]) + uint64_t(p.value) * uint64_t(column[l]));
  }
}

LaneFormula::LaneFormula(const view::Formula& formula, const ColumnOf& column_of) : always_(formula.is_always()) {
  for (const view::Conjunction& c : formula.cases()) {
    std::vector<Constraint> all;
    for (const view::Constraint& k : c) {
      all.push_back({LaneForm(k.form, column_of), k.relation, columns_in(k.form, column_of)});
    }
    cases_.push_back(std::move(all));
  }
}

void LaneFormula::begin(const Form::Lookup& fixed) {
  for (auto& all : cases_) {
    for (Constraint& k : all) k.form.begin(fixed);
  }
}

void LaneFormula::evaluate(const Lanes& lanes, const std::vector<char>& known, char* out) {
  const size_t count = size_t(lanes.count);
  if (always_) {
    std::fill(out, out + count, char(1));
    return;
  }
  values_.resize(count);
  case_.resize(count);
  std::fill(out, out + count, char(0));
  for (const auto& all : cases_) {
    std::fill(case_.begin(), case_.end(), char(1));
    for (const Constraint& k : all) {
      const bool ready = std::all_of(k.columns.begin(), k.columns.end(), [&](int c) { return known[size_t(c)] != 0; });
      if (!ready) continue;
      k.form.evaluate(lanes, values_.data());
      for (size_t l = 0; l < count; ++l) {
        case_[l] = char(case_[l] & char(k.relation == view::Relation::Zero ? values_[l] == 0 : values_[l] >= 0));
      }
    }
    for (size_t l = 0; l < count; ++l) out[l] = char(out[l] | case_[l]);
  }
}

}  // namespace lemma::tile
