#include "lemma/emit/device/vectors.h"

#include <algorithm>

namespace lemma::emit::device {

using scalar::DType;
using scalar::Kind;
using tile::Access;
using view::AtomKind;
using view::Form;

bool Vectors::runs(const Access& access) const {
  const tile::Buffer& buffer = text_.buffer(access.buffer);
  const Held held = text_.held.at(access.buffer);
  if (held != Held::Global && (held != Held::Shared || buffer.hints.placed)) return false;
  if (text_.atomic_buffers.count(access.buffer) || scalar::bits(buffer.type) < 8 || buffer.type == DType::Bool) return false;
  if (!access.guard.is_always()) return false;
  for (const Form& c : access.coords) {
    if (c.uses(AtomKind::Data)) return false;
  }
  const auto split = text_.offset(access.buffer, access.coords).split(along_);
  return split && split->coefficient == Form(1);
}

std::optional<Vectors> Vectors::find(Text& text, const std::vector<Access>& reads, const std::vector<bool>& which,
                                     const std::vector<const Access*>& stores, tile::Var along) {
  Vectors out(text, along);
  int least = 64;
  const auto take = [&](std::vector<Run>& list, const Access& a, size_t number) {
    list.push_back({&a, number, text.fresh("q")});
    least = std::min(least, scalar::bits(text.buffer(a.buffer).type));
  };
  for (size_t r = 0; r < reads.size(); ++r) {
    if (which[r] && out.runs(reads[r])) take(out.reads_, reads[r], r);
  }
  for (size_t s = 0; s < stores.size(); ++s) {
    if (!out.runs(*stores[s])) return std::nullopt;
    take(out.stores_, *stores[s], s);
  }
  if (out.reads_.empty() && out.stores_.empty()) return std::nullopt;
  out.width_ = least >= 32 ? 4 : least == 16 ? 8 : 16;
  return out;
}

std::string Vectors::aligned(const Scope& scope, const std::vector<tile::Var>& others) const {
  std::string all;
  const auto add = [&](const Form& f) {
    const auto n = f.constant();
    if (n && *n % width_ == 0) return;
    all += (all.empty() ? "" : " | ") + text_.form(f, scope);
  };
  for (const auto* list : {&reads_, &stores_}) {
    for (const Run& run : *list) {
      Form at = text_.offset(run.access->buffer, run.access->coords).substitute_index(along_, Form(0));
      for (tile::Var v : others) {
        const auto split = at.split(v);
        if (!split) return "false";
        add(split->coefficient);
        at = at.substitute_index(v, Form(0));
      }
      add(at);
    }
  }
  return all.empty() ? "true" : "((" + all + ") & " + std::to_string(width_ - 1) + ") == 0";
}

std::string Vectors::type(const Run& run) const { return std::string(storage_name(text_.dialect, text_.buffer(run.access->buffer).type)); }

void Vectors::load(const Scope& scope, int number) {
  for (const Run& run : reads_) {
    text_.out.line("const lm_vec<" + type(run) + ", " + std::to_string(width_) + "> " + run.name + "_" + std::to_string(number) + " = lm_load<" + std::to_string(width_) + ">(" +
                   text_.buffer_names.at(run.access->buffer) + ", " + text_.form(text_.offset(run.access->buffer, run.access->coords), scope) + ");");
  }
}

void Vectors::element(Scope& scope, const std::string& u, int number) const {
  for (const Run& run : reads_) text_.made_read(scope, run.number, run.access->buffer, run.name + "_" + std::to_string(number) + "[" + u + "]");
}

void Vectors::begin_stores() {
  for (const Run& run : stores_) text_.out.line("lm_vec<" + type(run) + ", " + std::to_string(width_) + "> " + run.name + ";");
}

void Vectors::set(size_t store, const std::string& u, const std::string& value, Kind kind) {
  const Run& run = stores_[store];
  const DType t = text_.buffer(run.access->buffer).type;
  const std::string stored = text_.stored_value(run.access->buffer, value, kind);
  text_.out.line(run.name + "[" + u + "] = " + (scalar::bits(t) < 32 ? convert(text_.dialect, storage_name(text_.dialect, t), stored) : stored) + ";");
}

void Vectors::end_stores(const Scope& scope) {
  for (const Run& run : stores_) {
    text_.out.line("lm_store(" + text_.buffer_names.at(run.access->buffer) + ", " + text_.form(text_.offset(run.access->buffer, run.access->coords), scope) + ", " +
                   run.name + ");");
  }
}

}  // namespace lemma::emit::device
