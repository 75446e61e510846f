// The engine: runs the blocks of a launch one after another, each thread of a block as a fibre, and watches what they
// do. The parts are one file each: scheduling (engine.cc), memory (access.cc), barriers (barrier.cc), warps (warp.cc),
// asynchronous copies and mbarriers (async.cc), and what is said of threads that cannot go on (stuck.cc).
#pragma once

#include <boost/context/fiber.hpp>
#include <deque>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "emulator/clock.h"
#include "emulator/kernel/abi.h"
#include "emulator/launch.h"
#include "emulator/report.h"
#include "emulator/shadow.h"
#include "emulator/stacks.h"

namespace lemma::emulator {

class Engine;
struct MBarrier;

constexpr int kBarriers = 16;  // of a block, as the machine has

enum class State { Ready, AtBarrier, InWarp, AtMBarrier, Polling, Done };

// cp.async: what a thread has under way.
struct Copy {
  Place to, from;
  int bytes = 0;
  int valid_bytes = 0;
  int statement = 0;
  int group = 0;
};

// A bulk store of a thread: its source is read, and its target written, some time before it is waited for.
struct BulkStore {
  Place to, from;
  int64_t bytes = 0;
  int statement = 0;
  int group = 0;
  uint32_t stamp = 0;
  bool is_copied = false;
};

struct Fibre : Thread {
  Engine* engine = nullptr;
  boost::context::fiber self, scheduler;
  State state = State::Ready;
  uint32_t now = 0;                   // the stamp of its accesses
  uint32_t fenced = 0;                // its writes up to here are visible to the copy engine
  std::shared_ptr<Clock> clock;       // shared with those that know the same; changed only through own()
  uint32_t arrivals[kBarriers] = {};  // by barrier: the generation it last came to
  int64_t waits_for = 0;              // the barrier's number, or the mbarrier's
  int parity = 0;
  WarpOperation operation{};
  void* operands = nullptr;
  std::vector<Copy> copies;
  int copy_group = 0;
  std::vector<BulkStore> stores;
  int store_group = 0;
  int store_agent = -1;  // its source number as a reader and writer of bulk stores
};

struct Warp {
  std::vector<Fibre*> lanes;
  int arrived = 0;
};

struct Barrier {
  uint32_t generation = 0;  // counts how often it began to fill
  int expected = 0;
  int arrived = 0;
  int statement = 0;  // of the first arrival
  std::vector<Fibre*> waiting;
  Clock joined;
};

struct MBarrier {
  Place place;
  int arrivals = 0;  // a phase has
  int missing = 0;
  int64_t bytes = 0;  // of copies still to land
  int phase = 0;
  int agent = 0;  // the source number of the copies that report to it
  Clock arriving, completed;
  std::vector<Fibre*> waiting;
};

// A bulk load under way.
struct BulkLoad {
  Place to, from;
  int64_t bytes = 0;
  int mbarrier = 0;
  Party issuer;
};

class Engine {
 public:
  using Entry = void (*)(const Arguments*);
  Engine(Entry entry, Thread** current, Stacks& stacks, const Launch& launch, std::vector<Buffer> buffers);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  Report run();
  static const Host& host();

 private:
  enum class Kind { Read, Write, Atomic };
  static constexpr int kMBarrierAgents = 64, kStoreAgents = 8;

  static Fibre& fibre(Thread* thread) { return *static_cast<Fibre*>(thread); }
  static Engine& of(Thread* thread) { return *fibre(thread).engine; }

  // engine.cc
  void make_fibres();
  void start_block(int64_t block);
  void run_block();
  void finish_block();
  void resume(Fibre& fibre);
  void suspend(Fibre& fibre, State state);
  void make_ready(Fibre& fibre);
  void make_ready(std::span<Fibre* const> fibres, const Fibre* except);
  void yield(Fibre& fibre);
  void step(Fibre& fibre) {  // before an access, so that others may come between two
    if (--fibre.fuel < 0) yield(fibre);
  }
  Fibre& next();
  void count_steps(Fibre& fibre);
  [[noreturn]] void halt(Fibre& fibre);  // the block cannot go on
  size_t sources() const { return fibres_.size() + kMBarrierAgents + kStoreAgents; }
  int threads() const { return int(fibres_.size()); }
  static Clock& own(Fibre& fibre) {
    if (fibre.clock.use_count() > 1) fibre.clock = std::make_shared<Clock>(*fibre.clock);
    return *fibre.clock;
  }
  uint32_t release(Fibre& fibre) { return fibre.now = ++stamp_; }

  // access.cc
  unsigned char* access(Fibre& fibre, Place place, int64_t bytes, int alignment, Kind kind);
  bool is_inside(Fibre& fibre, Place place, int64_t bytes, int alignment, Kind kind);
  void access_cell(Fibre& fibre, Buffer& buffer, Cell& cell, int64_t offset, Kind kind);
  void check_write(Fibre& fibre, const Buffer& buffer, const Cell& cell, int64_t offset, Kind kind);
  void check_since(Fibre& fibre, const Buffer& buffer, const Since& since, int64_t offset, Kind kind, const char* did);
  void note(const Fibre& fibre, const Buffer& buffer, Since& since, Access mine);
  void forget(Since& since);
  void race(Fibre& fibre, const Buffer& buffer, int64_t offset, Kind kind, Access other, uint32_t other_block,
            const char* did);
  bool ordered(const Fibre& fibre, Access earlier) const {
    return earlier.source == fibre.index || (earlier.source < threads() && earlier.stamp <= fibre.clock->floor) ||
           earlier.stamp <= fibre.clock->seen[earlier.source];
  }
  std::span<Cell> cells(Place place, int64_t bytes);
  // The target of an asynchronous copy from its issue to its end; false if it is out of bounds.
  bool begin_copy(Fibre& fibre, Place to, int64_t bytes, int alignment);
  void end_copy(Place to, int64_t bytes, Access as);

  // findings.cc
  Party here(const Fibre& fibre) const { return {block_, fibre.index, fibre.statement}; }
  Party party(Access access, uint32_t block) const;
  std::string describe(const Party& party) const;
  std::string describe(int statement) const;
  std::string element(const Buffer& buffer, int64_t offset) const;
  // Notes a finding; `what` is the rest of a sentence that begins with the place of `who`.
  void find(Fault fault, const Party& who, const Buffer* buffer, int64_t offset, std::optional<Party> other,
            const std::string& what);

  // barrier.cc
  void barrier(Fibre& fibre, int id, int threads, bool waits);
  void release_barrier(Fibre& last, Barrier& barrier);

  // warp.cc
  void warp(Fibre& fibre, WarpOperation operation, void* operands);
  void perform(Warp& warp, WarpOperation operation);
  void sync_warp(Warp& warp);
  void load_matrices(Warp& warp, bool transposed);

  // async.cc
  void copy_async(Fibre& fibre, Place to, Place from, int bytes, int valid_bytes);
  void copy_wait(Fibre& fibre, int newer_groups);
  int mbarrier(Fibre& fibre, Place place);  // an index of mbarriers_
  void mbarrier_init(Fibre& fibre, Place place, int arrivals);
  void mbarrier_arrive(Fibre& fibre, Place place, int64_t bytes);
  bool mbarrier_wait(Fibre& fibre, Place place, int parity, bool until_done);
  void complete_phase_if_due(MBarrier& barrier);
  void bulk_load(Fibre& fibre, Place to, Place from, int64_t bytes, Place mbarrier);
  void land(size_t load);
  void land_some();
  void bulk_store(Fibre& fibre, Place to, Place from, int64_t bytes);
  void bulk_wait(Fibre& fibre, int newer_groups, bool reads_only);
  void copy_store(BulkStore& store);
  void check_bulk(Fibre& fibre, Place global, int64_t bytes);
  void check_fence(Fibre& fibre, Place from, int64_t bytes);

  // stuck.cc
  bool wake_pollers();
  void report_stuck();
  std::string waiting_for(const Fibre& fibre) const;

  Buffer* shared(int key, const char* name, int64_t count, int element_bytes);

  Entry entry_;
  Thread** current_;
  Stacks& stacks_;
  const Launch& launch_;
  std::vector<Buffer> buffers_;
  std::vector<Buffer*> bound_;
  std::vector<Scalar> scalars_;
  Arguments arguments_{};
  std::deque<Buffer> shared_;  // by key; addresses stay
  std::vector<Buffer*> shared_by_key_;
  Buffer* pool_ = nullptr;
  std::vector<std::unique_ptr<Fibre>> fibres_;
  std::vector<Warp> warps_;
  std::vector<Barrier> barriers_;
  std::deque<MBarrier> mbarriers_;
  std::vector<BulkLoad> loads_;
  int store_agents_ = 0;
  AccessLists lists_;
  std::vector<Fibre*> ready_;  // a ring
  size_t ready_first_ = 0, ready_count_ = 0;
  int live_ = 0;
  int idle_rounds_ = 0;  // pollers woken in vain
  int64_t block_ = 0;
  uint32_t block_number_ = 0;   // block_ as cells know it: its place in the order, from 1
  std::vector<int64_t> order_;  // of blocks
  uint32_t stamp_ = 0;
  std::mt19937_64 random_;
  bool halted_ = false;  // this block and the run
  int fuel_given_ = 0;
  alignas(16) unsigned char nowhere_[4096] = {};
  Report report_;
};

}  // namespace lemma::emulator
