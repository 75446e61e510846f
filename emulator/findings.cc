// How findings are worded and kept.

#include "emulator/engine.h"

namespace lemma::emulator {

const char* name(Fault fault) {
  switch (fault) {
    case Fault::Race:
      return "race";
    case Fault::UnderCopy:
      return "access under a copy";
    case Fault::OutOfBounds:
      return "out of bounds";
    case Fault::Uninitialised:
      return "uninitialised read";
    case Fault::Misaligned:
      return "misaligned access";
    case Fault::NoFence:
      return "missing fence";
    case Fault::Divergence:
      return "divergence";
    case Fault::Deadlock:
      return "deadlock";
    case Fault::Endless:
      return "endless";
    case Fault::Misuse:
      return "misuse";
  }
  return "";
}

Party Engine::party(Access access, uint32_t block) const {
  const int64_t where = block ? order_[block - 1] : block_;
  int thread = access.source;
  if (thread >= threads()) {  // an agent's access is told as its issuer's
    const int agent = thread - threads();
    thread = -1;
    for (const auto& fibre : fibres_) {
      if (agent >= kMBarrierAgents && fibre->store_agent == access.source) thread = fibre->index;
    }
  }
  return {where, thread, access.statement};
}

std::string Engine::describe(int statement) const {
  std::string out = "statement " + std::to_string(statement);
  if (statement >= 0 && size_t(statement) < launch_.statements.size() &&
      !launch_.statements[size_t(statement)].empty()) {
    out += " (" + launch_.statements[size_t(statement)] + ")";
  }
  return out;
}

std::string Engine::describe(const Party& party) const {
  std::string who = party.thread < 0 ? "the bulk load" : "thread " + std::to_string(party.thread);
  if (party.block != block_) who += " of block " + std::to_string(party.block);
  return who + " at " + describe(party.statement);
}

std::string Engine::element(const Buffer& buffer, int64_t offset) const {
  const int64_t index =
      offset >= 0 ? offset / buffer.element_bytes : -((-offset + buffer.element_bytes - 1) / buffer.element_bytes);
  return buffer.name + "[" + std::to_string(index) + "]";
}

void Engine::find(Fault fault, const Party& who, const Buffer* buffer, int64_t offset, std::optional<Party> other,
                  const std::string& what) {
  const std::string buffer_name = buffer ? buffer->name : std::string();
  for (Finding& known : report_.findings) {
    const bool same_other =
        known.other.has_value() == other.has_value() && (!other || known.other->statement == other->statement);
    if (known.fault == fault && known.who.statement == who.statement && known.buffer == buffer_name && same_other) {
      ++known.count;
      return;
    }
  }
  if (report_.findings.size() >= size_t(launch_.options.most_findings)) return;
  Finding finding;
  finding.fault = fault;
  finding.kernel = launch_.kernel;
  finding.who = who;
  finding.buffer = buffer_name;
  finding.element = buffer ? offset / buffer->element_bytes : 0;
  finding.other = other;
  finding.message = std::string(name(fault)) + " in kernel " + launch_.kernel + ", " + describe(who.statement) +
                    ": thread " + std::to_string(who.thread) + " of block " + std::to_string(who.block) + " " + what;
  report_.findings.push_back(std::move(finding));
  if (report_.findings.size() >= size_t(launch_.options.most_findings)) halted_ = true;
}

}  // namespace lemma::emulator
