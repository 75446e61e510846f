#include "lemma/emit/states.h"

#include "lemma/emit/store.h"
#include "lemma/emit/value.h"

namespace lemma::emit {

using scalar::Expr;
using scalar::Kind;
using tile::Access;

std::string declared_type(Kind kind, bool varying) { return varying ? vector_type(kind) : c_type(kind); }

States declare_states(Unit& unit, const FoldTask& task, bool varying, const std::string& stem) {
  States out;
  out.varying = varying;
  for (size_t c : task.components) {
    const Kind kind = task.fold.kinds[c];
    Frame frame;
    const Value identity = emit_value(unit, frame, task.fold.identity[c]);
    out.names.push_back(unit.fresh(stem));
    unit.out.line(declared_type(kind, varying) + " " + out.names.back() + " = " +
                  (varying ? as_vector(identity, kind) : identity.text) + ";");
  }
  return out;
}

void reset_states(Unit& unit, const FoldTask& task, const States& states) {
  for (size_t i = 0; i < task.components.size(); ++i) {
    const Kind kind = task.fold.kinds[task.components[i]];
    Frame frame;
    const Value identity = emit_value(unit, frame, task.fold.identity[task.components[i]]);
    unit.out.line(states.names[i] + " = " + (states.varying ? as_vector(identity, kind) : identity.text) + ";");
  }
}

void load_states(Unit& unit, const Frame& frame, const FoldTask& task, const States& states) {
  for (size_t i = 0; i < task.components.size(); ++i) {
    const size_t c = task.components[i];
    const Access& access = task.states[c];
    const std::string offset = unit.form_text(unit.simplify(unit.offset(access.buffer, access.coords)), frame);
    unit.out.line(states.names[i] + " = " + unit.load(access.buffer, offset) + ";");
  }
}

void bind_states(Frame& frame, const FoldTask& task, const States& states) {
  const size_t reads = task.fold.reads;
  frame.reads.resize(reads + task.fold.kinds.size());
  frame.present.resize(frame.reads.size());
  frame.read_kinds.resize(reads);
  frame.read_kinds.insert(frame.read_kinds.end(), task.fold.kinds.begin(), task.fold.kinds.end());
  for (size_t i = 0; i < task.components.size(); ++i) {
    frame.reads[reads + task.components[i]] = {states.names[i], states.varying};
  }
}

void step(Unit& unit, Frame& frame, const FoldTask& task, const States& states, const std::string& mask) {
  bind_states(frame, task, states);
  const std::vector<Value> next = emit_values(unit, frame, task.body.roots);
  std::vector<std::string> texts;
  for (size_t i = 0; i < next.size(); ++i) {
    const Kind kind = task.fold.kinds[task.components[i]];
    std::string text = states.varying ? as_vector(next[i], kind) : next[i].text;
    if (!mask.empty()) {
      text = std::string("lm_sel_") + vector_suffix(kind) + "(" + mask + ", " + text + ", " + states.names[i] + ")";
    }
    if (next.size() > 1) {
      const std::string name = unit.fresh("s");
      unit.out.line("const " + declared_type(kind, states.varying) + " " + name + " = " + text + ";");
      text = name;
    }
    texts.push_back(text);
  }
  for (size_t i = 0; i < next.size(); ++i) unit.out.line(states.names[i] + " = " + texts[i] + ";");
}

void store_states(Unit& unit, Frame& frame, const FoldTask& task, const States& states, const LaneMask& mask) {
  for (size_t i = 0; i < task.components.size(); ++i) {
    const size_t c = task.components[i];
    const Value value{states.names[i], states.varying};
    if (states.varying) store_lanes(unit, frame, task.states[c], value, task.fold.kinds[c], std::nullopt, mask);
    else store_scalar(unit, frame, task.states[c], value, task.fold.kinds[c], std::nullopt);
  }
}

void load_lane_states(Unit& unit, const Frame& frame, const FoldTask& task, const States& states, const std::string& count) {
  for (size_t i = 0; i < task.components.size(); ++i) {
    const size_t c = task.components[i];
    const Access& access = task.states[c];
    const view::Formula always;
    const std::vector<Access> reads{access};
    const Kind own = scalar::kind_of(unit.buffer(access.buffer).type);
    const Expr root = scalar::cast(scalar::arg(unit.arena, own, 0), task.fold.kinds[c]);
    const BodyText text{&always, &reads, {root}};
    unit.out.open("");
    LaneBody body(unit, frame, text, "LM_LANES", false);
    body.row();
    body.lanes({}, count, [&](Frame& inner, const LaneMask&) {
      const Value v = emit_value(unit, inner, root);
      unit.out.line(states.names[i] + " = " + as_vector(v, task.fold.kinds[c]) + ";");
    });
    unit.out.close();
  }
}

}  // namespace lemma::emit
