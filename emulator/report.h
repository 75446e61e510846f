// What a run of a kernel found, in terms of the kernel's own text: the statement, the thread, the buffer, the element.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lemma::emulator {

enum class Fault {
  Race,           // two accesses of a byte, one a write, with nothing that orders them
  UnderCopy,      // an access of memory that an asynchronous copy is still writing
  OutOfBounds,    // beyond the buffer
  Uninitialised,  // a read of what nobody wrote
  Misaligned,     // a vector, or a matrix row, at an address that the machine does not take
  NoFence,        // the copy engine reads what was written without a fence for it
  Divergence,     // threads that should meet at one barrier or warp operation do not
  Deadlock,       // no thread can go on
  Endless,        // more steps than were allowed
  Misuse,         // a barrier object used against its rules
};

const char* name(Fault fault);

// One side of a finding. Statement 0 is what stands before the first LM_AT.
struct Party {
  int64_t block = 0;
  int thread = 0;
  int statement = 0;
  bool operator==(const Party&) const = default;
};

struct Finding {
  Fault fault = Fault::Race;
  std::string kernel;
  Party who;
  std::string buffer;  // empty where no memory is concerned
  int64_t element = 0;
  std::optional<Party> other;
  std::string message;  // one sentence that says all of it
  int64_t count = 1;    // how often the same statements did the same to the same buffer
};

struct Report {
  std::vector<Finding> findings;
  bool stopped = false;  // before the end: too many findings, or threads that cannot go on
  int64_t steps = 0;     // statements (LM_AT) and accesses of all threads
  int64_t accesses = 0;  // checked reads, writes and atomics
  int64_t switches = 0;  // from one thread to another
};

}  // namespace lemma::emulator
