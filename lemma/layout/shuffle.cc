#include "lemma/layout/shuffle.h"

#include "lemma/layout/bits.h"

namespace lemma::layout {
namespace {

using Columns = std::vector<uint64_t>;

// The parts of the linear map from target places to source places, a column for each bit of the target.
struct Map {
  Columns register_register, register_lane, register_warp;  // A B C: source registers
  Columns lane_register, lane_lane, lane_warp;              // E F H: source lanes
};

uint64_t unit(size_t i) { return uint64_t(1) << i; }

Columns identity(size_t n) {
  Columns out;
  for (size_t i = 0; i < n; ++i) out.push_back(unit(i));
  return out;
}

Columns sum(Columns a, const Columns& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] ^= b[i];
  return a;
}

// The columns of a * b.
Columns times(const Columns& a, Columns b) {
  for (uint64_t& column : b) column = combine(a, column);
  return b;
}

std::optional<Map> find_map(const ThreadColumns& source, const ThreadColumns& target) {
  Echelon held;  // registers first, so that an element of the own lane is found there
  for (uint64_t column : source.registers) held.insert(column);
  for (uint64_t column : source.lanes) held.insert(column);
  const size_t registers = source.registers.size();
  const uint64_t low = unit(registers) - 1;
  Map map;
  for (uint64_t column : target.registers) {
    const std::optional<uint64_t> place = held.solve(column);
    if (!place) return std::nullopt;
    map.register_register.push_back(*place & low);
    map.lane_register.push_back(*place >> registers);
  }
  for (size_t i = 0; i < target.lanes.size(); ++i) {
    const std::optional<uint64_t> place = held.solve(target.lanes[i] ^ source.lanes[i]);
    if (!place) return std::nullopt;
    map.register_lane.push_back(*place & low);
    map.lane_lane.push_back(*place >> registers ^ unit(i));
  }
  for (size_t i = 0; i < target.warps.size(); ++i) {
    const std::optional<uint64_t> place = held.solve(target.warps[i] ^ source.warps[i]);
    if (!place) return std::nullopt;
    map.register_warp.push_back(*place & low);
    map.lane_warp.push_back(*place >> registers);
  }
  return map;
}

// Some r with E r = column, for each column; nothing if a column leaves the image.
std::optional<Columns> solve_all(const Echelon& echelon, const Columns& columns) {
  Columns out;
  for (uint64_t column : columns) {
    const std::optional<uint64_t> r = echelon.solve(column);
    if (!r) return std::nullopt;
    out.push_back(*r);
  }
  return out;
}

// A basis of the relations among columns.
Columns kernel(const Columns& columns) {
  Columns out;
  Echelon echelon;
  for (size_t i = 0; i < columns.size(); ++i) {
    const std::optional<uint64_t> relation = echelon.solve(columns[i]);
    if (relation) out.push_back(*relation | unit(i));
    echelon.insert(columns[i]);
  }
  return out;
}

// A basis of the image, and for each of its vectors a preimage.
struct Image {
  Columns vectors, preimages;
};
Image image(const Columns& columns) {
  Image out;
  Echelon echelon;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (!echelon.insert(columns[i])) continue;
    out.vectors.push_back(columns[i]);
    out.preimages.push_back(unit(i));
  }
  return out;
}

// Lane l receives from l ^ mask: registers E r = mask + (F + I) l + H w, of which there is one for each `kept`.
Exchange exchange_by_mask(const Map& map, uint64_t mask, uint64_t receive, const Columns& by_lane,
                          const Columns& by_warp) {
  const size_t lanes = map.lane_lane.size();
  Exchange out;
  out.lane = {mask, identity(lanes), Columns(by_warp.size(), 0)};
  out.receive = {receive, by_lane, by_warp};
  out.send.by_lane = sum(times(map.register_register, by_lane), map.register_lane);
  out.send.by_warp = sum(times(map.register_register, by_warp), map.register_warp);
  // Asked of the sender, which is the receiver's lane ^ mask.
  out.send.base = combine(map.register_register, receive) ^ combine(out.send.by_lane, mask);
  return out;
}

std::optional<ShufflePlan> plan_masks(const Map& map) {
  const size_t lanes = map.lane_lane.size();
  Echelon reach;
  for (uint64_t column : map.lane_register) reach.insert(column);
  const std::optional<Columns> by_lane = solve_all(reach, sum(map.lane_lane, identity(lanes)));
  const std::optional<Columns> by_warp = solve_all(reach, map.lane_warp);
  if (!by_lane || !by_warp) return std::nullopt;
  const Columns kept = kernel(map.lane_register);
  const Image masks = image(map.lane_register);
  ShufflePlan plan;
  for (uint64_t m = 0; m < unit(masks.vectors.size()); ++m) {
    const uint64_t mask = combine(masks.vectors, m), to = combine(masks.preimages, m);
    for (uint64_t k = 0; k < unit(kept.size()); ++k) {
      const Exchange e = exchange_by_mask(map, mask, to ^ combine(kept, k), *by_lane, *by_warp);
      (mask == 0 ? plan.moves : plan.shuffles).push_back(e);
    }
  }
  return plan;
}

// Q: the register (beside the round's own) into which each lane receives. Vectors are (lane << registers | register).
// The graph of Q is a complement of the registers; where it meets places whose source is lane 0 the source must be
// register 0.
std::optional<Columns> number_lanes(const Map& map) {
  const size_t registers = map.lane_register.size(), lanes = map.lane_lane.size();
  Columns to_lane = map.lane_register, to_place = map.register_register;
  for (size_t i = 0; i < lanes; ++i) to_lane.push_back(map.lane_lane[i]);
  for (size_t i = 0; i < registers; ++i) to_place[i] |= map.lane_register[i] << 32;
  for (size_t i = 0; i < lanes; ++i) to_place.push_back(map.register_lane[i] | map.lane_lane[i] << 32);
  Echelon x, y;  // spans of the graph with the registers, and with the places whose source is lane 0
  for (size_t i = 0; i < registers; ++i) x.insert(unit(i));
  Columns graph;
  for (uint64_t v : kernel(to_place)) {
    if (!x.insert(v)) return std::nullopt;  // a redundant register
    graph.push_back(v);
  }
  for (uint64_t v : kernel(to_lane)) y.insert(v);
  while (graph.size() < lanes) {
    // A vector outside both: two proper subspaces never cover a space.
    uint64_t a = 0, b = 0;
    for (size_t i = 0; i < registers + lanes; ++i) {
      if (!x.contains(unit(i))) a = unit(i);
      if (!y.contains(unit(i))) b = unit(i);
    }
    if (b == 0) return std::nullopt;
    uint64_t v = !y.contains(a) ? a : !x.contains(b) ? b : a ^ b;
    x.insert(v);
    y.insert(v);
    graph.push_back(v);
  }
  Echelon by_lane;
  Columns values;
  for (uint64_t v : graph) {
    by_lane.insert(v >> registers);
    values.push_back(v & (unit(registers) - 1));
  }
  Columns out;
  for (size_t i = 0; i < lanes; ++i) out.push_back(combine(values, *by_lane.solve(unit(i))));
  return out;
}

// Every lane receives every register from a lane of its own.
std::optional<ShufflePlan> plan_lanes(const Map& map) {
  const size_t registers = map.lane_register.size(), lanes = map.lane_lane.size(), warps = map.lane_warp.size();
  const std::optional<Columns> q = number_lanes(map);
  if (!q) return std::nullopt;
  const Columns from = sum(map.lane_lane, times(map.lane_register, *q));           // F + EQ
  const Columns value = sum(map.register_lane, times(map.register_register, *q));  // B + AQ
  // What a lane sends is linear in the lane: value = sent * from, zero outside the image of `from`.
  Echelon senders;
  for (uint64_t column : from) senders.insert(column);
  for (size_t i = 0; i < lanes; ++i) senders.insert(unit(i));
  Columns sent;
  for (size_t i = 0; i < lanes; ++i) sent.push_back(combine(value, *senders.solve(unit(i)) & (unit(lanes) - 1)));
  ShufflePlan plan;
  for (uint64_t k = 0; k < unit(registers); ++k) {
    Exchange e;
    e.receive = {k, *q, Columns(warps, 0)};
    e.lane = {combine(map.lane_register, k), from, map.lane_warp};
    e.send = {combine(map.register_register, k) ^ combine(sent, e.lane.base), sent,
              sum(map.register_warp, times(sent, map.lane_warp))};
    plan.shuffles.push_back(std::move(e));
  }
  return plan;
}

}  // namespace

std::optional<ShufflePlan> plan_shuffles(const ThreadColumns& source, const ThreadColumns& target) {
  LEMMA_CHECK(source.lanes.size() == target.lanes.size() && source.warps.size() == target.warps.size(),
              "distributions over other lanes or warps");
  const std::optional<Map> map = find_map(source, target);
  if (!map) return std::nullopt;
  if (std::optional<ShufflePlan> plan = plan_masks(*map)) return plan;
  return plan_lanes(*map);
}

}  // namespace lemma::layout
