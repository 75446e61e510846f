// The part of OpenCL that is used, declared here so that no header is needed to build. Names are the standard's without
// the prefix cl.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lemma::runtime::opencl {

struct Platform_;
struct Device_;
struct Context_;
struct Queue_;
struct Mem_;
struct Program_;
struct Kernel_;
struct Event_;
using Platform = Platform_*;
using DeviceId = Device_*;
using Context = Context_*;
using Queue = Queue_*;
using Mem = Mem_*;
using Program = Program_*;
using Kernel = Kernel_*;
using Event = Event_*;

struct BufferRegion {
  size_t origin;
  size_t size;
};

inline constexpr uint64_t kDeviceTypeAll = 0xFFFFFFFF;
inline constexpr uint64_t kMemReadWrite = 1;
inline constexpr uint64_t kQueueProperties = 0x1093;
inline constexpr uint64_t kQueueProfiling = 2;
inline constexpr uint32_t kBufferRegion = 0x1220;
inline constexpr uint32_t kPlatformName = 0x0902;
inline constexpr uint32_t kPlatformVersion = 0x0901;
inline constexpr uint32_t kDeviceMaxGroupSize = 0x1004;
inline constexpr uint32_t kDeviceMaxAllocation = 0x1010;
inline constexpr uint32_t kDeviceMaxParameterSize = 0x1017;
inline constexpr uint32_t kDeviceAlignBits = 0x1019;
inline constexpr uint32_t kDeviceMemory = 0x101F;
inline constexpr uint32_t kDeviceLocalMemory = 0x1023;
inline constexpr uint32_t kDeviceName = 0x102B;
inline constexpr uint32_t kDriverVersion = 0x102D;
inline constexpr uint32_t kDeviceVersion = 0x102F;
inline constexpr uint32_t kDeviceExtensions = 0x1030;
inline constexpr uint32_t kProgramBinarySizes = 0x1165;
inline constexpr uint32_t kProgramBinaries = 0x1166;
inline constexpr uint32_t kProgramBuildLog = 0x1183;
inline constexpr uint32_t kKernelArguments = 0x1191;
inline constexpr uint32_t kKernelGroupSize = 0x11B0;
inline constexpr uint32_t kEventStatus = 0x11D3;
inline constexpr uint32_t kProfilingStart = 0x1282;
inline constexpr uint32_t kProfilingEnd = 0x1283;
inline constexpr int32_t kBuildProgramFailure = -11;

using Notify = void (*)(const char*, const void*, size_t, void*);
using BuildNotify = void (*)(Program, void*);

struct Functions {
  int32_t (*GetPlatformIDs)(uint32_t, Platform*, uint32_t*);
  int32_t (*GetPlatformInfo)(Platform, uint32_t, size_t, void*, size_t*);
  int32_t (*GetDeviceIDs)(Platform, uint64_t, uint32_t, DeviceId*, uint32_t*);
  int32_t (*GetDeviceInfo)(DeviceId, uint32_t, size_t, void*, size_t*);
  Context (*CreateContext)(const intptr_t*, uint32_t, const DeviceId*, Notify, void*, int32_t*);
  int32_t (*ReleaseContext)(Context);
  Queue (*CreateCommandQueueWithProperties)(Context, DeviceId, const uint64_t*, int32_t*);
  int32_t (*ReleaseCommandQueue)(Queue);
  Mem (*CreateBuffer)(Context, uint64_t, size_t, void*, int32_t*);
  Mem (*CreateSubBuffer)(Mem, uint64_t, uint32_t, const void*, int32_t*);
  int32_t (*ReleaseMemObject)(Mem);
  Program (*CreateProgramWithSource)(Context, uint32_t, const char**, const size_t*, int32_t*);
  Program (*CreateProgramWithBinary)(Context, uint32_t, const DeviceId*, const size_t*, const unsigned char**, int32_t*,
                                     int32_t*);
  int32_t (*BuildProgram)(Program, uint32_t, const DeviceId*, const char*, BuildNotify, void*);
  int32_t (*GetProgramInfo)(Program, uint32_t, size_t, void*, size_t*);
  int32_t (*GetProgramBuildInfo)(Program, DeviceId, uint32_t, size_t, void*, size_t*);
  int32_t (*ReleaseProgram)(Program);
  Kernel (*CreateKernel)(Program, const char*, int32_t*);
  int32_t (*GetKernelInfo)(Kernel, uint32_t, size_t, void*, size_t*);
  int32_t (*GetKernelWorkGroupInfo)(Kernel, DeviceId, uint32_t, size_t, void*, size_t*);
  int32_t (*SetKernelArg)(Kernel, uint32_t, size_t, const void*);
  int32_t (*ReleaseKernel)(Kernel);
  int32_t (*EnqueueNDRangeKernel)(Queue, Kernel, uint32_t, const size_t*, const size_t*, const size_t*, uint32_t,
                                  const Event*, Event*);
  int32_t (*EnqueueWriteBuffer)(Queue, Mem, uint32_t, size_t, size_t, const void*, uint32_t, const Event*, Event*);
  int32_t (*EnqueueReadBuffer)(Queue, Mem, uint32_t, size_t, size_t, void*, uint32_t, const Event*, Event*);
  int32_t (*EnqueueFillBuffer)(Queue, Mem, const void*, size_t, size_t, size_t, uint32_t, const Event*, Event*);
  int32_t (*EnqueueMarkerWithWaitList)(Queue, uint32_t, const Event*, Event*);
  int32_t (*Flush)(Queue);
  int32_t (*GetEventInfo)(Event, uint32_t, size_t, void*, size_t*);
  int32_t (*GetEventProfilingInfo)(Event, uint32_t, size_t, void*, size_t*);
  int32_t (*ReleaseEvent)(Event);
};

}  // namespace lemma::runtime::opencl
