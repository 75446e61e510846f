// Extents of indices: what is stated, else what the plain reads x[.., i, ..] say (unguarded ones first), else what the
// index of the same name outside has. Reads that disagree are an error that shows both places.
#include <set>

#include "lemma/language/core.h"

namespace lemma::language {
namespace {

class Finder {
 public:
  explicit Finder(Context& context) : c_(context) {}

  void visit(CoreId root) {
    ask(root, false);
    while (!stack_.empty()) {
      const auto [id, guarded] = stack_.back();
      stack_.pop_back();
      if (id < 0 || !seen_.insert({id, guarded}).second) continue;
      const Core& core = c_.cores[size_t(id)];
      switch (core.kind) {
        case CoreKind::Read: read(core, guarded); break;
        case CoreKind::Fold: {
          const Fold& f = c_.folds[size_t(core.fold)];
          for (CoreId value : f.initial) ask(value, false);
          for (CoreId operand : f.operands) ask(operand, false);
          ask(f.condition, false);
          break;
        }
        case CoreKind::Else:
          ask(core.args[1], guarded);
          ask(core.args[0], true);
          break;
        case CoreKind::Maybe: ask(core.args[0], true); break;
        default:
          for (size_t i = core.args.size(); i-- > 0;) ask(core.args[i], guarded);
      }
    }
  }

  Result<void> resolve(size_t index) {
    Var& v = c_.vars[index];
    if (v.extent) return {};
    const Use* first = nullptr;
    for (const bool guarded : {false, true}) {
      for (const Use& use : v.uses) {
        if (use.guarded != guarded) continue;
        if (!first) {
          first = &use;
        } else if (use.extent != first->extent && first->guarded == guarded) {
          return conflict(v, *first, use);
        }
      }
      if (first) break;
    }
    if (first) {
      v.extent = first->extent;
      return {};
    }
    if (v.shadows >= 0) {
      LEMMA_TRY_VOID(resolve(size_t(v.shadows)));  // the shadowed one is older: this ends
      c_.vars[index].extent = c_.vars[size_t(v.shadows)].extent;
      return {};
    }
    return c_.fail(v.frame, v.ast, "nothing says how far the index `" + v.name + "` goes: no read has it alone in a coordinate",
                   "state its extent where it is bound: " + syntax::quote(v.name) + " < N");
  }

 private:
  void read(const Core& core, bool guarded) {
    const bool own = guarded || core.maybe;
    const std::vector<view::Form> extents = tensor::extents(c_.graph, core.source);
    for (size_t d = 0; d < core.args.size(); ++d) {
      const Core& coordinate = c_.cores[size_t(core.args[d])];
      if (coordinate.kind == CoreKind::Var) {
        c_.vars[size_t(coordinate.var)].uses.push_back(
            {extents[d], own || core.guard >= 0, core.frame, core.ast, tensor::name(c_.graph, core.source), int(d)});
      } else {
        ask(core.args[d], guarded);
      }
    }
    ask(core.guard, false);
  }

  base::Diagnostic conflict(const Var& v, const Use& a, const Use& b) {
    const std::string x = c_.print(a.extent), y = c_.print(b.extent);
    base::Diagnostic d = c_.fail(b.frame, b.ast, "the index `" + v.name + "` runs below " + y + " here and below " + x + " in `" + a.source + "`",
                                 "state its extent where it is bound (" + syntax::quote(v.name) + " < " + x + ") and guard the read that may leave its source");
    base::Note note;
    note.span = c_.span(a.frame, a.ast);
    note.message = "dimension " + std::to_string(a.dimension + 1) + " of `" + a.source + "` has extent " + x;
    d.notes.insert(d.notes.begin(), std::move(note));
    return d;
  }

  void ask(CoreId id, bool guarded) { stack_.emplace_back(id, guarded); }

  Context& c_;
  std::vector<std::pair<CoreId, bool>> stack_;
  std::set<std::pair<CoreId, bool>> seen_;
};

}  // namespace

Result<void> find_extents(Context& context, const std::vector<CoreId>& roots) {
  Finder finder(context);
  for (CoreId root : roots) finder.visit(root);
  for (size_t v = 0; v < context.vars.size(); ++v) LEMMA_TRY_VOID(finder.resolve(v));
  return {};
}

}  // namespace lemma::language
