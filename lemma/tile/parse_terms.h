// Forms, formulas, expressions and accesses of a tile program's text: names resolved, kinds checked. Private to the
// parser.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "lemma/syntax/parse.h"
#include "lemma/tile/program.h"
#include "lemma/tile/regions.h"

namespace lemma::tile {

// What a name stands for.
struct SizeName { int size; };
struct BufferName {
  int buffer;
  bool dormant = false;  // its block has ended: it can be allocated again, and the name may be taken
};
struct VariableName { Var variable; };
struct ReadName { int read; };
struct DefinitionName { scalar::Expr value; };
struct MonoidName { monoid::MonoidRef monoid; };
struct RegionName { Region region; };            // `let t = acc[.., c*64 +: 64]`
using Meaning = std::variant<SizeName, BufferName, VariableName, ReadName, DefinitionName, MonoidName, RegionName>;

// Names in scope. Nothing shadows: a name that is taken is an error of the text.
class Scope {
 public:
  bool add(const std::string& name, Meaning meaning) { return names_.emplace(name, std::move(meaning)).second && (order_.push_back(name), true); }
  const Meaning* find(const std::string& name) const {
    const auto it = names_.find(name);
    return it == names_.end() ? nullptr : &it->second;
  }
  // Frees the name of a buffer whose block has ended.
  void remove_dormant(const std::string& name) {
    const auto it = names_.find(name);
    const auto* buffer = it == names_.end() ? nullptr : std::get_if<BufferName>(&it->second);
    if (!buffer || !buffer->dormant) return;
    names_.erase(it);
    std::find(order_.begin(), order_.end(), name)->clear();  // its place stays, so that marks hold
  }
  // As release, but buffers stay, dormant.
  void release_keeping_buffers(size_t mark) {
    std::vector<std::pair<std::string, int>> buffers;
    for (size_t i = mark; i < order_.size(); ++i) {
      if (const auto* b = std::get_if<BufferName>(find(order_[i]))) buffers.push_back({order_[i], b->buffer});
    }
    release(mark);
    for (const auto& b : buffers) add(b.first, BufferName{b.second, true});
  }
  size_t mark() const { return order_.size(); }
  void release(size_t mark) {
    for (; order_.size() > mark; order_.pop_back()) names_.erase(order_.back());
  }
  const std::vector<std::string>& names() const { return order_; }

 private:
  std::unordered_map<std::string, Meaning> names_;
  std::vector<std::string> order_;
};

// In a monoid's definition: operand(i), read(i), axis(i) and inner(i).
struct MonoidLeaves {
  std::vector<scalar::Kind> operands, reads;
  int axes = 0;
  int inner = 0;
};

class Terms {
 public:
  Terms(const syntax::Source& source, syntax::Tree& tree, Program& program) : source_(source), tree_(tree), program_(program) {}

  Scope scope;
  // The reads of the statement under way: named ones first, then those its expressions make. Null: none may be made.
  std::vector<Access>* reads = nullptr;
  size_t named_reads = 0;
  // In a scan's stores and a monoid's finish, `state(c)`: the kinds of the components.
  const std::vector<scalar::Kind>* states = nullptr;
  const MonoidLeaves* leaves = nullptr;
  // In `map y = x * s`: where a tile stands alone, its element here.
  const std::vector<view::Form>* element = nullptr;
  const Region* written = nullptr;   // the tile whose element it is
  // Where expressions live: the program's arena, or a monoid's.
  scalar::Arena* arena = nullptr;

  base::Result<view::Form> form(syntax::NodeId id);
  base::Result<view::Formula> formula(syntax::NodeId id);
  base::Result<scalar::Expr> expression(syntax::NodeId id, scalar::Kind expected);
  base::Result<scalar::Expr> expression(syntax::NodeId id);
  base::Result<Access> access(syntax::NodeId id);   // without a guard

  base::Diagnostic error(syntax::NodeId id, std::string message, std::string suggestion = {}) const;

 private:
  struct Typed {
    scalar::Expr value;
    bool literal = false;   // a number, whose kind follows what it meets
    double number = 0;      // of a literal: all its digits
  };
  base::Result<view::Form> bounded(syntax::NodeId id, const view::Form& form) const;
  base::Result<view::Form> multiply(syntax::NodeId id, const view::Form& a, const view::Form& b) const;
  base::Result<view::Form> divide(syntax::NodeId id, const view::Form& a, const view::Form& b) const;
  base::Result<view::Formula> comparison(syntax::NodeId id);
  base::Result<view::Formula> both(syntax::NodeId id, const view::Formula& a, const view::Formula& b) const;
  base::Result<int> inline_read(syntax::NodeId id);
  base::Result<int> add_read(syntax::NodeId id, Access access);
  base::Result<std::optional<Access>> bare_tile(syntax::NodeId id);

  base::Result<Typed> typed(syntax::NodeId id);
  base::Result<Typed> name(syntax::NodeId id);
  base::Result<Typed> call(syntax::NodeId id);
  base::Result<int> number(syntax::NodeId id, size_t below);
  base::Result<Typed> leaf(syntax::NodeId id);
  std::optional<int> index_leaf(const std::string& text, int number) const;
  base::Result<Typed> constant_call(syntax::NodeId id, scalar::Kind kind);
  base::Result<Typed> convert_call(syntax::NodeId id, scalar::DType type);
  base::Result<Typed> chain(syntax::NodeId id);
  base::Result<Typed> compare(syntax::NodeId id);
  base::Result<Typed> negate(syntax::NodeId id);
  base::Result<Typed> apply(syntax::NodeId id, scalar::Op op, Typed a, Typed b);
  base::Result<Typed> apply(syntax::NodeId id, scalar::Op op, Typed a);
  base::Result<scalar::Expr> adapt(syntax::NodeId id, Typed value, scalar::Kind kind);
  base::Result<void> agree(syntax::NodeId id, Typed& a, Typed& b);
  scalar::Kind read_kind(int read) const;
  base::Diagnostic unknown(syntax::NodeId id, const std::string& what) const;

  const syntax::Source& source_;
  syntax::Tree& tree_;
  Program& program_;
};

}  // namespace lemma::tile
