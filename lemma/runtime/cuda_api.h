// The part of CUDA's driver interface that is used, declared here so that no toolkit is needed to build. Names are the
// standard's without the prefix cu and without the version at the end.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lemma::runtime::cuda {

struct Context_;
struct Stream_;
struct Module_;
struct Function_;
struct Event_;
struct Graph_;
struct GraphExec_;
using DeviceId = int;
using Context = Context_*;
using Stream = Stream_*;
using Module = Module_*;
using Function = Function_*;
using Event = Event_*;
using Graph = Graph_*;
using GraphExec = GraphExec_*;
using Pointer = uint64_t;

inline constexpr int kSuccess = 0, kOutOfMemory = 2, kNotFound = 500, kNotReady = 600;
inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr int kCaptureRelaxed = 2;
inline constexpr int kFunctionMaxDynamicShared = 8;

// Attributes of a device.
inline constexpr int kMaxThreads = 1, kMaxGridX = 5, kMaxGridY = 6, kMaxGridZ = 7, kWarpSize = 10;
inline constexpr int kCapabilityMajor = 75, kCapabilityMinor = 76, kMaxSharedOptin = 97;

struct Functions {
  int (*Init)(unsigned);
  int (*DriverGetVersion)(int*);
  int (*GetErrorName)(int, const char**);
  int (*GetErrorString)(int, const char**);
  int (*DeviceGetCount)(int*);
  int (*DeviceGet)(DeviceId*, int);
  int (*DeviceGetName)(char*, int, DeviceId);
  int (*DeviceTotalMem)(size_t*, DeviceId);
  int (*DeviceGetAttribute)(int*, int, DeviceId);
  int (*DevicePrimaryCtxRetain)(Context*, DeviceId);
  int (*DevicePrimaryCtxRelease)(DeviceId);
  int (*CtxSetCurrent)(Context);
  int (*StreamCreate)(Stream*, unsigned);
  int (*StreamDestroy)(Stream);
  int (*StreamQuery)(Stream);
  int (*ModuleLoadDataEx)(Module*, const void*, unsigned, const int*, void**);
  int (*ModuleUnload)(Module);
  int (*ModuleGetFunction)(Function*, Module, const char*);
  int (*FuncSetAttribute)(Function, int, int);
  int (*MemAlloc)(Pointer*, size_t);
  int (*MemFree)(Pointer);
  int (*MemcpyHtoDAsync)(Pointer, const void*, size_t, Stream);
  int (*MemcpyDtoHAsync)(void*, Pointer, size_t, Stream);
  int (*MemsetD8Async)(Pointer, unsigned char, size_t, Stream);
  int (*LaunchKernel)(Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Stream, void**,
                      void**);
  int (*EventCreate)(Event*, unsigned);
  int (*EventRecord)(Event, Stream);
  int (*EventElapsedTime)(float*, Event, Event);
  int (*EventDestroy)(Event);
  int (*StreamBeginCapture)(Stream, int);
  int (*StreamEndCapture)(Stream, Graph*);
  int (*GraphInstantiate)(GraphExec*, Graph, unsigned long long);
  int (*GraphLaunch)(GraphExec, Stream);
  int (*GraphDestroy)(Graph);
  int (*GraphExecDestroy)(GraphExec);
};

}  // namespace lemma::runtime::cuda
