// A thread with little stack, for tests that nothing recurses over what users control.
#pragma once

#include <pthread.h>

#include <gtest/gtest.h>

namespace lemma::scalar::test {

// Runs f on a thread with a 512 KiB stack.
inline void on_small_stack(void (*f)()) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 512 * 1024);
  pthread_t thread;
  void* (*const call)(void*) = [](void* g) -> void* {
    reinterpret_cast<void (*)()>(g)();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, call, reinterpret_cast<void*>(f)), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

}  // namespace lemma::scalar::test
