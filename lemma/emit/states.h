// The states of a fold in C variables: single values, or vectors of one state a lane.
#pragma once

#include <string>
#include <vector>

#include "lemma/emit/body.h"
#include "lemma/emit/fold.h"

namespace lemma::emit {

// Some components of a statement that folds.
struct FoldTask {
  const Fold& fold;
  const std::vector<tile::Access>& states;   // of all components
  std::vector<size_t> components;
  BodyText body;                             // roots: the steps of these components
};

struct States {
  std::vector<std::string> names;            // one a component of the task
  bool varying = false;
};

std::string declared_type(scalar::Kind kind, bool varying);

// Variables that hold the identity.
States declare_states(Unit& unit, const FoldTask& task, bool varying, const std::string& stem);
// The same, again.
void reset_states(Unit& unit, const FoldTask& task, const States& states);
// What the states hold already, in place of the identity.
void load_states(Unit& unit, const Frame& frame, const FoldTask& task, const States& states);
// The same for lanes of frame.lane_var, `count` of them (empty: all).
void load_lane_states(Unit& unit, const Frame& frame, const FoldTask& task, const States& states, const std::string& count);

// states = step(states, element); masked lanes keep what they had.
void step(Unit& unit, Frame& frame, const FoldTask& task, const States& states, const std::string& mask);

void store_states(Unit& unit, Frame& frame, const FoldTask& task, const States& states, const LaneMask& mask);

}  // namespace lemma::emit
