// What the lowering of every group shares: the program under construction, where values live, and how a node's indices
// become forms over grid, loop and statement variables.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lemma/base/result.h"
#include "lemma/schedule/schedule.h"
#include "lemma/tensor/graph.h"
#include "lemma/tile/program.h"
#include "lemma/tile/target.h"

namespace lemma::lower {

using scalar::Expr;
using view::Form;

// A value's home. Local homes hold one tile: an axis per loop. Global homes are addressed by the value's own
// coordinates.
struct Home {
  int buffer = -1;
  bool local = false;
  std::vector<int> axes;  // of a local home: loops, in storage order
};

// How a loop of the group stands where a statement is made: index = base + v for 0 <= v < count.
struct LoopPlace {
  Form base;
  Form count;      // over lets and sizes
  Form capacity;   // what a local buffer's axis holds: at least count, over sizes
  bool axis = true;  // false: a single point, v = offset
  Form offset;       // where that point stands in local homes
  // Where a tile of constant extent may stick out of its loop: points from here on do not exist.
  std::optional<Form> limit = {};
};

class Context {
 public:
  Context(const tensor::Graph& graph, const tile::Target& target);

  const tensor::Graph& graph;
  const tile::Target& target;
  tile::Program program;

  // ---- declarations ----
  tile::Var variable(const std::string& name);
  // A size computed at launch; the same definition under the same name is declared once.
  Form define_size(const std::string& name, Expr definition);
  Form threads() const { return Form::size(threads_); }
  int add_buffer(tile::Buffer buffer);
  Expr expr(const Form& form);                        // as I64
  Expr constant(int64_t value) { return scalar::i64(*program.arena, value); }

  // ---- values ----
  std::map<tensor::Value, std::vector<Home>> homes;   // outputs and scratch first
  std::optional<Home> global_home(tensor::Value value) const;
  // Where a member's value is read from inside the block: a local home if there is one.
  Home home(tensor::Value value) const;

 private:
  int threads_ = -1;
  std::map<std::string, int> defined_;
  std::map<std::string, int> buffer_names_;
};

// A statement's variables: one for each loop that has an axis.
struct Variables {
  std::map<int, tile::Var> of_loop;
  std::vector<tile::Range> ranges(const std::vector<int>& loops, const std::vector<LoopPlace>& places) const;
};

// Translates one member's expressions into a statement: collects the reads it needs.
class Translator {
 public:
  // index_forms[i]: what the node's index i is. local_forms[loop]: a local home's coordinate along that loop.
  Translator(Context& context, const tensor::Comprehension& node, std::vector<Form> index_forms,
             std::map<int, Form> local_forms);

  Expr translate(Expr expr);
  view::Formula translate(const view::Formula& formula);
  Form translate(const Form& form);
  std::vector<tile::Access> reads;    // of the statement so far

 private:
  int read(int which);                // the statement's read for the node's read
  Context& context_;
  const tensor::Comprehension& node_;
  std::vector<Form> index_forms_;
  std::map<int, Form> local_forms_;
  std::map<int, int> read_of_;
  std::map<uint32_t, Expr> memo_;
};

// A kernel being filled: the current block and the places of the group's loops.
struct Scope {
  std::vector<LoopPlace> places;
  tile::Block* block = nullptr;
  tile::Space space = tile::Space::Local;  // of what members keep
};

// The points of a statement variable that exist.
struct Edge {
  tile::Var var = -1;
  view::Formula formula;
};

// Reads of global memory are made where their points exist: of what `outside` has always, of what the statement's own
// domain has only where that domain looks at them, as it cannot speak for itself.
void keep_inside(const Context& context, std::vector<tile::Access>& reads, const view::Formula& domain,
                 const std::vector<Edge>& own, const std::vector<Edge>& outside = {});

view::Formula all_of(const std::vector<Edge>& edges);

tile::Access local_access(const Home& home, const std::map<int, Form>& local_forms);

}  // namespace lemma::lower
