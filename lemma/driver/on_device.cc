#include "lemma/driver/on_device.h"

#include <algorithm>
#include <map>

#include "lemma/emit/library.h"
#include "lemma/emit/unit.h"
#include "lemma/scalar/eval.h"
#include "lemma/tile/passes/thread_form.h"
#include "lemma/tile/space.h"

namespace lemma::driver {

using base::Result;
using emit::device::DialectId;
using tile::Space;
using view::Form;

DialectId dialect_of(runtime::Api api) {
  switch (api) {
    case runtime::Api::Cuda: return DialectId::Cuda;
    case runtime::Api::OpenCl: return DialectId::OpenCl;
    case runtime::Api::Vulkan: return DialectId::Glsl;
    case runtime::Api::WebGpu: return DialectId::Wgsl;
  }
  return DialectId::OpenCl;
}

emit::device::DeviceOptions device_options(const runtime::DeviceInfo& info) {
  emit::device::DeviceOptions out;
  out.dialect = dialect_of(info.api);
  const bool cuda = info.api == runtime::Api::Cuda;
  out.threads = cuda ? 128 : int(std::min<int64_t>(64, info.max_threads));
  // CUDA gives a block all of an SM's memory if it is asked at launch; elsewhere 48 KiB are common.
  out.shared_bytes = std::min<int64_t>(info.shared_bytes > 0 ? info.shared_bytes : 16 << 10, cuda ? 1 << 20 : 48 << 10);
  out.matrix_units = cuda;
  out.max_buffers = info.max_bindings > 0 ? info.max_bindings : 8;
  return out;
}

emit::device::DeviceOptions text_options(DialectId dialect) {
  emit::device::DeviceOptions out;
  out.dialect = dialect;
  if (dialect != DialectId::Cuda) return out;
  out.shared_bytes = 160 << 10;
  out.max_buffers = 64;
  out.matrix_units = true;
  return out;
}

tile::Target device_target(const emit::device::DeviceOptions& options) {
  tile::Target out;
  out.name = std::string(emit::device::dialect(options.dialect).name);
  out.device = true;
  out.max_buffers = options.max_buffers;
  out.shared_bytes = std::max<int64_t>(8 << 10, options.shared_bytes - emit::device::reserved_shared_bytes);
  if (options.dialect == DialectId::Cuda) {
    out.matrix_units = options.matrix_units;
    out.warps = true;
    out.tile_rows = out.tile_columns = 128;
    out.tile_depth = 64;
    out.stream_rows = 128;
    out.stream_columns = 64;
  }
  return out;
}

Result<OnDevice> compile_for_device(tensor::Graph graph, CompileOptions options, const emit::device::DeviceOptions& device,
                                    const Trace& trace) {
  if (!options.target.device) options.target = device_target(device);
  LEMMA_TRY(Compiled compiled, compile(std::move(graph), options, trace));
  LEMMA_TRY(OnDevice out, for_device(std::move(compiled), device));
  for (const rewrite::Decision& d : out.compiled.decisions) {
    if (!d.applied && d.pass == "device") out.text.notes.push_back(d.subject + ": " + d.sentence);
  }
  return out;
}

Result<OnDevice> for_device(Compiled compiled, const emit::device::DeviceOptions& device) {
  OnDevice out;
  out.compiled = std::move(compiled);
  std::vector<std::string> notes;
  if (device.dialect == DialectId::Cuda) {
    tile::ThreadTarget target;
    target.options.threads = device.threads;
    target.options.matrix_units = device.matrix_units;
    target.shared_bytes = device.shared_bytes - emit::device::reserved_shared_bytes;
    out.compiled.program = tile::thread_form(std::move(out.compiled.program), target, notes);
  }
  LEMMA_TRY(out.text, emit::device::emit_device(out.compiled.program, device));
  out.text.notes.insert(out.text.notes.begin(), notes.begin(), notes.end());
  return out;
}

namespace {

// The values of all sizes of the program; devices count as one thread where a size says how many there are.
std::vector<int64_t> all_sizes(const tile::Program& program, const std::vector<int64_t>& passed) {
  std::vector<int64_t> out;
  size_t next = 0;
  for (const tile::SizeDecl& s : program.sizes) {
    if (s.definition.valid()) {
      scalar::Leaves leaves;
      leaves.size = [&](int i) { return out[size_t(i)]; };
      out.push_back(scalar::evaluate(s.definition, leaves).i);
    } else {
      out.push_back(s.name == "threads" ? 1 : passed[next++]);
    }
  }
  return out;
}

int64_t evaluate(const Form& form, const std::vector<int64_t>& sizes) {
  return form.evaluate([&](const view::Atom& a) { return sizes[size_t(a.id)]; });
}

}  // namespace

Result<DeviceCall> plan_launches(const OnDevice& program, const Call& call, int64_t most_groups) {
  const tile::Program& p = program.compiled.program;
  const std::vector<int64_t> sizes = all_sizes(p, call.program_sizes);
  for (const tile::Assert& r : p.requirements) {
    if (!r.condition.evaluate([&](const view::Atom& a) { return sizes[size_t(a.id)]; })) return base::invalid(r.message);
  }
  DeviceCall out;
  for (const tile::Buffer& b : p.buffers) {
    int64_t count = tile::is_global(b.space) ? 1 : 0;
    for (const Form& e : b.extents) count *= tile::is_global(b.space) ? std::max<int64_t>(0, evaluate(e, sizes)) : 1;
    // A word at least, so that there is something to bind.
    out.bytes.push_back(tile::is_global(b.space) ? std::max<int64_t>(4, (scalar::bytes(b.type, count) + 3) / 4 * 4) : 0);
  }
  for (size_t k = 0; k < program.text.kernels.size(); ++k) {
    const emit::device::DeviceKernel& kernel = program.text.kernels[k];
    DeviceLaunch launch;
    launch.kernel = int(k);
    launch.blocks = 1;
    for (const Form& e : kernel.grid) launch.blocks *= std::max<int64_t>(0, evaluate(e, sizes));
    const int64_t words = evaluate(kernel.slice_words, sizes);
    // Slices of all workgroups together stay within 256 MiB, as workgroups walk over the blocks.
    int64_t groups = std::min(launch.blocks, most_groups);
    if (words > 0) groups = std::min(groups, std::max<int64_t>(1, (int64_t(64) << 20) / words));
    launch.blocks = groups;
    launch.slice_words = kernel.slice_words == Form(0) ? 0 : std::max<int64_t>(1, words * std::max<int64_t>(1, groups));
    launch.buffers = kernel.buffers;
    for (int s : kernel.sizes) launch.scalars.push_back(sizes[size_t(s)]);
    out.launches.push_back(std::move(launch));
  }
  return out;
}

Result<Arguments> contiguous_inputs(const Arguments& arguments) {
  Arguments out;
  out.sizes = arguments.sizes;
  for (const runtime::Named& n : arguments.inputs) {
    LEMMA_TRY(runtime::Array array, runtime::contiguous(n.array));
    out.inputs.push_back({n.name, std::move(array)});
  }
  return out;
}

Result<runtime::DeviceModule> load(runtime::Device& device, const OnDevice& program, runtime::Cache& cache,
                                   const runtime::Notices& notices) {
  runtime::DeviceSource source;
  const bool one = emit::device::dialect(dialect_of(device.info().api)).one_text;
  if (one) source.texts.push_back(program.text.preamble + program.text.source);
  for (const emit::device::DeviceKernel& k : program.text.kernels) {
    runtime::KernelEntry entry;
    entry.name = k.name;
    entry.scalars = int(k.sizes.size());
    entry.threads = uint32_t(k.threads);
    if (!one) {
      entry.text = int(source.texts.size());
      source.texts.push_back(k.source);
    }
    for (bool written : k.written) entry.buffers.push_back(written ? runtime::Access::ReadWrite : runtime::Access::Read);
    source.kernels.push_back(std::move(entry));
  }
  return device.compile(source, cache, notices);
}

Result<OnBuffers> place(runtime::Device& device, const runtime::DeviceModule& module, const OnDevice& program, const Call& call) {
  const tile::Program& p = program.compiled.program;
  LEMMA_TRY(const DeviceCall plan, plan_launches(program, call));
  OnBuffers out;
  size_t parameter = 0;
  for (size_t b = 0; b < p.buffers.size(); ++b) {
    if (!tile::is_global(p.buffers[b].space)) continue;
    LEMMA_TRY(runtime::DeviceBuffer buffer, device.allocate(plan.bytes[b]));
    out.buffers.emplace(int(b), buffer);
    if (!tile::is_parameter(p.buffers[b].space)) {
      LEMMA_TRY_VOID(device.fill(buffer, 0xff));
      continue;
    }
    out.array_of[int(b)] = parameter;
    const runtime::Array& array = call.arrays[parameter];
    const int64_t bytes = scalar::bytes(array.type, array.count());
    std::vector<std::byte> padded(size_t(plan.bytes[b]), std::byte{0xff});
    std::copy_n(static_cast<const std::byte*>(call.buffers[parameter]), bytes, padded.begin());
    LEMMA_TRY_VOID(device.write(buffer, 0, padded));
    ++parameter;
  }
  for (const DeviceLaunch& l : plan.launches) {
    if (l.blocks == 0) continue;
    const emit::device::DeviceKernel& kernel = program.text.kernels[size_t(l.kernel)];
    runtime::Launch launch;
    launch.kernel = kernel.name;
    launch.blocks = {uint32_t(l.blocks), 1, 1};
    launch.threads = uint32_t(kernel.threads);
    launch.dynamic_shared_bytes = uint32_t(kernel.shared_bytes);
    for (int b : l.buffers) launch.buffers.push_back({out.buffers.at(b), 0, -1});
    if (l.slice_words > 0) {
      LEMMA_TRY(runtime::DeviceBuffer slices, device.allocate(4 * l.slice_words));
      launch.buffers.push_back({slices, 0, -1});
    }
    launch.scalars = l.scalars;
    out.steps.push_back({module, std::move(launch)});
  }
  return out;
}

Result<void> launch(runtime::Device& device, const runtime::DeviceModule& module, const OnDevice& program, Call& call) {
  LEMMA_TRY(const OnBuffers placed, place(device, module, program, call));
  for (const runtime::Step& s : placed.steps) LEMMA_TRY_VOID(device.launch(s.module, s.launch));
  LEMMA_TRY_VOID(device.wait());
  for (const auto& [b, at] : placed.array_of) {
    if (program.compiled.program.buffers[size_t(b)].space == Space::Input) continue;
    const runtime::Array& array = call.arrays[at];
    const int64_t bytes = scalar::bytes(array.type, array.count());
    if (bytes == 0) continue;
    const runtime::DeviceBuffer& buffer = placed.buffers.at(b);
    std::vector<std::byte> padded(size_t(buffer.bytes()));
    LEMMA_TRY_VOID(device.read(buffer, 0, padded));
    std::copy_n(padded.begin(), bytes, static_cast<std::byte*>(call.buffers[at]));
  }
  return {};
}

}  // namespace lemma::driver
