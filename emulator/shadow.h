// Memory and what is known of it: for each cell of 1 to 16 bytes who wrote it last, and who read or changed it since.
//
// Cells start as wide as the first access and are split when a narrower one comes, so a kernel that moves vectors pays
// for vectors, and one that writes single bytes is judged by single bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lemma::emulator {

// Who did something, and when. Sources from `threads` on are agents of asynchronous copies.
struct Access {
  uint32_t stamp = 0;
  uint16_t source = 0;
  uint16_t statement = 0;
};

// Accesses of one kind since the last write. Those of one block that are not ordered among each other stand in `latest`
// and in a list; of earlier blocks one is as good as another. Blocks are numbered from 1 in the order they run in.
struct Since {
  Access latest, earlier;
  uint32_t block = 0;  // 0: none
  uint32_t earlier_block = 0;
  uint32_t more = 0;  // an index of AccessLists, of `block`; 0: none
};

struct Cell {
  Access write;  // by a plain write or an asynchronous copy
  uint32_t write_block = 0;
  bool pending = false;  // an asynchronous copy under way
  Since atomics, reads;
};

// Lists of accesses to cells that have several, of the block that runs.
class AccessLists {
 public:
  std::vector<Access>& operator[](uint32_t list) { return lists_[list]; }
  uint32_t make();
  uint32_t copy(uint32_t list);
  void release(uint32_t list) { free_.push_back(list); }
  void clear();

 private:
  std::vector<std::vector<Access>> lists_{1};  // 0 is none
  std::vector<uint32_t> free_;
};

struct Buffer {
  std::string name;
  unsigned char* data = nullptr;
  int64_t bytes = 0;
  int element_bytes = 1;    // for findings
  bool shared = false;      // belongs to a block: what an earlier block left is not initialised
  bool initialised = true;  // before the launch
  bool logs_reads = true;   // false where the kernel cannot write
  int shift = -1;           // cells are 1 << shift bytes; -1: none yet
  std::vector<Cell> cells;
  std::vector<unsigned char> storage;  // of shared memory

  // Nothing that happens to it matters, so it needs no cells.
  bool is_constant() const { return initialised && !logs_reads; }
  // Makes cells small enough that an access at `offset` of `size` bytes covers whole ones.
  void split(int64_t offset, int64_t size, AccessLists& lists);
  bool fits(int64_t offset, int64_t size) const {
    return shift >= 0 && ((offset | size) & ((int64_t(1) << shift) - 1)) == 0;
  }
};

}  // namespace lemma::emulator
