// When no thread can go on: who waits where, and for what.

#include <map>

#include "emulator/engine.h"

namespace lemma::emulator {
namespace {

// Rounds in which threads that ask again and again all asked in vain before they count as stuck.
constexpr int kIdleRounds = 64;

// "0-31, 40" of ascending numbers.
std::string ranges(const std::vector<int>& numbers) {
  std::string out;
  for (size_t i = 0; i < numbers.size();) {
    size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    if (!out.empty()) out += ", ";
    out += std::to_string(numbers[i]);
    if (end - i > 1) out += "-" + std::to_string(numbers[end - 1]);
    i = end;
  }
  return out;
}

}  // namespace

bool Engine::wake_pollers() {
  if (++idle_rounds_ > kIdleRounds) return false;
  bool woken = false;
  for (MBarrier& barrier : mbarriers_) {
    std::erase_if(barrier.waiting, [&](Fibre* fibre) {
      if (fibre->state != State::Polling) return false;
      make_ready(*fibre);
      return woken = true;
    });
  }
  return woken;
}

std::string Engine::waiting_for(const Fibre& fibre) const {
  switch (fibre.state) {
    case State::Done:
      return "ended";
    case State::AtBarrier: {
      const Barrier& barrier = barriers_[size_t(fibre.waits_for)];
      return "wait at " + describe(fibre.statement) + " for barrier " + std::to_string(fibre.waits_for) + " (" +
             std::to_string(barrier.arrived) + " of " + std::to_string(barrier.expected) + " came)";
    }
    case State::InWarp:
      return "wait at " + describe(fibre.statement) + " for the other lanes of their warp";
    case State::AtMBarrier:
    case State::Polling: {
      const MBarrier& barrier = mbarriers_[size_t(fibre.waits_for)];
      return "wait at " + describe(fibre.statement) + " for the phase of parity " + std::to_string(fibre.parity) +
             " of mbarrier " + element(*barrier.place.buffer, barrier.place.offset) + " (" +
             std::to_string(barrier.missing) + " of " + std::to_string(barrier.arrivals) + " arrivals and " +
             std::to_string(barrier.bytes) + " bytes are missing)";
    }
    case State::Ready:
      break;
  }
  return "can go on";
}

void Engine::report_stuck() {
  std::map<std::string, std::vector<int>> groups;
  const Fibre* first = nullptr;
  bool ended = false, in_warp = false, at_mbarrier = false;
  int at_barrier[kBarriers] = {};
  for (const auto& fibre : fibres_) {
    groups[waiting_for(*fibre)].push_back(fibre->index);
    ended = ended || fibre->state == State::Done;
    in_warp = in_warp || fibre->state == State::InWarp;
    at_mbarrier = at_mbarrier || fibre->state == State::AtMBarrier || fibre->state == State::Polling;
    if (fibre->state == State::AtBarrier) at_barrier[fibre->waits_for] = 1;
    if (!first && fibre->state != State::Done) first = fibre.get();
  }
  int barriers = 0;
  for (const int used : at_barrier) barriers += used;
  // Mbarriers wait for events, not for threads that should stand beside them; without any, threads parted ways.
  const bool parted = !at_mbarrier && (ended || in_warp || barriers > 1);
  std::string text;
  std::optional<Party> other;
  for (const auto& [what, who] : groups) {
    if (!text.empty()) text += "; ";
    text += (who.size() == 1 ? "thread " : "threads ") + ranges(who) + " " + what;
    const Fibre& fibre = *fibres_[size_t(who.front())];
    if (!other && fibre.statement != first->statement) other = here(fibre);
  }
  find(parted ? Fault::Divergence : Fault::Deadlock, here(*first), nullptr, 0, other, "cannot go on: " + text);
}

}  // namespace lemma::emulator
