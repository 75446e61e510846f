#include "lemma/tile/regions.h"

#include <utility>

#include "lemma/tile/space.h"

namespace lemma::tile {

using base::Result;
using view::Form;

namespace {

// The extent that axis i of `a` and axis j of `b` share.
Result<Form> common(const Program& program, const std::string& what, const Region& a, size_t i, const Region& b, size_t j) {
  const RegionAxis& x = a.axes[i];
  const RegionAxis& y = b.axes[j];
  if (x.extent == y.extent) return x.extent;
  const Buffer& left = program.buffers[size_t(a.buffer)];
  const Buffer& right = program.buffers[size_t(b.buffer)];
  const bool x_follows = !x.stated && is_global(left.space), y_follows = !y.stated && is_global(right.space);
  if (x_follows && !y_follows) return y.extent;
  if (y_follows && !x_follows) return x.extent;
  view::Names names;
  names.index = [&](int v) { return program.variables[size_t(v)]; };
  names.size = [&](int s) { return program.sizes[size_t(s)].name; };
  names.data = [](int) { return std::string("?"); };
  return base::invalid(what + ": `" + left.name + "` has the extent " + view::print(x.extent, names) + " there, `" + right.name + "` " + view::print(y.extent, names),
                       {}, "state the part: `start +: extent`");
}

}  // namespace

Access Region::at(const std::vector<Form>& positions) const {
  Access out{buffer, base, {}};
  for (size_t i = 0; i < axes.size(); ++i) {
    Form& c = out.coords[size_t(axes[i].dimension)];
    c = c + positions[i];
  }
  return out;
}

Region whole(int buffer, const Program& program) {
  Region out;
  out.buffer = buffer;
  for (const Form& extent : program.buffers[size_t(buffer)].extents) {
    out.axes.push_back({int(out.base.size()), extent, false});
    out.base.push_back(Form(0));
  }
  return out;
}

Region transposed(Region region) {
  std::swap(region.axes[region.axes.size() - 1], region.axes[region.axes.size() - 2]);
  return region;
}

std::vector<Form> fresh_points(Program& program, const std::vector<Form>& extents, std::vector<Range>& out) {
  static constexpr const char* kNames[] = {"i", "j", "k", "l"};
  std::vector<Form> positions;
  for (size_t i = 0; i < extents.size(); ++i) {
    const Var v = Var(program.variables.size());
    program.variables.push_back(i < std::size(kNames) ? kNames[i] : "i" + std::to_string(i));
    out.push_back({v, extents[i]});
    positions.push_back(Form::index(v));
  }
  return positions;
}

Result<Copy> copy_of(Program& program, const Region& from, const Region& to) {
  if (from.axes.size() != to.axes.size()) {
    return base::invalid("the source has " + std::to_string(from.axes.size()) + " dimensions, the target " + std::to_string(to.axes.size()), {},
                         "a position alone, as in x[b, 0 +: 64], leaves a dimension out");
  }
  Copy s;
  std::vector<Form> extents;
  for (size_t i = 0; i < from.axes.size(); ++i) {
    LEMMA_TRY(Form extent, common(program, "the two sides disagree in dimension " + std::to_string(i), from, i, to, i));
    extents.push_back(std::move(extent));
  }
  const std::vector<Form> positions = fresh_points(program, extents, s.box);
  s.from = from.at(positions);
  s.to = to.at(positions);
  return s;
}

Result<Gemm> gemm_of(Program& program, const Region& acc, const Region& a, const Region& b, bool accumulate) {
  for (const Region* r : {&acc, &a, &b}) {
    if (r->axes.size() == 2) continue;
    return base::invalid("`" + program.buffers[size_t(r->buffer)].name + "` has " + std::to_string(r->axes.size()) + " dimensions here, and a product is of matrices", {},
                         "take a part with two: x[b, .., ..]");
  }
  LEMMA_TRY(const Form m, common(program, "the rows disagree", acc, 0, a, 0));
  LEMMA_TRY(const Form n, common(program, "the columns disagree", acc, 1, b, 1));
  LEMMA_TRY(const Form k, common(program, "the summed dimension disagrees", a, 1, b, 0));
  std::vector<Range> all;
  const std::vector<Form> p = fresh_points(program, {m, n, k}, all);
  Gemm s;
  s.m = all[0];
  s.n = all[1];
  s.k = all[2];
  s.acc = acc.at({p[0], p[1]});
  s.a = a.at({p[0], p[2]});
  s.b = b.at({p[2], p[1]});
  s.accumulate = accumulate;
  return s;
}

Map fill_of(Program& program, const Region& to, scalar::Expr value) {
  Map s;
  std::vector<Form> extents;
  for (const RegionAxis& axis : to.axes) extents.push_back(axis.extent);
  const std::vector<Form> positions = fresh_points(program, extents, s.points);
  s.stores.push_back({to.at(positions), value, {}, {}});
  return s;
}

}  // namespace lemma::tile
