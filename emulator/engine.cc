#include "emulator/engine.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "lemma/base/check.h"

namespace lemma::emulator {
namespace {

// Floats of it are nan, integers -1: shared memory starts as nobody would want it.
constexpr int kGarbage = 0xff;

// Steps without giving way, where no preemption is asked for: a thread that spins must not stop the others.
constexpr int kFuel = 1 << 16;

Buffer shared_buffer(const char* name, int64_t count, int element_bytes) {
  Buffer buffer;
  buffer.name = name;
  buffer.bytes = count * element_bytes;
  buffer.element_bytes = element_bytes;
  buffer.shared = true;
  buffer.initialised = false;
  buffer.storage.assign(size_t(buffer.bytes), kGarbage);
  buffer.data = buffer.storage.data();  // stays where it is when the buffer is moved
  return buffer;
}

}  // namespace

Engine::Engine(Entry entry, Thread** current, Stacks& stacks, const Launch& launch, std::vector<Buffer> buffers)
    : entry_(entry),
      current_(current),
      stacks_(stacks),
      launch_(launch),
      buffers_(std::move(buffers)),
      scalars_(launch.scalars),
      random_(launch.options.seed) {
  for (Buffer& buffer : buffers_) bound_.push_back(&buffer);
  arguments_ = {bound_.data(), scalars_.data()};
  pool_ = &shared_.emplace_back();
  *pool_ = shared_buffer("the shared pool", launch.dynamic_shared, 1);
  order_.resize(size_t(launch.blocks[0] * launch.blocks[1] * launch.blocks[2]));
  std::iota(order_.begin(), order_.end(), 0);
  if (launch.options.order == Order::Reversed) std::reverse(order_.begin(), order_.end());
  if (launch.options.order == Order::Random) std::shuffle(order_.begin(), order_.end(), random_);
}

Engine::~Engine() {
  // A fibre that still waits is unwound here, through engine and kernel, while all else stands.
  for (const auto& fibre : fibres_) fibre->self = {};
}

Report Engine::run() {
  make_fibres();
  for (const int64_t block : order_) {
    start_block(block);
    run_block();
    if (!halted_) finish_block();
    if (halted_) break;
  }
  report_.stopped = halted_;
  return std::move(report_);
}

void Engine::make_fibres() {
  const int count = launch_.threads;
  ready_.resize(size_t(count));
  warps_.resize(size_t((count + 31) / 32));
  for (int i = 0; i < count; ++i) {
    fibres_.push_back(std::make_unique<Fibre>());
    Fibre& fibre = *fibres_.back();
    fibre.host = &host();
    fibre.engine = this;
    fibre.index = i;
    for (int d = 0; d < 3; ++d) fibre.blocks[d] = int(launch_.blocks[d]);
    warps_[size_t(i / 32)].lanes.push_back(&fibre);
    fibre.self =
        boost::context::fiber(std::allocator_arg, StackAllocator{&stacks_, size_t(launch_.options.stack_bytes)},
                              [this, &fibre](boost::context::fiber&& scheduler) {
                                fibre.scheduler = std::move(scheduler);
                                for (;;) {  // once a block
                                  entry_(&arguments_);
                                  --live_;
                                  idle_rounds_ = 0;
                                  suspend(fibre, State::Done);
                                }
                                return std::move(fibre.scheduler);
                              });
  }
  barriers_.resize(kBarriers);
  for (Barrier& barrier : barriers_) barrier.joined = Clock(sources());
}

void Engine::start_block(int64_t block) {
  block_ = block;
  ++block_number_;
  stamp_ = 1;
  lists_.clear();
  mbarriers_.clear();
  loads_.clear();
  store_agents_ = 0;
  idle_rounds_ = 0;
  for (Buffer& buffer : shared_) std::fill(buffer.storage.begin(), buffer.storage.end(), kGarbage);
  for (Barrier& barrier : barriers_) {
    barrier.arrived = 0;
    barrier.waiting.clear();
    barrier.joined.clear();
  }
  live_ = threads();
  ready_first_ = ready_count_ = 0;
  const auto nothing_known = std::make_shared<Clock>(sources());
  std::vector<Fibre*> all;
  for (const auto& fibre : fibres_) {
    fibre->statement = 0;
    fibre->block[0] = int(block % launch_.blocks[0]);
    fibre->block[1] = int(block / launch_.blocks[0] % launch_.blocks[1]);
    fibre->block[2] = int(block / launch_.blocks[0] / launch_.blocks[1]);
    fibre->now = 1;
    fibre->fenced = 0;
    fibre->clock = nothing_known;
    fibre->copies.clear();
    fibre->copy_group = 0;
    fibre->stores.clear();
    fibre->store_group = 0;
    fibre->store_agent = -1;
    all.push_back(fibre.get());
  }
  for (Warp& warp : warps_) warp.arrived = 0;
  make_ready(all, nullptr);
}

void Engine::run_block() {
  while (!halted_) {
    if (!loads_.empty()) land_some();
    if (ready_count_ > 0) {
      resume(next());
      continue;
    }
    if (live_ == 0) return;
    if (!loads_.empty()) {
      land(0);
    } else if (!wake_pollers()) {
      report_stuck();
      halted_ = true;
    }
  }
}

// A block's shared memory goes when its last thread has: nothing may still be read from it.
void Engine::finish_block() {
  while (!loads_.empty()) land(0);
  for (const auto& fibre : fibres_) {
    for (BulkStore& store : fibre->stores) {
      if (!store.is_copied) {
        find(Fault::Misuse, {block_, fibre->index, store.statement}, store.from.buffer, store.from.offset, {},
             "starts a bulk store of " + element(*store.from.buffer, store.from.offset) +
                 " that nobody waits for before the block ends");
        copy_store(store);
      }
      end_copy(store.to, store.bytes, Access{store.stamp, uint16_t(fibre->store_agent), uint16_t(store.statement)});
    }
  }
}

void Engine::resume(Fibre& fibre) {
  const int preempt = launch_.options.preempt;
  fuel_given_ = preempt > 0 ? int(random_() % (2 * uint64_t(preempt))) : kFuel;
  fibre.fuel = fuel_given_;
  *current_ = &fibre;
  ++report_.switches;
  fibre.self = std::move(fibre.self).resume();
}

void Engine::suspend(Fibre& fibre, State state) {
  fibre.state = state;
  count_steps(fibre);
  fibre.scheduler = std::move(fibre.scheduler).resume();
}

void Engine::halt(Fibre& fibre) {
  halted_ = true;
  for (;;) suspend(fibre, State::Done);
}

void Engine::count_steps(Fibre& fibre) {
  report_.steps += fuel_given_ - fibre.fuel;
  fuel_given_ = fibre.fuel;
}

void Engine::yield(Fibre& fibre) {
  count_steps(fibre);
  if (report_.steps > launch_.options.most_steps) {
    find(Fault::Endless, here(fibre), nullptr, 0, {},
         "is still running after " + std::to_string(report_.steps) + " steps of all threads");
    halt(fibre);
  }
  make_ready(fibre);
  // In reversed order the latest is taken first; one that gives way must not be that.
  if (launch_.options.order == Order::Reversed && ready_count_ > 1) {
    const size_t size = ready_.size();
    ready_first_ = (ready_first_ + size - 1) % size;
    std::swap(ready_[ready_first_], ready_[(ready_first_ + ready_count_) % size]);
  }
  suspend(fibre, State::Ready);  // already in the ring
}

void Engine::make_ready(Fibre& fibre) {
  LEMMA_CHECK(ready_count_ < ready_.size(), "a thread is ready twice");
  fibre.state = State::Ready;
  ready_[(ready_first_ + ready_count_++) % ready_.size()] = &fibre;
}

void Engine::make_ready(std::span<Fibre* const> fibres, const Fibre* except) {
  for (Fibre* fibre : fibres) {
    if (fibre != except) make_ready(*fibre);
  }
}

Fibre& Engine::next() {
  const size_t size = ready_.size(), last = (ready_first_ + ready_count_ - 1) % size;
  if (launch_.options.order == Order::Reversed) {
    --ready_count_;
    return *ready_[last];
  }
  if (launch_.options.order == Order::Random) {
    std::swap(ready_[ready_first_], ready_[(ready_first_ + random_() % ready_count_) % size]);
  }
  Fibre& fibre = *ready_[ready_first_];
  ready_first_ = ready_first_ + 1 == size ? 0 : ready_first_ + 1;
  --ready_count_;
  return fibre;
}

Buffer* Engine::shared(int key, const char* name, int64_t count, int element_bytes) {
  if (size_t(key) >= shared_by_key_.size()) shared_by_key_.resize(size_t(key) + 1);
  if (shared_by_key_[size_t(key)]) return shared_by_key_[size_t(key)];
  shared_.push_back(shared_buffer(name, count, element_bytes));
  return shared_by_key_[size_t(key)] = &shared_.back();
}

}  // namespace lemma::emulator
