// The inside of a statement's loops: where it is defined, what it reads, and with which lanes.
//
// A scalar body evaluates `where` and makes the reads one after another. A lane body does so for LM_LANES neighbours of
// one variable at once: constraints that are affine in that variable become an interval (loop bounds, or a range of
// lanes), reads become vector loads, broadcasts or lane-by-lane loads, and a lane that is masked off never touches memory.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lemma/emit/unit.h"

namespace lemma::emit {

struct BodyText {
  const view::Formula* where = nullptr;
  const std::vector<tile::Access>* reads = nullptr;
  std::vector<scalar::Expr> roots;           // what will be asked of the reads, in the unit's arena
  std::vector<int> coords = {};              // reads that say where a store goes
};

// The reads that roots and `where` need, reads needed by reads included.
std::vector<bool> used_reads(const BodyText& body);

// Writes the test and the reads; `inside` writes what happens where `where` holds, `outside` (may be null) elsewhere.
void scalar_body(Unit& unit, const Frame& frame, const BodyText& body, const std::function<void(Frame&)>& inside,
                 const std::function<void(Frame&)>& outside);

// Which reads differ between lanes of `lane_var`.
std::vector<bool> varying_reads(const Unit& unit, const BodyText& body, tile::Var lane_var);
// Whether reads and roots can be made for lanes of `lane_var`.
bool lanes_possible(const Unit& unit, const BodyText& body, tile::Var lane_var);

struct LaneMask {
  std::string mask;    // a variable of type lm_vi, or empty: all lanes
  std::string count;   // how many lanes exist, or empty: all
};

class LaneBody {
 public:
  // `bounded`: the interval of `where` bounds the lane loop (low, high); else it masks lanes.
  LaneBody(Unit& unit, const Frame& row, const BodyText& body, std::string extent, bool bounded);

  // Outside the lane loop: the interval and, where it is safe, the reads all lanes share.
  void row();
  const std::string& low() const { return low_; }
  const std::string& high() const { return high_; }

  // One group of lanes starting at lane_var (or what stands for it in `vars`).
  void lanes(const std::map<tile::Var, std::string>& vars, const std::string& count,
             const std::function<void(Frame&, const LaneMask&)>& inside);

 private:
  struct Interval {
    std::string low, high;
    bool everywhere = true;      // nothing to test
    bool by_lane = false;        // not an interval: each lane tests
  };
  Interval interval(const view::Formula& formula, const Frame& frame, const std::string& extent);
  std::string lane_test(const view::Formula& formula, const Frame& frame);
  void read(Frame& frame, size_t r, const LaneMask& mask, bool row_level);
  std::string both(const std::string& a, const std::string& b);

  Unit& unit_;
  Frame row_;
  const BodyText& body_;
  std::string extent_;
  bool bounded_;
  std::vector<bool> used_, varying_, for_where_;
  view::Formula without_data_;
  bool data_left_ = false, hoist_ = false;
  Interval where_, refined_;
  std::vector<Interval> guards_;
  std::string low_ = "0", high_;
};

}  // namespace lemma::emit
