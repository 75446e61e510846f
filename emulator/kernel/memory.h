// Checked memory for emitted text: pointers that know their buffer, and elements that tell the engine of every read and
// write. What CUDA, Metal and OpenCL call these things is left to the header of each dialect.
#pragma once

#include "emulator/kernel/abi.h"

namespace lemma::emulator {

// The thread that runs now; the engine sets it whenever it resumes one.
static thread_local Thread* current;

template <class T>
struct Plain {
  using Type = T;
};
template <class T>
struct Plain<const T> {
  using Type = T;
};
template <class T>
using plain = typename Plain<T>::Type;

// An element in memory. Converts to its value (a read) and takes one (a write).
template <class T>
struct Element {
  Place place;

  operator plain<T>() const {
    return *static_cast<const T*>(current->host->read(current, place, sizeof(T), alignof(T)));
  }
  const Element& operator=(plain<T> value) const {
    *static_cast<T*>(current->host->write(current, place, sizeof(T), alignof(T))) = value;
    return *this;
  }
  const Element& operator=(const Element& other) const { return *this = plain<T>(other); }
#define LM_ASSIGN_(operation)                                  \
  const Element& operator operation##=(plain<T> value) const { \
    return *this = plain<T>(plain<T>(*this) operation value);  \
  }
  LM_ASSIGN_(+)
  LM_ASSIGN_(-)
  LM_ASSIGN_(*)
  LM_ASSIGN_(/)
  LM_ASSIGN_(%)
  LM_ASSIGN_(&)
  LM_ASSIGN_(|)
  LM_ASSIGN_(^)
#undef LM_ASSIGN_
};

template <class T>
struct Pointer {
  Place place;

  Element<T> operator[](long long i) const { return {at(i)}; }
  Element<T> operator*() const { return {place}; }
  Pointer operator+(long long i) const { return {at(i)}; }
  Pointer operator-(long long i) const { return {at(-i)}; }
  Pointer& operator+=(long long i) { return *this = *this + i; }
  Pointer& operator-=(long long i) { return *this = *this - i; }
  long long operator-(Pointer other) const { return (place.offset - other.place.offset) / (long long)sizeof(T); }
  operator Pointer<const T>() const { return {place}; }

  Place at(long long i) const { return {place.buffer, place.offset + i * (long long)sizeof(T)}; }
};

// N elements that travel together.
template <class T, int N>
struct alignas(sizeof(T) * N > 16 ? 16 : sizeof(T) * N) Vector {
  T elements[N];
  T& operator[](int i) { return elements[i]; }
  const T& operator[](int i) const { return elements[i]; }
};

constexpr int vector_alignment(int bytes) { return bytes > 16 ? 16 : bytes; }

template <int N, class T>
Vector<plain<T>, N> load(Pointer<T> from, long long index) {
  Vector<plain<T>, N> value;  // copied bytewise: after a finding the address may be as misaligned as it likes
  __builtin_memcpy(&value, current->host->read(current, from.at(index), sizeof value, vector_alignment(sizeof value)),
                   sizeof value);
  return value;
}

template <int N, class T>
void store(Pointer<T> to, long long index, const Vector<T, N>& value) {
  __builtin_memcpy(current->host->write(current, to.at(index), sizeof value, vector_alignment(sizeof value)), &value,
                   sizeof value);
}

// Applies `change` to an element at once, and returns what it was.
template <class T, class Change>
T atomic(Pointer<T> to, long long index, Change change) {
  T* element = static_cast<T*>(current->host->atomic(current, to.at(index), sizeof(T)));
  const T before = *element;
  *element = change(before);
  return before;
}

template <class T>
Pointer<T> shared(int key, const char* name, long long count) {
  return {{current->host->shared(current, key, name, count, sizeof(T)), 0}};
}

inline void at(int statement) {
  current->statement = statement;
  if (--current->fuel < 0) current->host->yield(current);
}

// Calls a kernel with the arguments its parameters ask for, and says what they are.
template <class P>
struct Bind {
  static constexpr bool is_buffer = false, is_written = false;
  static constexpr int element_bytes = 0;
  static P take(Arguments& arguments) {
    const Scalar scalar = *arguments.scalars++;
    return P(0.5) != P(0) ? P(scalar.real) : P(scalar.integer);  // whether P has halves
  }
};
template <class T>
struct Bind<Pointer<T>> {
  static constexpr bool is_buffer = true, is_written = true;
  static constexpr int element_bytes = sizeof(T);
  static Pointer<T> take(Arguments& arguments) { return {{*arguments.buffers++, 0}}; }
};
template <class T>
struct Bind<Pointer<const T>> {
  static constexpr bool is_buffer = true, is_written = false;
  static constexpr int element_bytes = sizeof(T);
  static Pointer<const T> take(Arguments& arguments) { return {{*arguments.buffers++, 0}}; }
};

template <class... Rest>
struct Call {
  template <class Kernel, class... Bound>
  static void run(Kernel kernel, Arguments&, Bound... bound) {
    kernel(bound...);
  }
};
template <class P, class... Rest>
struct Call<P, Rest...> {
  template <class Kernel, class... Bound>
  static void run(Kernel kernel, Arguments& arguments, Bound... bound) {
    const P value = Bind<P>::take(arguments);
    Call<Rest...>::run(kernel, arguments, bound..., value);
  }
};

template <class... P>
void call(void (*kernel)(P...), Arguments arguments) {
  Call<P...>::run(kernel, arguments);
}

template <class... P>
void describe(void (*)(P...), Signature* signature) {
  signature->buffers = signature->scalars = 0;
  const auto add = [&](bool is_buffer, bool is_written, int element_bytes) {
    if (!is_buffer) {
      ++signature->scalars;
      return;
    }
    if (signature->buffers < Signature::most_buffers) {
      signature->written[signature->buffers] = is_written;
      signature->element_bytes[signature->buffers] = element_bytes;
    }
    ++signature->buffers;
  };
  (add(Bind<P>::is_buffer, Bind<P>::is_written, Bind<P>::element_bytes), ...);
}

}  // namespace lemma::emulator

extern "C" inline __attribute__((used)) lemma::emulator::Thread** lm_emulator_current() {
  return &lemma::emulator::current;
}
