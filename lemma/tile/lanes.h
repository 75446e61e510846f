// Forms and formulas over many points at once. A statement's variables and the integers it reads have a column of
// values, one a lane; everything else is fixed while the statement runs.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "lemma/view/formula.h"

namespace lemma::tile {

// The values of the statement's variables and reads. Reads follow variables.
struct Lanes {
  int count = 0;
  std::vector<std::vector<int64_t>> columns;
};

// Which column an atom has, or -1 where its value is fixed.
using ColumnOf = std::function<int(const view::Atom&)>;

class LaneForm {
 public:
  LaneForm() = default;
  LaneForm(const view::Form& form, const ColumnOf& column_of);

  // The fixed part for one execution of the statement; `fixed` gives variables and sizes from outside.
  void begin(const view::Form::Lookup& fixed);
  void evaluate(const Lanes& lanes, int64_t* out) const;

 private:
  struct Part {
    int column;
    view::Form coefficient;
    int64_t value = 0;
  };
  view::Form form_;
  bool affine_ = true;      // else evaluated lane by lane
  view::Form rest_;
  std::vector<Part> parts_;
  int64_t base_ = 0;
  ColumnOf column_of_;
  view::Form::Lookup fixed_;
};

class LaneFormula {
 public:
  LaneFormula() = default;
  LaneFormula(const view::Formula& formula, const ColumnOf& column_of);
  void begin(const view::Form::Lookup& fixed);
  bool always() const { return always_; }

  // out[l] = 1 where it holds. Constraints that need a column not in `known` count as true.
  void evaluate(const Lanes& lanes, const std::vector<char>& known, char* out);

 private:
  struct Constraint {
    LaneForm form;
    view::Relation relation;
    std::vector<int> columns;
  };
  bool always_ = true;
  std::vector<std::vector<Constraint>> cases_;
  std::vector<int64_t> values_;
  std::vector<char> case_;
};

}  // namespace lemma::tile
