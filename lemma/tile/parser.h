// The parser of tile programs, split by topic: parse.cc (names, the program's own lines, kernels, blocks), parse_buffers.cc,
// parse_statements.cc, parse_folds.cc, parse_regions.cc (tiles and parts of them by name), parse_monoids.cc, parse_rest.cc
// (print, extern, combine). Private to these files.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lemma/tile/parse_terms.h"

namespace lemma::tile {

class ProgramParser {
 public:
  ProgramParser(const syntax::Source& source, const std::vector<syntax::Token>& tokens);
  base::Result<Program> run();

 private:
  // The reads and definitions written before a block-level statement; they are its alone.
  struct Pending {
    std::vector<Access> reads;
    size_t mark = 0;
  };

  // ---- names and terms: parse.cc ----
  base::Result<syntax::Token> name(const std::string& what) { return cursor_.expect_name(what); }
  base::Result<void> declare(const syntax::Token& token, Meaning meaning);
  base::Result<Var> bind(const syntax::Token& token);
  base::Result<view::Form> form();
  base::Result<view::Formula> formula();
  base::Result<scalar::Expr> expression(scalar::Kind kind);
  base::Result<Access> access();
  base::Result<std::vector<view::Form>> forms();
  base::Result<int64_t> integer(const std::string& what);
  base::Result<std::string> message();
  base::Result<void> end_of_line();
  void open(Pending& p);
  void close(Pending& p);
  base::Result<bool> preamble();
  base::Result<void> preambles();
  base::Result<std::vector<Range>> ranges();
  base::Result<void> range_list(std::vector<Range>& out, std::vector<syntax::Token>& names);

  // ---- the program's own lines: parse.cc ----
  base::Result<void> top_level();
  base::Result<void> size(Pending& pending);
  base::Result<void> kernel();
  base::Result<void> kernel_hints(KernelHints& hints);
  base::Result<Block> block();
  base::Result<void> statement(Block& out);
  void note_place(const Block& block, size_t first, syntax::Place place);
  base::Diagnostic placed(base::Diagnostic diagnostic) const;
  base::Result<std::optional<Stmt>> with_pending(Pending& pending, bool& found);
  base::Result<void> placement();

  // ---- buffers: parse_buffers.cc ----
  base::Result<void> buffers(Space space, Block* allocs);
  base::Result<void> buffer_options(Buffer& b);

  // ---- statements: parse_statements.cc ----
  base::Result<std::optional<Stmt>> let(Pending& pending);
  base::Result<Stmt> branch(Pending& pending);
  base::Result<Stmt> loop(Pending& pending, syntax::Place place);
  base::Result<void> loop_words(For& s);
  base::Result<void> loop_domain(For& s);
  base::Result<void> alloc(Space space, Block& out);
  base::Result<Stmt> copy();
  base::Result<Stmt> gemm();
  base::Result<void> where_head(view::Formula& where);
  base::Result<bool> point_line(view::Formula& where);
  void open_reads(std::vector<Access>& reads);
  base::Result<Store> store();
  base::Result<void> store_value(Store& s, bool combine);
  base::Result<Stmt> map();
  base::Result<void> map_body(Map& s);

  // ---- print, extern, combine: parse_rest.cc ----
  base::Result<Stmt> print(Pending& pending);
  base::Result<Stmt> raw();
  base::Result<std::vector<int>> buffer_list(std::vector<std::string>& names);
  base::Result<std::string> raw_line(const syntax::Token& line, const std::vector<std::string>& names) const;
  base::Result<Stmt> combine_tiles();

  // ---- folds: parse_folds.cc ----
  base::Result<monoid::MonoidRef> by();
  template <class S>
  base::Result<void> elements(S& s);
  template <class S>
  base::Result<void> state_accesses(S& s);
  template <class S>
  base::Result<void> fold_line(S& s, bool& taken);
  base::Result<Stmt> reduce();
  base::Result<Stmt> reduce_into();
  base::Result<Access> point_target(std::vector<Range>& points);
  base::Result<Stmt> scan();
  base::Result<void> scan_stores(Scan& s);

  // ---- regions: parse_regions.cc ----
  bool at_region() const;
  base::Result<Region> region(const std::string& what);
  base::Result<void> region_part(const syntax::Token& name, Region& r);
  base::Result<Copy> copy_regions(const syntax::Token& at, const Region& from, const Region& to);
  base::Result<Stmt> gemm_regions();
  base::Result<Stmt> map_tiles();

  // ---- monoids: parse_monoids.cc ----
  base::Result<void> monoid();
  base::Result<void> combine(monoid::Monoid& m);
  base::Result<void> state_read(const monoid::Monoid& m, const monoid::Component& updated, monoid::Update& u);
  base::Result<void> monoid_flags(monoid::Monoid& m);
  base::Result<void> complete(syntax::Place place, const monoid::Monoid& m) const;
  base::Result<scalar::Kind> kind();

  const syntax::Source& source_;
  syntax::Tree tree_;
  syntax::Parser cursor_;
  Program program_;
  Terms terms_;
  Placement placement_;       // of the statement under way
  size_t block_mark_ = 0;     // of the scope, where the block under way began
  int depth_ = 0;
  std::vector<size_t> path_;  // where the statement under way stands, as validate counts
  std::map<std::string, syntax::Place> places_;  // of statements; no line where a path is not of one statement
  bool in_points_ = false;    // inside the braces of a map, a reduce or a scan
};

}  // namespace lemma::tile
