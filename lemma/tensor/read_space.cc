#include "lemma/tensor/read_space.h"

#include <algorithm>

#include "lemma/base/check.h"
#include "lemma/base/match.h"

namespace lemma::tensor {

using view::Answer;
using view::AtomKind;
using view::Form;
using view::Formula;
using view::Range;

namespace {

bool holds(const std::vector<int>& ids, int id) { return std::find(ids.begin(), ids.end(), id) != ids.end(); }

}  // namespace

ReadSpace::ReadSpace(const Graph& graph, const Node& node) : graph_(graph) {
  std::vector<int> initial;
  base::match(
      node, [](const Input&) { LEMMA_CHECK(false, "an input reads nothing"); },
      [&](const Comprehension& c) {
        name_ = c.name.empty() ? &c.outputs[0].name : &c.name;
        span_ = &c.span, indices_ = &c.indices, domain_ = &c.domain, reads_ = &c.reads;
        for (scalar::Expr e : scalar::reachable(c.initial)) {
          if (e.is(scalar::Op::Arg)) initial.push_back(int(e.payload()));
        }
      },
      [&](const Scatter& s) { name_ = &s.name, span_ = &s.span, indices_ = &s.indices, domain_ = &s.domain, reads_ = &s.reads; });
  for_domain_ = closed(domain_->ids(AtomKind::Data));
  for_initial_ = closed(initial);
}

// With the reads that coordinates and guards of those at hand use.
std::vector<int> ReadSpace::closed(std::vector<int> ids) const {
  for (size_t k = 0; k < ids.size(); ++k) {
    const Read& read = (*reads_)[size_t(ids[k])];
    std::vector<int> more = read.guard.ids(AtomKind::Data);
    for (const Form& f : read.coords) {
      for (int d : f.ids(AtomKind::Data)) more.push_back(d);
    }
    for (int d : more) {
      if (!holds(ids, d)) ids.push_back(d);
    }
  }
  return ids;
}

std::vector<ReadSpace::Access> ReadSpace::accesses() const {
  std::vector<int> all, points;
  for (size_t i = 0; i < indices_->size(); ++i) {
    const Role role = (*indices_)[i].role;
    all.push_back(int(i));
    if (role != Role::Scan && role != Role::Reduce) points.push_back(int(i));
  }
  std::vector<Access> out;
  for (size_t r = 0; r < reads_->size(); ++r) {
    const Read& read = (*reads_)[r];
    const Formula domain = holds(for_domain_, int(r)) ? without_data(*domain_) : *domain_;
    out.push_back({read, domain && read.guard, all});
    if (!holds(for_initial_, int(r))) continue;
    const auto at_start = [&](const view::Atom& a) -> std::optional<Form> {
      if (a.kind != AtomKind::Index || (*indices_)[size_t(a.id)].role != Role::Scan) return std::nullopt;
      return Form(0);
    };
    Read first = read;
    for (Form& f : first.coords) f = f.substitute(at_start);
    first.guard = first.guard.substitute(at_start);
    out.push_back({first, first.guard, points});
  }
  return out;
}

Range ReadSpace::range(const Form& f) const {
  return view::range(f, [&](const view::Atom& a) { return atom(a, {}); });
}

Range ReadSpace::atom(const view::Atom& a, const std::vector<int>& positive) const {
  if (a.kind == AtomKind::Size) {
    const Size& s = graph_.sizes[size_t(a.id)];
    if (s.value) return {*s.value, *s.value};
    return {holds(positive, a.id) ? std::max<int64_t>(1, s.low) : s.low, s.high};
  }
  if (a.kind == AtomKind::Index) {
    Range extent = range((*indices_)[size_t(a.id)].extent);
    if (extent.high) extent.high = std::max<int64_t>(0, *extent.high - 1);
    return {0, extent.high};
  }
  return data((*reads_)[size_t(a.id)].source);
}

Range ReadSpace::data(Value source) const {
  if (const auto* input = std::get_if<Input>(&graph_.node(source.node))) {
    Range out;
    if (input->low) out.low = range(*input->low).low;
    if (input->high) out.high = range(*input->high).high;
    if (out.high) out.high = *out.high - 1;
    if (out.low || out.high) return out;
  }
  switch (type(graph_, source)) {
    case scalar::DType::Bool: return {0, 1};
    case scalar::DType::U4: return {0, 15};
    case scalar::DType::I4: return {-8, 7};
    case scalar::DType::U8: return {0, 255};
    case scalar::DType::I8: return {-128, 127};
    case scalar::DType::U16: return {0, 65535};
    case scalar::DType::I16: return {-32768, 32767};
    case scalar::DType::U32: return {0, int64_t(0xFFFFFFFF)};
    case scalar::DType::I32: return {-int64_t(0x80000000), int64_t(0x7FFFFFFF)};
    default: return {};
  }
}

Answer ReadSpace::implied(const Formula& given, const Formula& claim, const std::vector<int>& positive) const {
  if (claim.is_always()) return Answer::Yes;
  Formula all = given;
  for (size_t i = 0; i < indices_->size(); ++i) {  // symbolic extents bound their indices
    const Form& extent = (*indices_)[i].extent;
    if (!extent.is_constant()) all = all && Formula::less(Form::index(int(i)), extent);
  }
  return view::implies(all, claim, [&](const view::Atom& a) { return atom(a, positive); },
                       [&](int s) { return graph_.sizes[size_t(s)].divisor; });
}

bool ReadSpace::spans(const Form& f, const Form& extent) const {
  const auto i = f.as_index();
  return i && (*indices_)[size_t(*i)].extent == extent;
}

}  // namespace lemma::tensor
