// The fewest shuffles that turn one distribution into another within warps.
#pragma once

#include <optional>
#include <vector>

#include "lemma/layout/convert.h"

namespace lemma::layout {

// The bit columns of a distribution.
struct ThreadColumns {
  std::vector<uint64_t> registers, lanes, warps;
};

struct ShufflePlan {
  std::vector<Exchange> moves, shuffles;
};

// Where the element of a target (register r, lane l, warp w) comes from is linear:
//     register A r + B l + C w,  lane E r + F l + H w,  the same warp.
// Among the solutions those that stay in their lane are preferred, which makes the rank of E least.
//
// An exchange delivers one register a lane, so there are at least as many as some lane has elements to receive. If F +
// I and H map into the image of E, every lane keeps R / 2^rank(E) of its R registers, and for each other mask m of that
// image all lanes l receive from l ^ m: R - R / 2^rank(E) exchanges, the least. Else some lane keeps nothing, R is the
// least, and R exchanges are enough if lanes can be numbered by Q such that the lanes Er + (F + EQ)l of a round each
// send one register: a common complement of two subspaces, which exists unless the elements stand in fewer lanes than
// they go to.
//
// Nothing if an element comes from another warp, or in that last case.
std::optional<ShufflePlan> plan_shuffles(const ThreadColumns& source, const ThreadColumns& target);

}  // namespace lemma::layout
