// A program on a device beside the processor: graph -> tile program for devices -> text of its language -> launches.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lemma/base/result.h"
#include "lemma/driver/compile.h"
#include "lemma/driver/execute.h"
#include "lemma/emit/device/device.h"
#include "lemma/runtime/device.h"

namespace lemma::driver {

// The language that an interface takes.
emit::device::DialectId dialect_of(runtime::Api api);

// What a kernel may use there.
emit::device::DeviceOptions device_options(const runtime::DeviceInfo& info);

// What text for no device at hand may count on: of CUDA what sm_80 and sm_90 have.
emit::device::DeviceOptions text_options(emit::device::DialectId dialect);

// What lowering needs to know of it.
tile::Target device_target(const emit::device::DeviceOptions& options);

struct OnDevice {
  Compiled compiled;
  emit::device::DeviceProgram text;
};

// The text for a dialect; derived as `options` say, scheduled for devices: for the target of `options` if that is a device,
// else for the device's own. The text's notes say what the device kept from sharing a kernel.
base::Result<OnDevice> compile_for_device(tensor::Graph graph, CompileOptions options,
                                          const emit::device::DeviceOptions& device, const Trace& trace = {});

// The same of a program that has its tiles already, written by hand.
base::Result<OnDevice> for_device(Compiled compiled, const emit::device::DeviceOptions& device);

// Every launch of a call in order, for whoever carries it out: the emulator, a device.
struct DeviceLaunch {
  int kernel = 0;                   // of the text's kernels
  int64_t blocks = 0;               // workgroups; 0: nothing to launch
  std::vector<int> buffers;         // of the tile program, in argument order
  int64_t slice_words = 0;          // of all workgroups; 0: no such argument
  std::vector<int64_t> scalars;
};
struct DeviceCall {
  std::vector<DeviceLaunch> launches;
  std::vector<int64_t> bytes;       // per buffer of the tile program that lies in global memory, else 0; multiples of 4
};
// Strided inputs must be contiguous in `call` (see contiguous_inputs).
base::Result<DeviceCall> plan_launches(const OnDevice& program, const Call& call, int64_t most_groups = 4096);

// A call's inputs side by side in memory, as devices take them.
base::Result<Arguments> contiguous_inputs(const Arguments& arguments);

// A call's buffers on a device, inputs and poisoned outputs copied there, and what is to be launched.
struct OnBuffers {
  std::map<int, runtime::DeviceBuffer> buffers;  // of the tile program
  std::map<int, size_t> array_of;                // of parameters: which array of the call
  std::vector<runtime::Step> steps;
};
base::Result<OnBuffers> place(runtime::Device& device, const runtime::DeviceModule& module, const OnDevice& program, const Call& call);

// Places the call, launches, waits, and copies outputs back into the call.
base::Result<void> launch(runtime::Device& device, const runtime::DeviceModule& module, const OnDevice& program, Call& call);

base::Result<runtime::DeviceModule> load(runtime::Device& device, const OnDevice& program, runtime::Cache& cache,
                                         const runtime::Notices& notices = {});

}  // namespace lemma::driver
