// Every access of memory: bounds, alignment, what was written before, and who else was there.

#include <cstring>

#include "emulator/engine.h"

namespace lemma::emulator {
namespace {

std::string count_of(int64_t count, const char* thing) {
  return std::to_string(count) + " " + thing + (count == 1 ? "" : "s");
}

}  // namespace

bool Engine::is_inside(Fibre& fibre, Place place, int64_t bytes, int alignment, Kind kind) {
  if (!place.buffer) {
    find(Fault::OutOfBounds, here(fibre), nullptr, 0, {}, "follows a pointer that leads nowhere");
    return false;
  }
  Buffer& buffer = *place.buffer;
  if (place.offset < 0 || bytes > buffer.bytes || place.offset > buffer.bytes - bytes) {
    find(Fault::OutOfBounds, here(fibre), &buffer, place.offset, {},
         std::string(kind == Kind::Read ? "reads " : kind == Kind::Write ? "writes " : "changes ") +
             element(buffer, place.offset) + ", and " + buffer.name + " has " +
             count_of(buffer.bytes / buffer.element_bytes, buffer.element_bytes == 1 ? "byte" : "element"));
    return false;
  }
  if (place.offset & (alignment - 1)) {
    find(Fault::Misaligned, here(fibre), &buffer, place.offset, {},
         "accesses " + std::to_string(bytes) + " bytes at " + element(buffer, place.offset) + ", byte " +
             std::to_string(place.offset) + ", which is no multiple of " + std::to_string(alignment));
  }
  if (!buffer.fits(place.offset, bytes)) buffer.split(place.offset, bytes, lists_);
  return true;
}

unsigned char* Engine::access(Fibre& fibre, Place place, int64_t bytes, int alignment, Kind kind) {
  ++report_.accesses;
  if (!is_inside(fibre, place, bytes, alignment, kind)) {
    std::memset(nowhere_, 0, sizeof nowhere_);
    return nowhere_;
  }
  Buffer& buffer = *place.buffer;
  const int64_t first = place.offset >> buffer.shift, count = bytes >> buffer.shift;
  for (int64_t i = first; i < first + count; ++i) {
    const int64_t offset = i << buffer.shift;
    if (kind == Kind::Read) {
      read_cell(fibre, buffer, buffer.cells[size_t(i)], offset);
    } else {
      write_cell(fibre, buffer, buffer.cells[size_t(i)], offset, kind == Kind::Atomic);
    }
  }
  return buffer.data + place.offset;
}

void Engine::race(Fibre& fibre, const Buffer& buffer, int64_t offset, const char* does, Access other,
                  uint32_t other_block, const char* did) {
  const Party second = party(other, other_block);
  find(Fault::Race, here(fibre), &buffer, offset, second,
       std::string(does) + " " + element(buffer, offset) + ", which " + describe(second) + " " + did +
           ", and nothing orders the two");
}

// What is due from any access, by a plain one (which atomics concern too) or an atomic.
bool Engine::follows_writes(Fibre& fibre, Buffer& buffer, Cell& cell, int64_t offset, const char* does, bool is_atomic) {
  const bool counts = !buffer.shared;  // what an earlier block did
  const bool is_written = cell.write_block == block_number_ || (cell.write_block != 0 && counts);
  const bool is_changed = cell.atomic_block == block_number_ || (cell.atomic_block != 0 && counts);
  if (is_written && cell.pending) {
    const Party copier = party(cell.write, cell.write_block);
    find(Fault::UnderCopy, here(fibre), &buffer, offset, copier,
         std::string(does) + " " + element(buffer, offset) + ", which the copy of " + describe(copier) +
             " is still writing, as far as anyone has waited");
  } else if (is_written && (cell.write_block != block_number_ || !ordered(fibre, cell.write))) {
    race(fibre, buffer, offset, does, cell.write, cell.write_block, "wrote");
  } else if (is_changed && !is_atomic && (cell.atomic_block != block_number_ || !ordered(fibre, cell.atomic))) {
    race(fibre, buffer, offset, does, cell.atomic, cell.atomic_block, "changed");
  }
  return is_written || is_changed || buffer.initialised;
}

void Engine::read_cell(Fibre& fibre, Buffer& buffer, Cell& cell, int64_t offset) {
  if (!follows_writes(fibre, buffer, cell, offset, "reads", false)) {
    find(Fault::Uninitialised, here(fibre), &buffer, offset, {},
         "reads " + element(buffer, offset) + ", which nothing has written");
  }
  if (!buffer.logs_reads) return;
  log_read(fibre, buffer, cell, Access{fibre.now, uint16_t(fibre.index), uint16_t(fibre.statement)});
}

void Engine::write_cell(Fibre& fibre, Buffer& buffer, Cell& cell, int64_t offset, bool is_atomic) {
  const char* does = is_atomic ? "changes" : "writes";
  if (!follows_writes(fibre, buffer, cell, offset, does, is_atomic) && is_atomic) {
    find(Fault::Uninitialised, here(fibre), &buffer, offset, {},
         "changes " + element(buffer, offset) + ", which nothing has written");
  }
  if (cell.read_block == block_number_) {
    if (!ordered(fibre, cell.read)) race(fibre, buffer, offset, does, cell.read, cell.read_block, "read");
    if (cell.more_reads) {
      for (const Access& read : lists_[cell.more_reads]) {
        if (!ordered(fibre, read)) race(fibre, buffer, offset, does, read, cell.read_block, "read");
      }
    }
  }
  if (!buffer.shared) {
    const uint32_t other = cell.earlier_block ? cell.earlier_block : cell.read_block;
    if (other != 0 && other != block_number_) race(fibre, buffer, offset, does, cell.read, other, "read");
  }
  forget_reads(cell);
  const Access mine{fibre.now, uint16_t(fibre.index), uint16_t(fibre.statement)};
  (is_atomic ? cell.atomic : cell.write) = mine;
  (is_atomic ? cell.atomic_block : cell.write_block) = block_number_;
  if (is_atomic) return;
  cell.atomic_block = 0;
  cell.pending = false;
}

// Reads that happened before a write need not be remembered after it: who is ordered after the write is ordered after
// them.
void Engine::forget_reads(Cell& cell) {
  if (cell.more_reads && cell.read_block == block_number_) lists_.release(cell.more_reads);
  cell.more_reads = cell.read_block = cell.earlier_block = 0;
}

void Engine::log_read(const Fibre& fibre, Buffer& buffer, Cell& cell, Access mine) {
  if (cell.read_block != block_number_) {
    if (!buffer.shared && cell.read_block) cell.earlier_block = cell.read_block;
    cell.read = mine;
    cell.read_block = block_number_;
    cell.more_reads = 0;
    return;
  }
  if (cell.read.source == mine.source) {
    cell.read = mine;
    return;
  }
  // What happened before my read happens before whatever is ordered after it.
  const bool replaces = ordered(fibre, cell.read);
  if (cell.more_reads) {
    std::vector<Access>& list = lists_[cell.more_reads];
    if (replaces) std::erase_if(list, [&](const Access& a) { return ordered(fibre, a); });
    if (list.size() >= 2 * sources()) {  // one thread many times: its latest will do
      std::vector<Access> latest;
      for (size_t i = list.size(); i-- > 0;) {
        bool is_new = true;
        for (const Access& a : latest) is_new = is_new && a.source != list[i].source;
        if (is_new) latest.push_back(list[i]);
      }
      list = std::move(latest);
    }
    if (!replaces) list.push_back(cell.read);
    if (list.empty()) {
      lists_.release(cell.more_reads);
      cell.more_reads = 0;
    }
  } else if (!replaces) {
    cell.more_reads = lists_.make();
    lists_[cell.more_reads].push_back(cell.read);
  }
  cell.read = mine;
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
