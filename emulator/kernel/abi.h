// What emitted text, compiled as C++ into a shared object, and the engine that runs it know of each other: plain
// structs and one table of functions. This header is included on both sides and includes nothing, since every line of
// it is compiled with every kernel.
#pragma once

namespace lemma::emulator {

struct Buffer;  // memory and what is known of each of its bytes; the engine's
struct Host;

// An address that knows whose it is. The engine checks it at every access.
struct Place {
  Buffer* buffer = nullptr;
  long long offset = 0;  // in bytes
};

// One thread of a kernel as its own text sees it.
struct Thread {
  const Host* host = nullptr;
  int statement = 0;  // where it is: the last LM_AT
  int fuel = 0;       // statements and accesses until it lets others run
  int index = 0;      // in the block
  int block[3] = {0, 0, 0};
  int blocks[3] = {1, 1, 1};
};

// What the lanes of a warp do together. Each hands in the address of its operands, which live on its stack.
enum class WarpOperation {
  Sync,            // none
  Shuffle,         // Exchange
  ShuffleXor,      // Exchange
  ShuffleDown,     // Exchange
  LoadMatrix,      // MatrixLoad
  LoadTransposed,  // MatrixLoad
  ProductBf16,     // Product, m16n8k16
  ProductF16,      // Product, m16n8k16
  ProductTf32,     // Product, m16n8k8
  ProductS8,       // Product, m16n8k32
};

struct Exchange {
  unsigned long long value;  // handed in, and replaced by what is handed out
  int operand;               // lane, mask or distance
};

struct MatrixLoad {
  unsigned* registers;
  int count;  // matrices of 8 x 8 elements of 16 bits: 1, 2 or 4
  Place row;  // lane l names row l % 8 of matrix l / 8
};

struct Product {
  void* accumulators;  // 4 floats or ints
  const unsigned* a;
  const unsigned* b;
};

// The engine's side. Addresses returned are valid for the bytes asked for, also after a fault: then they lead nowhere.
struct Host {
  const void* (*read)(Thread*, Place, int bytes, int alignment);
  void* (*write)(Thread*, Place, int bytes, int alignment);
  void* (*atomic)(Thread*, Place, int bytes);
  Buffer* (*shared)(Thread*, int key, const char* name, long long count, int element_bytes);
  Buffer* (*shared_pool)(Thread*);
  void (*yield)(Thread*);
  void (*barrier)(Thread*, int id, int threads, bool waits);  // threads 0: the whole block
  void (*warp)(Thread*, WarpOperation, void* operands);
  void (*copy_async)(Thread*, Place to, Place from, int bytes, int valid_bytes);
  void (*copy_commit)(Thread*);
  void (*copy_wait)(Thread*, int newer_groups);  // -1: everything, committed or not
  void (*mbarrier_init)(Thread*, Place, int arrivals);
  void (*mbarrier_arrive)(Thread*, Place, long long expected_bytes);
  bool (*mbarrier_wait)(Thread*, Place, int parity, bool until_done);
  void (*bulk_load)(Thread*, Place to, Place from, long long bytes, Place mbarrier);
  void (*bulk_store)(Thread*, Place to, Place from, long long bytes);
  void (*bulk_commit)(Thread*);
  void (*bulk_wait)(Thread*, int newer_groups, bool reads_only);
  void (*fence_async)(Thread*);
};

// The arguments of a launch: buffers and scalars each in the order of the parameters.
struct Scalar {
  long long integer;
  double real;
};
struct Arguments {
  Buffer* const* buffers;
  const Scalar* scalars;
};

struct Signature {
  int buffers;
  int scalars;
  int threads;  // as in LM_KERNEL
  static constexpr int most_buffers = 64;
  bool written[most_buffers];  // whether the kernel may write it
  int element_bytes[most_buffers];
};

}  // namespace lemma::emulator
