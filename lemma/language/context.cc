// The tables of one elaboration, and its messages.
#include "lemma/base/hash.h"
#include "lemma/language/core.h"

#include <algorithm>

namespace lemma::language {

namespace {
constexpr int64_t most_steps = 4'000'000;
}

Context::Context(const Unit& program_unit, const Unit* prelude_unit) : program(program_unit), prelude(prelude_unit) {
  Frame root;
  root.unit = &program;
  add_frame(std::move(root));
  environments_.push_back({});
  environment_ids_[{}] = 0;
}

size_t Context::KeyHash::operator()(const Key& k) const {
  return base::mix(base::mix(size_t(k.frame), size_t(k.ast)), size_t(k.environment));
}

base::Span Context::span(int frame, NodeId id) const {
  return id < 0 ? base::Span{} : frames[size_t(frame)].unit->source.span(ast(frame, id).place);
}

base::Diagnostic Context::fail(int frame, NodeId id, std::string message, std::string suggestion) const {
  return fail_at(frame, id < 0 ? Place{} : ast(frame, id).place, std::move(message), std::move(suggestion));
}

base::Diagnostic Context::fail_at(int frame, Place place, std::string message, std::string suggestion) const {
  // The place in the user's own text comes first; what it led to in the prelude is a note.
  int at = frame;
  Place shown = place;
  std::vector<base::Note> notes;
  while (frames[size_t(at)].unit->prelude && frames[size_t(at)].caller >= 0) {
    const Frame& f = frames[size_t(at)];
    if (notes.empty()) {
      notes.push_back({f.unit->source.span(shown), "in the prelude's `" + f.function->name.name + "`"});
    }
    shown = ast(f.caller, f.call).place;
    at = f.caller;
  }
  base::Diagnostic out = frames[size_t(at)].unit->source.error(shown, std::move(message), std::move(suggestion));
  for (int up = at; frames[size_t(up)].caller >= 0 && notes.size() < 6; up = frames[size_t(up)].caller) {
    const Frame& f = frames[size_t(up)];
    if (!f.function) break;
    base::Note note{span(f.caller, f.call), "in this call of `" + f.function->name.name + "`"};
    if (notes.empty() || !(notes.back() == note)) notes.push_back(std::move(note));
  }
  out.notes = std::move(notes);
  return out;
}

Result<void> Context::step(int frame, NodeId id) {
  if (++steps <= most_steps) return {};
  return fail(frame, id, "the functions of this program expand to more than 4,000,000 operations",
              "name intermediate values in equations of their own");
}

std::string Context::print(const view::Form& form) const {
  view::Names names;
  names.size = [this](int s) { return graph.sizes[size_t(s)].name; };
  names.index = [](int i) { return "i" + std::to_string(i); };
  names.data = [](int i) { return "data" + std::to_string(i); };
  return view::print(form, names);
}

int Context::symbol(int frame, const std::string& name) {
  const Frame& f = frames[size_t(frame)];
  if (const auto it = f.names.find(name); it != f.names.end() && it->second.kind == Binding::Index) return it->second.symbol;
  return symbols_.try_emplace({frame, name}, int(symbols_.size())).first->second;
}

std::optional<int> Context::known_symbol(int frame, const std::string& name) const {
  const Frame& f = frames[size_t(frame)];
  if (const auto it = f.names.find(name); it != f.names.end() && it->second.kind == Binding::Index) return it->second.symbol;
  const auto it = symbols_.find({frame, name});
  if (it == symbols_.end()) return std::nullopt;
  return it->second;
}

int Context::intern(Environment e) {
  const auto [it, added] = environment_ids_.try_emplace(e, int(environments_.size()));
  if (added) environments_.push_back(std::move(e));
  return it->second;
}

int Context::bind(int environment, int symbol, CoreId core) {
  Environment e = environments_[size_t(environment)];
  const auto it = std::lower_bound(e.begin(), e.end(), std::pair(symbol, -1));
  if (it != e.end() && it->first == symbol) it->second = core;
  else e.insert(it, {symbol, core});
  return intern(std::move(e));
}

int Context::unbind(int environment, int symbol) {
  Environment e = environments_[size_t(environment)];
  e.erase(std::remove_if(e.begin(), e.end(), [&](const auto& p) { return p.first == symbol; }), e.end());
  return intern(std::move(e));
}

std::optional<CoreId> Context::bound(int environment, int symbol) const {
  const Environment& e = environments_[size_t(environment)];
  const auto it = std::lower_bound(e.begin(), e.end(), std::pair(symbol, -1));
  if (it == e.end() || it->first != symbol) return std::nullopt;
  return it->second;
}

void Context::clear_equation() {
  cores.clear();
  vars.clear();
  folds.clear();
  frames.resize(1);
  frames[0].names.clear();
  frames[0].locals.clear();
  memo.clear();
  frame_memo.clear();
  symbols_.clear();
  environment_ids_.clear();
  environments_.clear();
  environments_.push_back({});
  environment_ids_[{}] = 0;
}

}  // namespace lemma::language
