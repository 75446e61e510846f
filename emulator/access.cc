// Every access of memory: bounds, alignment, what was written before, and who else was there.

#include <algorithm>
#include <cstring>

#include "emulator/engine.h"

namespace lemma::emulator {
namespace {

template <class Kind>
std::string verb(Kind kind) {
  return kind == Kind::Read ? "reads " : kind == Kind::Write ? "writes " : "changes ";
}

std::string count_of(int64_t count, const char* thing) {
  return std::to_string(count) + " " + thing + (count == 1 ? "" : "s");
}

// Of each source its latest access.
void keep_latest(std::vector<Access>& list) {
  std::stable_sort(list.begin(), list.end(), [](const Access& a, const Access& b) { return a.source < b.source; });
  size_t kept = 0;
  for (size_t i = 0; i < list.size(); ++i) {
    if (i + 1 == list.size() || list[i + 1].source != list[i].source) list[kept++] = list[i];
  }
  list.resize(kept);
}

}  // namespace

bool Engine::is_inside(Fibre& fibre, Place place, int64_t bytes, int alignment, Kind kind) {
  if (!place.buffer) {
    find(Fault::OutOfBounds, here(fibre), nullptr, 0, {}, "follows a pointer that leads nowhere");
    return false;
  }
  Buffer& buffer = *place.buffer;
  if (place.offset < 0 || bytes < 0 || bytes > buffer.bytes || place.offset > buffer.bytes - bytes) {
    find(Fault::OutOfBounds, here(fibre), &buffer, place.offset, {},
         verb(kind) + element(buffer, place.offset) + ", and " + buffer.name + " has " +
             count_of(buffer.bytes / buffer.element_bytes, buffer.element_bytes == 1 ? "byte" : "element"));
    return false;
  }
  if (place.offset & (alignment - 1)) {
    find(Fault::Misaligned, here(fibre), &buffer, place.offset, {},
         "accesses " + std::to_string(bytes) + " bytes at " + element(buffer, place.offset) + ", byte " +
             std::to_string(place.offset) + ", which is no multiple of " + std::to_string(alignment));
  }
  return true;
}

unsigned char* Engine::access(Fibre& fibre, Place place, int64_t bytes, int alignment, Kind kind) {
  ++report_.accesses;
  if (!is_inside(fibre, place, bytes, alignment, kind)) {
    std::memset(nowhere_, 0, sizeof nowhere_);
    return nowhere_;
  }
  Buffer& buffer = *place.buffer;
  if (buffer.is_constant()) return buffer.data + place.offset;
  if (!buffer.fits(place.offset, bytes)) buffer.split(place.offset, bytes, lists_);
  const int64_t first = place.offset >> buffer.shift, count = bytes >> buffer.shift;
  for (int64_t i = first; i < first + count; ++i) {
    access_cell(fibre, buffer, buffer.cells[size_t(i)], i << buffer.shift, kind);
  }
  return buffer.data + place.offset;
}

void Engine::race(Fibre& fibre, const Buffer& buffer, int64_t offset, Kind kind, Access other, uint32_t other_block,
                  const char* did) {
  const Party second = party(other, other_block);
  find(Fault::Race, here(fibre), &buffer, offset, second,
       verb(kind) + element(buffer, offset) + ", which " + describe(second) + " " + did +
           ", and nothing orders the two");
}

// An access must be ordered after the last write; a plain write also after the reads and atomics since, and those after
// each other where they differ in kind. A write then stands for what came before it: who is ordered after the write is
// ordered after that.
void Engine::access_cell(Fibre& fibre, Buffer& buffer, Cell& cell, int64_t offset, Kind kind) {
  check_write(fibre, buffer, cell, offset, kind);
  if (kind != Kind::Atomic && cell.atomics.block) check_since(fibre, buffer, cell.atomics, offset, kind, "changed");
  if (kind != Kind::Read && cell.reads.block) check_since(fibre, buffer, cell.reads, offset, kind, "read");
  const Access mine{fibre.now, uint16_t(fibre.index), uint16_t(fibre.statement)};
  if (kind == Kind::Read) {
    if (buffer.logs_reads) note(fibre, buffer, cell.reads, mine);
  } else if (kind == Kind::Atomic) {
    note(fibre, buffer, cell.atomics, mine);
  } else {
    forget(cell.atomics);
    forget(cell.reads);
    cell.write = mine;
    cell.write_block = block_number_;
    cell.pending = false;
  }
}

void Engine::check_write(Fibre& fibre, const Buffer& buffer, const Cell& cell, int64_t offset, Kind kind) {
  // What an earlier block left in shared memory is gone.
  const bool is_written = cell.write_block == block_number_ || (cell.write_block != 0 && !buffer.shared);
  if (!is_written) {
    const bool is_changed = cell.atomics.block == block_number_ || (cell.atomics.block != 0 && !buffer.shared);
    if (kind == Kind::Write || is_changed || buffer.initialised) return;
    find(Fault::Uninitialised, here(fibre), &buffer, offset, {},
         verb(kind) + element(buffer, offset) + ", which nothing has written");
  } else if (cell.pending) {
    const Party copier = party(cell.write, cell.write_block);
    find(Fault::UnderCopy, here(fibre), &buffer, offset, copier,
         verb(kind) + element(buffer, offset) + ", which the copy of " + describe(copier) +
             " is still writing, as far as anyone has waited");
  } else if (cell.write_block != block_number_ || !ordered(fibre, cell.write)) {
    race(fibre, buffer, offset, kind, cell.write, cell.write_block, "wrote");
  }
}

void Engine::check_since(Fibre& fibre, const Buffer& buffer, const Since& since, int64_t offset, Kind kind,
                         const char* did) {
  if (since.block == block_number_) {
    if (!ordered(fibre, since.latest)) race(fibre, buffer, offset, kind, since.latest, since.block, did);
    if (since.more) {
      for (const Access& access : lists_[since.more]) {
        if (!ordered(fibre, access)) race(fibre, buffer, offset, kind, access, since.block, did);
      }
    }
  }
  if (buffer.shared) return;
  if (since.block != block_number_) {
    race(fibre, buffer, offset, kind, since.latest, since.block, did);
  } else if (since.earlier_block != 0) {
    race(fibre, buffer, offset, kind, since.earlier, since.earlier_block, did);
  }
}

void Engine::forget(Since& since) {
  if (since.more && since.block == block_number_) lists_.release(since.more);
  since = {};
}

void Engine::note(const Fibre& fibre, const Buffer& buffer, Since& since, Access mine) {
  if (since.block != block_number_) {
    if (!buffer.shared && since.block) {
      since.earlier = since.latest;
      since.earlier_block = since.block;
    }
    since.block = block_number_;
    since.more = 0;
  } else if (since.latest.source != mine.source) {
    // What happened before my access happens before whatever is ordered after it.
    const bool is_replaced = ordered(fibre, since.latest);
    if (since.more) {
      std::vector<Access>& list = lists_[since.more];
      if (is_replaced) std::erase_if(list, [&](const Access& a) { return ordered(fibre, a); });
      if (!is_replaced) list.push_back(since.latest);
      if (list.size() > 2 * sources()) keep_latest(list);
      if (list.empty()) {
        lists_.release(since.more);
        since.more = 0;
      }
    } else if (!is_replaced) {
      since.more = lists_.make();
      lists_[since.more].push_back(since.latest);
    }
  }
  since.latest = mine;
}

std::span<Cell> Engine::cells(Place place, int64_t bytes) {
  Buffer& buffer = *place.buffer;
  if (!buffer.fits(place.offset, bytes)) buffer.split(place.offset, bytes, lists_);
  return {buffer.cells.data() + (place.offset >> buffer.shift), size_t(bytes >> buffer.shift)};
}

bool Engine::begin_copy(Fibre& fibre, Place to, int64_t bytes, int alignment) {
  if (!is_inside(fibre, to, bytes, alignment, Kind::Write)) return false;
  access(fibre, to, bytes, 1, Kind::Write);
  for (Cell& cell : cells(to, bytes)) cell.pending = true;
  return true;
}

void Engine::end_copy(Place to, int64_t bytes, Access as) {
  for (Cell& cell : cells(to, bytes)) {
    if (!cell.pending) continue;  // somebody wrote it meanwhile, which was a finding
    cell.pending = false;
    cell.write = as;
  }
}

}  // namespace lemma::emulator
