// Barriers of the block and of some of its threads: bar.sync and bar.arrive.

#include "emulator/engine.h"

namespace lemma::emulator {

void Engine::barrier(Fibre& fibre, int id, int count, bool waits) {
  if (id < 0 || id >= kBarriers) {
    find(Fault::Misuse, here(fibre), nullptr, 0, {},
         "uses barrier " + std::to_string(id) + ", and there are 0 to " + std::to_string(kBarriers - 1));
    halt(fibre);
  }
  Barrier& barrier = barriers_[size_t(id)];
  if (count == 0) count = threads();
  if (id == 0 && (count != threads() || !waits)) {
    find(Fault::Misuse, here(fibre), nullptr, 0, {}, "uses barrier 0, which is the block's, for some threads only");
    halt(fibre);
  }
  if (barrier.arrived == 0) {
    ++barrier.generation;
    barrier.expected = count;
    barrier.statement = fibre.statement;
    if (id != 0) barrier.joined.clear();
  }
  if (barrier.expected != count) {
    find(Fault::Divergence, here(fibre), nullptr, 0, {},
         "comes to barrier " + std::to_string(id) + " for " + std::to_string(count) +
             " threads, and others came to it at " + describe(barrier.statement) + " for " +
             std::to_string(barrier.expected));
    halt(fibre);
  }
  if (id == 0 && barrier.statement != fibre.statement) {
    const Party other{block_, barrier.waiting.front()->index, barrier.statement};
    find(Fault::Divergence, here(fibre), nullptr, 0, other,
         "waits for the block, and " + describe(other) + " waits for it elsewhere");
  }
  if (fibre.arrivals[id] == barrier.generation) {
    find(Fault::Misuse, here(fibre), nullptr, 0, {},
         "comes to barrier " + std::to_string(id) + " a second time before the others have come once");
    halt(fibre);
  }
  fibre.arrivals[id] = barrier.generation;
  ++barrier.arrived;
  if (id != 0) {
    barrier.joined.join(*fibre.clock);
    barrier.joined.seen[size_t(fibre.index)] = std::max(barrier.joined.seen[size_t(fibre.index)], fibre.now);
  }
  if (waits) barrier.waiting.push_back(&fibre);
  if (barrier.arrived >= barrier.expected) {
    release_barrier(fibre, barrier);
  } else if (waits) {
    fibre.waits_for = id;
    suspend(fibre, State::AtBarrier);
  } else {
    release(fibre);
  }
}

void Engine::release_barrier(Fibre& last, Barrier& barrier) {
  if (int(barrier.waiting.size()) == threads()) {
    // Everybody knows everything; only what the agents did is in the vectors.
    if (!mbarriers_.empty() || store_agents_ > 0) {
      const auto known = std::make_shared<Clock>(sources());
      for (const Fibre* fibre : barrier.waiting) known->join(*fibre->clock);
      for (Fibre* fibre : barrier.waiting) fibre->clock = known;
    }
    for (Fibre* fibre : barrier.waiting) fibre->clock->floor = stamp_;  // whoever shares it is here too
  } else {
    const auto known = std::make_shared<Clock>(barrier.joined);  // the waiting threads' own clocks are in it
    for (Fibre* fibre : barrier.waiting) fibre->clock = known;
  }
  ++stamp_;
  for (Fibre* fibre : barrier.waiting) fibre->now = stamp_;
  release(last);
  make_ready(barrier.waiting, &last);
  barrier.waiting.clear();
  barrier.arrived = 0;
  idle_rounds_ = 0;
}

}  // namespace lemma::emulator
