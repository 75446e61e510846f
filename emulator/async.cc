// Asynchronous copies. A copy's target counts as written from its issue on, and as readable by nobody until its end has
// been waited for; the data moves at the latest moment that the rules allow, so that reading too early, or writing the
// source too early, gives wrong values as well as findings.

#include <algorithm>
#include <cstring>

#include "emulator/engine.h"

namespace lemma::emulator {

// ---- cp.async: each thread waits for its own copies ----

void Engine::copy_async(Fibre& fibre, Place to, Place from, int bytes, int valid_bytes) {
  if (valid_bytes < 0 || valid_bytes > bytes) {
    find(Fault::Misuse, here(fibre), to.buffer, to.offset, {},
         "copies " + std::to_string(valid_bytes) + " of " + std::to_string(bytes) + " bytes");
    return;
  }
  if (valid_bytes > 0 && from.offset % bytes != 0) {
    find(Fault::Misaligned, here(fibre), from.buffer, from.offset, {},
         "copies " + std::to_string(bytes) + " bytes from byte " + std::to_string(from.offset) + " of " +
             (from.buffer ? from.buffer->name : "nowhere"));
  }
  if (valid_bytes > 0 && !is_inside(fibre, from, valid_bytes, 1, Kind::Read)) return;
  if (!begin_copy(fibre, to, bytes, bytes)) return;
  fibre.copies.push_back({to, from, bytes, valid_bytes, fibre.statement, fibre.copy_group});
}

void Engine::copy_wait(Fibre& fibre, int newer_groups) {
  const int first_left = newer_groups < 0 ? fibre.copy_group + 1 : fibre.copy_group - newer_groups;
  const int statement = fibre.statement;
  size_t kept = 0;
  for (const Copy& copy : fibre.copies) {
    if (copy.group >= first_left) {
      fibre.copies[kept++] = copy;
      continue;
    }
    fibre.statement = copy.statement;
    unsigned char* to = copy.to.buffer->data + copy.to.offset;
    if (copy.valid_bytes > 0)
      std::memcpy(to, access(fibre, copy.from, copy.valid_bytes, 1, Kind::Read), size_t(copy.valid_bytes));
    std::memset(to + copy.valid_bytes, 0, size_t(copy.bytes - copy.valid_bytes));
    end_copy(copy.to, copy.bytes, Access{fibre.now, uint16_t(fibre.index), uint16_t(copy.statement)});
  }
  fibre.copies.resize(kept);
  fibre.statement = statement;
}

// ---- mbarriers ----

int Engine::mbarrier(Fibre& fibre, Place place) {
  for (size_t i = 0; i < mbarriers_.size(); ++i) {
    const Place known = mbarriers_[i].place;
    if (known.buffer == place.buffer && known.offset == place.offset) return int(i);
  }
  find(Fault::Misuse, here(fibre), place.buffer, place.offset, {},
       "uses the mbarrier " + (place.buffer ? element(*place.buffer, place.offset) : "nowhere") +
           ", which nobody has initialised");
  halt(fibre);
}

void Engine::mbarrier_init(Fibre& fibre, Place place, int arrivals) {
  if (!is_inside(fibre, place, 8, 8, Kind::Write)) halt(fibre);
  access(fibre, place, 8, 8, Kind::Write);
  for (MBarrier& known : mbarriers_) {
    if (known.place.buffer != place.buffer || known.place.offset != place.offset) continue;
    known.arrivals = known.missing = arrivals;
    known.bytes = known.phase = 0;
    return;
  }
  MBarrier& barrier = mbarriers_.emplace_back();
  barrier.place = place;
  barrier.arrivals = barrier.missing = arrivals;
  // With more barriers than agents some share one, and what one's copies wrote may pass for waited for.
  barrier.agent = threads() + int(mbarriers_.size() - 1) % kMBarrierAgents;
  barrier.arriving = barrier.completed = Clock(sources());
}

void Engine::mbarrier_arrive(Fibre& fibre, Place place, int64_t bytes) {
  MBarrier& barrier = mbarriers_[size_t(mbarrier(fibre, place))];
  access(fibre, place, 8, 8, Kind::Atomic);
  if (barrier.missing == 0) {
    find(Fault::Misuse, here(fibre), place.buffer, place.offset, {},
         "arrives at " + element(*place.buffer, place.offset) + ", where all " + std::to_string(barrier.arrivals) +
             " arrivals of the phase have been");
    halt(fibre);
  }
  barrier.arriving.join(*fibre.clock);
  barrier.arriving.seen[size_t(fibre.index)] = std::max(barrier.arriving.seen[size_t(fibre.index)], fibre.now);
  release(fibre);
  barrier.bytes += bytes;
  --barrier.missing;
  complete_phase_if_due(barrier);
}

void Engine::complete_phase_if_due(MBarrier& barrier) {
  if (barrier.missing > 0 || barrier.bytes != 0) return;
  barrier.phase ^= 1;
  barrier.missing = barrier.arrivals;
  barrier.completed = barrier.arriving;
  make_ready(barrier.waiting, nullptr);
  barrier.waiting.clear();
  idle_rounds_ = 0;
}

bool Engine::mbarrier_wait(Fibre& fibre, Place place, int parity, bool until_done) {
  const int index = mbarrier(fibre, place);
  MBarrier& barrier = mbarriers_[size_t(index)];
  access(fibre, place, 8, 8, Kind::Atomic);
  bool has_waited = false;
  while ((barrier.phase & 1) == (parity & 1)) {
    if (has_waited && !until_done) return false;
    has_waited = true;
    fibre.waits_for = index;
    fibre.parity = parity;
    barrier.waiting.push_back(&fibre);
    suspend(fibre, until_done ? State::AtMBarrier : State::Polling);
  }
  own(fibre).join(barrier.completed);
  return true;
}

// ---- bulk copies ----

void Engine::check_bulk(Fibre& fibre, Place global, int64_t bytes) {
  if (bytes > 0 && bytes % 16 == 0 && global.offset % 16 == 0) return;
  find(Fault::Misaligned, here(fibre), global.buffer, global.offset, {},
       "copies " + std::to_string(bytes) + " bytes in bulk, at byte " + std::to_string(global.offset) + " of " +
           (global.buffer ? global.buffer->name : "nowhere") + ", and both must be multiples of 16");
  if (bytes <= 0) halt(fibre);
}

void Engine::bulk_load(Fibre& fibre, Place to, Place from, int64_t bytes, Place place) {
  const int index = mbarrier(fibre, place);
  check_bulk(fibre, from, bytes);
  const bool source = is_inside(fibre, from, bytes, 1, Kind::Read);
  if (!source || !begin_copy(fibre, to, bytes, 16)) halt(fibre);  // its bytes would never come
  loads_.push_back({to, from, bytes, index, here(fibre)});
}

void Engine::land(size_t which) {
  const BulkLoad load = loads_[which];
  loads_.erase(loads_.begin() + long(which));
  Fibre& issuer = *fibres_[size_t(load.issuer.thread)];
  const int statement = std::exchange(issuer.statement, load.issuer.statement);
  // Inside, as was seen at the issue.
  std::memcpy(load.to.buffer->data + load.to.offset, access(issuer, load.from, load.bytes, 1, Kind::Read),
              size_t(load.bytes));
  issuer.statement = statement;
  MBarrier& barrier = mbarriers_[size_t(load.mbarrier)];
  const uint32_t stamp = ++stamp_;
  end_copy(load.to, load.bytes, Access{stamp, uint16_t(barrier.agent), uint16_t(load.issuer.statement)});
  barrier.arriving.seen[size_t(barrier.agent)] = stamp;
  barrier.bytes -= load.bytes;
  complete_phase_if_due(barrier);
}

// In order and at once, last and late, or anyhow.
void Engine::land_some() {
  if (launch_.options.order == Order::RoundRobin) land(0);
  if (launch_.options.order == Order::Random && random_() % 8 == 0) land(random_() % loads_.size());
}

void Engine::check_fence(Fibre& fibre, Place from, int64_t bytes) {
  const Buffer& buffer = *from.buffer;
  const std::span<Cell> all = cells(from, bytes);
  for (size_t i = 0; i < all.size(); ++i) {
    const Access write = all[i].write;
    if (all[i].write_block != block_number_ || write.source >= threads()) continue;
    if (write.stamp <= fibres_[write.source]->fenced) continue;
    const Party writer = party(write, block_number_);
    const int64_t offset = from.offset + (int64_t(i) << buffer.shift);
    find(Fault::NoFence, here(fibre), &buffer, offset, writer,
         "starts a bulk store of " + element(buffer, offset) + ", which " + describe(writer) +
             " wrote with no lm_fence_async after it");
    return;
  }
}

void Engine::bulk_store(Fibre& fibre, Place to, Place from, int64_t bytes) {
  check_bulk(fibre, to, bytes);
  if (!is_inside(fibre, from, bytes, 16, Kind::Read)) return;
  if (fibre.store_agent < 0) fibre.store_agent = threads() + kMBarrierAgents + store_agents_++ % kStoreAgents;
  access(fibre, from, bytes, 1, Kind::Read);
  check_fence(fibre, from, bytes);
  const Access as{++stamp_, uint16_t(fibre.store_agent), uint16_t(fibre.statement)};
  for (Cell& cell : cells(from, bytes)) note(fibre, *from.buffer, cell.reads, as);
  if (!begin_copy(fibre, to, bytes, 1)) return;
  fibre.stores.push_back({to, from, bytes, fibre.statement, fibre.store_group, as.stamp, false});
}

void Engine::copy_store(BulkStore& store) {
  std::memcpy(store.to.buffer->data + store.to.offset, store.from.buffer->data + store.from.offset,
              size_t(store.bytes));
  store.is_copied = true;
}

void Engine::bulk_wait(Fibre& fibre, int newer_groups, bool reads_only) {
  const int first_left = fibre.store_group - newer_groups;
  for (BulkStore& store : fibre.stores) {
    if (store.group >= first_left) continue;
    if (!store.is_copied) copy_store(store);
    uint32_t& seen = own(fibre).seen[size_t(fibre.store_agent)];
    seen = std::max(seen, store.stamp);
    if (!reads_only)
      end_copy(store.to, store.bytes, Access{fibre.now, uint16_t(fibre.index), uint16_t(store.statement)});
  }
  if (!reads_only) std::erase_if(fibre.stores, [&](const BulkStore& store) { return store.group < first_left; });
}

}  // namespace lemma::emulator
