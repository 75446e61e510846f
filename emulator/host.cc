// The table through which kernels reach the engine.

#include "emulator/engine.h"

namespace lemma::emulator {

const Host& Engine::host() {
  static constexpr Host table = {
      .read = [](Thread* t, Place p, int bytes, int alignment) -> const void* {
        of(t).step(fibre(t));
        return of(t).access(fibre(t), p, bytes, alignment, Kind::Read);
      },
      .write = [](Thread* t, Place p, int bytes, int alignment) -> void* {
        of(t).step(fibre(t));
        return of(t).access(fibre(t), p, bytes, alignment, Kind::Write);
      },
      .atomic = [](Thread* t, Place p, int bytes) -> void* {
        of(t).step(fibre(t));
        return of(t).access(fibre(t), p, bytes, bytes, Kind::Atomic);
      },
      .shared = [](Thread* t, int key, const char* name, long long count,
                   int element_bytes) { return of(t).shared(key, name, count, element_bytes); },
      .shared_pool = [](Thread* t) { return of(t).pool_; },
      .yield = [](Thread* t) { of(t).yield(fibre(t)); },
      .barrier = [](Thread* t, int id, int threads, bool waits) { of(t).barrier(fibre(t), id, threads, waits); },
      .warp = [](Thread* t, WarpOperation operation, void* operands) { of(t).warp(fibre(t), operation, operands); },
      .copy_async = [](Thread* t, Place to, Place from, int bytes,
                       int valid_bytes) { of(t).copy_async(fibre(t), to, from, bytes, valid_bytes); },
      .copy_commit = [](Thread* t) { ++fibre(t).copy_group; },
      .copy_wait = [](Thread* t, int newer_groups) { of(t).copy_wait(fibre(t), newer_groups); },
      .mbarrier_init = [](Thread* t, Place p, int arrivals) { of(t).mbarrier_init(fibre(t), p, arrivals); },
      .mbarrier_arrive = [](Thread* t, Place p, long long bytes) { of(t).mbarrier_arrive(fibre(t), p, bytes); },
      .mbarrier_wait = [](Thread* t, Place p, int parity,
                          bool until_done) { return of(t).mbarrier_wait(fibre(t), p, parity, until_done); },
      .bulk_load = [](Thread* t, Place to, Place from, long long bytes,
                      Place mbarrier) { of(t).bulk_load(fibre(t), to, from, bytes, mbarrier); },
      .bulk_store = [](Thread* t, Place to, Place from,
                       long long bytes) { of(t).bulk_store(fibre(t), to, from, bytes); },
      .bulk_commit = [](Thread* t) { ++fibre(t).store_group; },
      .bulk_wait = [](Thread* t, int newer_groups,
                      bool reads_only) { of(t).bulk_wait(fibre(t), newer_groups, reads_only); },
      .fence_async =
          [](Thread* t) {
            Fibre& self = fibre(t);
            self.fenced = self.now;
            of(t).release(self);
          },
  };
  return table;
}

}  // namespace lemma::emulator
