#include "lemma/tile/passes/distribute.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "lemma/base/check.h"
#include "lemma/base/match.h"
#include "lemma/layout/algebra.h"
#include "lemma/layout/distribute.h"
#include "lemma/layout/fragment.h"
#include "lemma/layout/query.h"
#include "lemma/tile/edit.h"
#include "lemma/tile/fragments.h"
#include "lemma/tile/matrix_unit.h"

namespace lemma::tile {
namespace {

using layout::Axis;
using layout::Point;

constexpr int kLanes = 32;

// A statement over points, seen by its accesses to fragments.
struct Visit {
  std::vector<Range> points;
  std::vector<const Access*> accesses;   // to fragments
  size_t folded = 0;                     // the last so many points are reduced
};

class Distributor {
 public:
  Distributor(Program& program, Kernel& kernel, const ThreadOptions& options, std::vector<std::string>& notes)
      : program_(program), kernel_(kernel), options_(options), notes_(notes) {}

  void run() {
    collect(kernel_.body);
    if (fragments_.empty()) return;
    const int threads = kernel_.hints.threads ? kernel_.hints.threads : kernel_.hints.warps ? kernel_.hints.warps * kLanes : options_.threads;
    warps_ = threads / kLanes;
    if (warps_ < 1 || !layout::is_power_of_two(warps_)) {
      notes_.push_back("the kernel '" + kernel_.name + "': no fragments in registers, as " + std::to_string(threads) +
                       " threads are no power of two of warps");
      return;
    }
    for (int b : fragments_) {
      if (!regular_shape(buffer(b).extents)) share(b, "its extents are not constant powers of two");
    }
    // Each round starts anew without what became shared in the last, so it ends.
    do {
      placed_.clear();
      changed_ = false;
      written();
      strict();
      while (!changed_ && (common() || free())) {
      }
    } while (changed_);
    for (const auto& [b, layout] : placed_) program_.buffers[size_t(b)].hints.placed = layout;
    kernel_.hints.threads = threads;
  }

 private:
  const Buffer& buffer(int b) const { return program_.buffers[size_t(b)]; }
  bool is_open(int b) const { return fragments_.count(b) && !shared_.count(b); }

  // ---- what the kernel does to fragments ----

  void use(const Access& a) {
    if (buffer(a.buffer).space == Space::Fragment) fragments_.insert(a.buffer);
  }
  void add(Visit visit, const std::vector<const Access*>& accesses) {
    for (const Access* a : accesses) {
      if (buffer(a->buffer).space != Space::Fragment) continue;
      use(*a);
      visit.accesses.push_back(a);
    }
    if (!visit.accesses.empty()) visits_.push_back(std::move(visit));
  }
  void never(const Access& a, const std::string& why) {
    use(a);
    if (fragments_.count(a.buffer)) share(a.buffer, why);
  }

  void collect(const Block& block) {
    visit(block, [this](const Stmt& stmt) {
      base::match(static_cast<const StmtVariant&>(stmt),
          [&](const Let& s) { for (const Access& a : s.reads) never(a, "a let reads it"); },
          [&](const If& s) { for (const Access& a : s.reads) never(a, "a branch reads it"); },
          [&](const Assert& s) { for (const Access& a : s.reads) never(a, "a check reads it"); },
          [&](const Print& s) { for (const Access& a : s.reads) never(a, "it is printed"); },
          [&](const Extern& s) {
            for (int b : s.reads) never({b, {}, {}}, "foreign text reads it");
            for (int b : s.writes) never({b, {}, {}}, "foreign text writes it");
          },
          [&](const Scan& s) {
            for (const Access& a : s.reads) never(a, "a scan reads it");
            for (const Access& a : s.states) never(a, "a scan folds into it");
            for (const Store& t : s.stores) never(t.to, "a scan writes it");
          },
          [&](const Gemm& s) {
            for (const Access* a : {&s.a, &s.b, &s.acc}) use(*a);
            gemms_.push_back(&s);
          },
          [&](const Copy& s) { add({s.box, {}, 0}, {&s.from, &s.to}); },
          [&](const Combine& s) { add({s.box, {}, 0}, {&s.from, &s.to}); },
          [&](const Map& s) {
            std::vector<const Access*> all;
            for (const Access& a : s.reads) all.push_back(&a);
            for (const Store& t : s.stores) all.push_back(&t.to);
            add({s.points, {}, 0}, all);
          },
          [&](const Reduce& s) { reduce(s); },
          [&](const auto&) {});
    });
  }

  void reduce(const Reduce& s) {
    const bool simple = s.axes.empty() && s.monoid->commutative && s.monoid->structure != monoid::Structure::TopK;
    bool same_points = true;  // every state over all points
    for (const Access& a : s.states) same_points = same_points && a.coords.size() == s.points.size();
    if (!simple || !same_points) {
      for (const Access& a : s.reads) never(a, "a reduction whose state is no number reads it");
      for (const Access& a : s.states) never(a, "it is the state of a reduction that is no number for each point");
      return;
    }
    Visit visit{s.points, {}, s.reduces.size()};
    visit.points.insert(visit.points.end(), s.reduces.begin(), s.reduces.end());
    std::vector<const Access*> all;
    for (const Access& a : s.reads) all.push_back(&a);
    for (const Access& a : s.states) all.push_back(&a);
    reduces_fragments_ = reduces_fragments_ || std::any_of(s.reads.begin(), s.reads.end(), [&](const Access& a) {
      return buffer(a.buffer).space == Space::Fragment;
    });
    add(std::move(visit), all);
  }

  void share(int b, const std::string& why) {
    if (!shared_.insert(b).second) return;
    changed_ = true;
    program_.buffers[size_t(b)].space = Space::Shared;
    program_.buffers[size_t(b)].hints.placed.reset();
    notes_.push_back("the kernel '" + kernel_.name + "': the fragment '" + buffer(b).name + "' is shared, as " + why);
  }

  // ---- written by a person ----

  void written() {
    for (int b : fragments_) {
      const auto& layout = buffer(b).hints.placed;
      if (!layout || !is_open(b)) continue;
      const bool fits = layout->shape == *regular_shape(buffer(b).extents) && layout::count(*layout, Axis::Lane) == kLanes &&
                        layout::count(*layout, Axis::Warp) == warps_ && layout::is_surjective(*layout);
      if (fits) placed_[b] = *layout;
      else share(b, "its layout is none of its extents over " + std::to_string(warps_) + " warps of 32 lanes");
    }
  }

  // ---- strict ----

  // Whether a product's left operand is a fragment: its rows, and those of what it is made of, stay in one warp.
  bool fragment_operands() const {
    return std::any_of(gemms_.begin(), gemms_.end(), [this](const Gemm* g) { return is_open(g->a.buffer); });
  }

  // Warps along rows and columns of an accumulator of units, as square a part for each as can be.
  std::pair<int, int> split(const Gemm& g, int rows, int columns) const {
    const bool by_rows = g.team == Team::Rows || (g.team == Team::Any && (reduces_fragments_ || fragment_operands()));
    if (by_rows) return {std::min(warps_, rows), 1};
    if (g.team == Team::Columns) return {1, std::min(warps_, columns)};
    std::pair<int, int> best{std::min(warps_, rows), 1};
    int least = -1;
    for (int m = 1; m <= warps_; m *= 2) {
      const int n = warps_ / m;
      if (m > rows || n > columns) continue;
      const int sides = rows / m + columns / n;
      if (least >= 0 && sides >= least) continue;
      least = sides;
      best = {m, n};
    }
    return best;
  }

  // A layout of [m, n] warps' parts, each a repeated fragment; warps too many hold copies.
  std::optional<layout::Layout> parts(const layout::Layout& fragment, const Point& shape, int m, int n) const {
    auto part = layout::repeat(fragment, {shape[0] / m, shape[1] / n}, {1, 1}, {1, 0});
    if (!part) return std::nullopt;
    layout::Layout outer;
    outer.shape = {m, n};
    for (int bit = 1; bit < n; bit *= 2) outer[Axis::Warp].push_back({2, {0, bit}});
    for (int bit = 1; bit < m; bit *= 2) outer[Axis::Warp].push_back({2, {bit, 0}});
    for (int rest = m * n; rest < warps_; rest *= 2) outer[Axis::Warp].push_back({2, {0, 0}});
    auto out = layout::product(*part, outer);
    if (!out) return std::nullopt;
    return *out;
  }

  void place(int b, const layout::Layout& wanted, const std::string& by) {
    const auto [at, added] = placed_.emplace(b, wanted);
    if (!added && !(at->second == wanted)) share(b, "two layouts are asked of it; the second by " + by);
  }

  void strict() {
    for (const Gemm* g : gemms_) {
      const auto unit = options_.matrix_units ? unit_of(program_, *g) : std::nullopt;
      if (unit && is_open(g->acc.buffer)) {
        place_unit(*g, *unit);
      } else {
        place_products(*g);
      }
      if (changed_) return;
    }
  }

  void place_unit(const Gemm& g, const MatrixUnit& unit) {
    const Point shape = *regular_shape(buffer(g.acc.buffer).extents);
    const auto [m, n] = split(g, shape[0] / unit.m, shape[1] / (2 * unit.n));
    const int bits = scalar::bits(unit.operand);
    const auto acc = parts(*layout::mma(layout::Operand::Accumulator, bits), shape, m, n);
    LEMMA_CHECK(acc.has_value(), "an accumulator of whole units has a layout");
    place(g.acc.buffer, *acc, "a product");
    if (!is_open(g.a.buffer)) return;
    const Point left = *regular_shape(buffer(g.a.buffer).extents);
    const auto a = parts(*layout::mma(layout::Operand::A, bits), left, m, 1);
    LEMMA_CHECK(a.has_value(), "an operand of whole units has a layout");
    place(g.a.buffer, *a, "a product that reads it");
  }

  // Without a unit every thread sums the elements it holds, and reads both operands from where all can.
  void place_products(const Gemm& g) {
    for (const Access* a : {&g.a, &g.b}) {
      if (is_open(a->buffer)) share(a->buffer, "the threads of a product read it all");
    }
    if (changed_ || !is_open(g.acc.buffer)) return;
    const auto exact = point_dimensions(g.acc, {g.m, g.n});
    const auto shape = regular_shape(buffer(g.acc.buffer).extents), box = regular_shape(std::vector<Range>{g.m, g.n});
    if (!exact || !(*exact == std::vector<int>{0, 1}) || shape != box) return share(g.acc.buffer, "a product writes part of it");
    // Warps of 16 x 32 elements, 4 x 4 a thread.
    const auto [m, n] = split(g, std::max(1, (*shape)[0] / 16), std::max(1, (*shape)[1] / 32));
    const Point vector = {std::min(4, std::max(1, (*shape)[0] / 4)), std::min(4, std::max(1, (*shape)[1] / 8))};
    Point warps = {m, n};
    auto blocks = layout::blocked(*shape, {vector, {4, 8}, warps, {1, 0}});
    LEMMA_CHECK(blocks.ok(), "powers of two have a blocked layout");
    for (int rest = m * n; rest < warps_; rest *= 2) (*blocks)[Axis::Warp].push_back({2, {0, 0}});
    place(g.acc.buffer, *blocks, "a product");
  }

  // ---- common ----

  // Takes one step; whether anything became known.
  bool common() {
    bool progress = false;
    for (const Visit& v : visits_) {
      progress = step(v) || progress;
      if (changed_) return false;
    }
    return progress;
  }

  // The dimensions of every access that is open; what cannot follow the points becomes shared.
  bool dimensions(const Visit& v, std::vector<std::pair<const Access*, std::vector<int>>>& out) {
    const auto shape = regular_shape(v.points);
    for (const Access* a : v.accesses) {
      if (!is_open(a->buffer)) continue;
      const auto dims = point_dimensions(*a, v.points);
      bool fits = dims && shape;
      for (size_t d = 0; fits && d < dims->size(); ++d) {
        fits = buffer(a->buffer).extents[d].constant() == int64_t((*shape)[size_t((*dims)[d])]);
      }
      if (!fits) {
        share(a->buffer, "a statement goes over other elements of it than its points");
        return false;
      }
      out.push_back({a, *dims});
    }
    return true;
  }

  bool step(const Visit& v) {
    std::vector<std::pair<const Access*, std::vector<int>>> uses;
    if (!dimensions(v, uses) || uses.empty()) return false;
    std::optional<layout::Layout> points;
    bool covered = false;
    for (const auto& [a, dims] : uses) {
      if (dims.size() != v.points.size()) continue;
      covered = true;
      const auto at = placed_.find(a->buffer);
      if (at == placed_.end()) continue;
      points = distribution_of(at->second, dims);
      break;
    }
    if (!covered) {
      for (const auto& [a, dims] : uses) share(a->buffer, "a statement over more points reads it, none of whose fragments has them all");
      return false;
    }
    if (!points) return false;
    if (v.folded && !folds(*points, v.points.size() - v.folded)) {
      for (const auto& [a, dims] : uses) {
        if (dims.size() != v.points.size()) continue;
        share(a->buffer, "a reduction crosses warps");
        return false;
      }
    }
    bool progress = false;
    for (const auto& [a, dims] : uses) {
      const layout::Layout wanted = project(*points, dims);
      const auto [at, added] = placed_.emplace(a->buffer, wanted);
      progress = progress || added;
      if (added || at->second == wanted) continue;
      share(a->buffer, "two statements ask different layouts of it");
      return false;
    }
    return progress;
  }

  // Whether what is folded lies within warps.
  static bool folds(const layout::Layout& points, size_t kept) {
    for (const layout::Digit& digit : points[Axis::Warp]) {
      bool stays = false, folded = false;
      for (size_t d = 0; d < digit.step.size(); ++d) (d < kept ? stays : folded) |= digit.step[d] != 0;
      if (folded && !stays) return false;
    }
    return true;
  }

  // ---- free ----

  // Places the largest fragment that is still open; whether there was one.
  bool free() {
    int chosen = -1;
    int64_t most = 0;
    for (int b : fragments_) {
      if (!is_open(b) || placed_.count(b)) continue;
      const int64_t n = layout::size(*regular_shape(buffer(b).extents));
      if (n <= most) continue;
      most = n;
      chosen = b;
    }
    if (chosen < 0) return false;
    place(chosen, free_layout(*regular_shape(buffer(chosen).extents), scalar::bits(buffer(chosen).type)), "nobody");
    return true;
  }

  layout::Layout free_layout(const Point& shape, int bits) const {
    const size_t last = shape.size() - 1;
    layout::Blocks blocks;
    blocks.vector.assign(shape.size(), 1);
    blocks.lanes.assign(shape.size(), 1);
    blocks.warps.assign(shape.size(), 1);
    for (size_t d = shape.size(); d-- > 0;) blocks.order.push_back(int(d));
    if (shape.size() > 1) blocks.vector[last] = std::min(shape[last], std::max(1, 128 / bits));
    int lanes = kLanes;
    for (size_t d = shape.size(); d-- > 0 && lanes > 1;) {
      const int n = std::min(lanes, shape[d] / blocks.vector[d]);
      blocks.lanes[d] = n;
      lanes /= n;
    }
    blocks.lanes[last] *= lanes;  // copies
    int warps = warps_;
    for (size_t d = 0; d < shape.size() && warps > 1; ++d) {
      const int n = std::min(warps, std::max(1, shape[d] / (blocks.vector[d] * blocks.lanes[d])));
      blocks.warps[d] = n;
      warps /= n;
    }
    blocks.warps[0] *= warps;  // copies
    auto out = layout::blocked(shape, blocks);
    LEMMA_CHECK(out.ok(), "powers of two have a blocked layout");
    return layout::drop_register_broadcasts(std::move(*out));
  }

  Program& program_;
  Kernel& kernel_;
  const ThreadOptions& options_;
  std::vector<std::string>& notes_;
  int warps_ = 0;
  std::set<int> fragments_, shared_;
  std::vector<Visit> visits_;
  std::vector<const Gemm*> gemms_;
  bool reduces_fragments_ = false;
  bool changed_ = false;
  std::map<int, layout::Layout> placed_;
};

}  // namespace

Program distribute(Program program, const ThreadOptions& options, std::vector<std::string>& notes) {
  for (Kernel& kernel : program.kernels) Distributor(program, kernel, options, notes).run();
  return program;
}

}  // namespace lemma::tile
