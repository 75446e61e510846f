#include "lemma/emit/device/device.h"

#include <algorithm>
#include <set>

#include "lemma/emit/device/statements.h"
#include "lemma/emit/device/registers.h"
#include "lemma/emit/unit.h"
#include "lemma/tile/effects.h"
#include "lemma/tile/fragments.h"
#include "lemma/tile/space.h"

namespace lemma::emit::device {

using scalar::DType;
using tile::Access;
using view::Form;

namespace {

class KernelWriter {
 public:
  KernelWriter(const tile::Program& program, const tile::Kernel& kernel, int number, const DeviceOptions& options)
      : kernel_(kernel), text_(program, options) {
    text_.prefix = "k" + std::to_string(number) + "_";
    out_.name = "lm_" + std::to_string(number) + "_" + clean_identifier(kernel.name);
    out_.grid.clear();
    for (const tile::GridLoop& g : kernel.grid) out_.grid.push_back(g.extent);
    text_.synchronised = kernel.hints.synchronised;
    if (text_.synchronised && kernel.hints.threads) text_.threads = kernel.hints.threads;
    out_.threads = text_.threads;
  }

  base::Result<DeviceKernel> write(std::string& module, std::vector<std::string>& notes) {
    const tile::Effects uses = tile::effects(kernel_.body);
    LEMMA_TRY_VOID(place(uses));
    Scope scope;
    blocks(scope);
    LEMMA_TRY_VOID(write_block(text_, kernel_.body, scope, notes));
    if (!text_.refusal.empty()) return base::unsupported("the kernel '" + kernel_.name + "': " + text_.refusal);
    for (const auto& [size, name] : text_.size_names) out_.sizes.push_back(size);
    for (int b : out_.buffers) out_.written.push_back(uses.writes.count(b) > 0);
    if (has_slices()) out_.written.push_back(true);
    const std::string body = text_.out.text();
    Writer whole;
    head(whole, uses);
    whole.raw(body);
    whole.line("  }");
    whole.line("}");
    if (text_.dialect.one_text) module += whole.text() + "\n";
    else out_.source = std::string(prelude(text_.dialect)) + whole.text();
    return std::move(out_);
  }

 private:
  // Where every buffer lies: what is local in workgroup memory while it fits, else in the slice.
  base::Result<void> place(const tile::Effects& uses) {
    int64_t shared = text_.synchronised ? reserved_shared_bytes : 4096;  // for what reductions need
    std::set<int> all = uses.reads;
    all.insert(uses.writes.begin(), uses.writes.end());
    for (int b : all) {
      const tile::Buffer& buffer = text_.buffer(b);
      const bool wide_words = scalar::bits(buffer.type) == 64 && !(text_.dialect.words && buffer.type != DType::F64);
      if (buffer.type == DType::F64 && !text_.dialect.doubles) {
        return base::unsupported("the buffer '" + buffer.name + "' is f64, which " + std::string(text_.dialect.name) + " lacks", {}, "use f32");
      }
      text_.buffer_names[b] = text_.prefix + "b_" + clean_identifier(buffer.name) + "_" + std::to_string(b);
      if (is_global(buffer.space)) {
        text_.held[b] = Held::Global;
        out_.buffers.push_back(b);
        if (text_.dialect.words && uses.writes.count(b) && scalar::bits(buffer.type) < 32) text_.atomic_buffers.insert(b);
        if (uses.combines.count(b) && scalar::bits(buffer.type) == 32) text_.atomic_buffers.insert(b);
        continue;
      }
      if (tile::in_registers(buffer)) {
        text_.held[b] = Held::Registers;
        continue;
      }
      const auto n = text_.count(b).constant();
      const int64_t bytes = n ? *n * (wide_words ? 8 : text_.dialect.words || uses.combines.count(b) ? 4 : std::max<int64_t>(1, scalar::bits(buffer.type) / 8)) : 0;
      if (n && *n > 0 && shared + bytes <= text_.options.shared_bytes && scalar::bits(buffer.type) >= 8) {
        const int64_t unit = text_.synchronised ? 1024 : 16;
        shared += (bytes + unit - 1) / unit * unit;
        text_.held[b] = Held::Shared;
        if (uses.combines.count(b) && scalar::bits(buffer.type) == 32) text_.atomic_buffers.insert(b);
      } else {
        text_.held[b] = Held::Slice;
        text_.slice_offset[b] = out_.slice_words;
        out_.slice_words = out_.slice_words + text_.count(b) * Form(wide_words ? 2 : 1);
      }
    }
    const int bound = int(out_.buffers.size()) + (has_slices() ? 1 : 0);
    if (bound > text_.options.max_buffers) {
      return base::unsupported("the kernel '" + kernel_.name + "' uses " + std::to_string(bound) + " buffers, and the device binds at most " +
                               std::to_string(text_.options.max_buffers));
    }
    return {};
  }

  bool has_slices() const { return !(out_.slice_words == Form(0)); }

  // The loop over blocks, and the grid's variables.
  void blocks(Scope& scope) {
    text_.out.set_depth(1);
    const Dialect& d = text_.dialect;
    const Box box = define_box(text_, "g", out_.grid, scope);
    const std::string block = "lm_block";
    text_.loop(block, convert(d, text_.index_type(), "lm_group"), box.count, convert(d, text_.index_type(), "lm_groups"));
    const bool grouped = kernel_.hints.order_rows > 1 && box.extents.size() >= 2 && !d.words;
    const std::vector<std::string> at = grouped ? grouped_order(box, block) : take_apart(text_, box, block);
    for (size_t i = 0; i < at.size(); ++i) {
      std::string v = at[i];
      if (kernel_.grid[i].descending) {
        const std::string back = text_.fresh("v");
        text_.define(text_.index_type(), back, box.extents[i] + " - " + index_literal(d, 1) + " - " + v);
        v = back;
      }
      scope.vars[kernel_.grid[i].var] = v;
    }
    for (const auto& [b, offset] : text_.slice_offset) slices_.push_back({b, text_.form(offset, scope)});
    slice_text_ = has_slices() ? text_.form(out_.slice_words, scope) : "";
  }

  // `order rows R`: R values of the last dimension, under them all of the one before, then the next R. What the blocks at
  // work read together is then closer to a square.
  std::vector<std::string> grouped_order(const Box& box, const std::string& block) {
    const std::string_view index = text_.index_type();
    const size_t rank = box.extents.size();
    const std::string &slow = box.extents[rank - 2], &fast = box.extents[rank - 1], rows = index_literal(text_.dialect, kernel_.hints.order_rows);
    const auto define = [&](const std::string& stem, const std::string& value) {
      const std::string name = text_.fresh(stem);
      text_.define(index, name, value);
      return name;
    };
    const std::string plane = define("q", block + " % (" + slow + " * " + fast + ")");
    const std::string group = define("q", plane + " / (" + rows + " * " + slow + ")");
    const std::string first = define("q", group + " * " + rows);
    const std::string left = define("q", fast + " - " + first + " < " + rows + " ? " + fast + " - " + first + " : " + rows);
    const std::string inside = define("q", plane + " - " + first + " * " + slow);
    Box outer{{box.extents.begin(), box.extents.end() - 2}, ""};
    std::vector<std::string> out;
    if (rank > 2) out = take_apart(text_, outer, define("q", block + " / (" + slow + " * " + fast + ")"));
    out.push_back(define("v", inside + " / " + left));
    out.push_back(define("v", first + " + " + inside + " % " + left));
    return out;
  }

  std::string element_type(int b) const {
    if (text_.dialect.words) return text_.dialect.id == DialectId::Wgsl ? (text_.atomic_buffers.count(b) ? "atomic<u32>" : "u32") : "uint";
    if (text_.atomic_buffers.count(b)) return std::string(type_name(text_.dialect, scalar::Kind::U32));
    return std::string(storage_name(text_.dialect, text_.buffer(b).type));
  }

  std::string shared_declaration(int b) const {
    const int64_t n = *text_.count(b).constant() * (text_.dialect.words && text_.buffer(b).type == DType::F64 ? 2 : 1);
    const std::string name = text_.buffer_names.at(b), count = std::to_string(n), type = element_type(b);
    switch (text_.dialect.id) {
      case DialectId::Cuda: return "LM_SHARED(" + type + ", " + name + ", " + count + ");";
      case DialectId::OpenCl: return "__local " + type + " " + name + "[" + count + "];";
      case DialectId::Metal: return "LM_SHARED(" + type + ", " + name + ", " + count + ");";
      case DialectId::Glsl: return "shared uint " + name + "[" + count + "];";
      case DialectId::Wgsl: return "var<workgroup> " + name + ": array<" + type + ", " + count + ">;";
    }
    return "";
  }

  // A part of the workgroup's memory, whose rows of 128 bytes begin at multiples of 1024.
  std::string pooled(int b) {
    const std::string type = element_type(b), name = text_.buffer_names.at(b);
    const std::string at = std::to_string(out_.shared_bytes);
    const int64_t bytes = *text_.count(b).constant() * (text_.atomic_buffers.count(b) ? 4 : std::max<int64_t>(1, scalar::bits(text_.buffer(b).type) / 8));
    out_.shared_bytes += (bytes + 1023) / 1024 * 1024;
    return "LM_POINTER(" + type + ") " + name + " = lm_shared_at<" + type + ">(lm_pool, " + at + ");";
  }

  void head(Writer& out, const tile::Effects& uses) {
    const Dialect& d = text_.dialect;
    const std::string threads = std::to_string(text_.threads), slices = text_.prefix + "slices", args = text_.prefix + "args";
    std::vector<std::string> shared;
    const bool pool = text_.synchronised && d.id == DialectId::Cuda;  // more than a static array may have
    if (pool) shared.push_back("LM_SHARED_POOL(lm_pool);");
    for (const auto& [b, held] : text_.held) {
      if (held != Held::Shared) continue;
      shared.push_back(pool ? pooled(b) : shared_declaration(b));
    }
    std::vector<std::string> parameters;
    const size_t count = out_.buffers.size() + (has_slices() ? 1 : 0);
    for (size_t i = 0; i < count; ++i) {
      const bool last = i == out_.buffers.size();
      const std::string name = last ? slices : text_.buffer_names.at(out_.buffers[i]);
      const std::string type = last ? std::string(d.id == DialectId::Wgsl ? "u32" : type_name(d, scalar::Kind::U32)) : element_type(out_.buffers[i]);
      const bool reads = !last && !uses.writes.count(out_.buffers[i]);
      const std::string n = std::to_string(i), held = reads ? "const " + type : type;
      switch (d.id) {
        case DialectId::Cuda: parameters.push_back("LM_GLOBAL(" + held + ") " + name); break;
        case DialectId::OpenCl: parameters.push_back("__global " + held + "* " + name); break;
        case DialectId::Metal: parameters.push_back("LM_PARAMETER(" + held + ", " + name + ", " + n + ")"); break;
        case DialectId::Glsl: out.line("layout(std430, set = 0, binding = " + n + ") buffer B" + n + " { uint " + name + "[]; };"); break;
        case DialectId::Wgsl:
          out.line("@group(0) @binding(" + n + ") var<storage, " + (reads ? "read" : "read_write") + "> " + name + ": array<" + type + ">;");
          break;
      }
    }
    const std::string last = std::to_string(count);
    std::vector<std::string> sizes;
    for (const auto& [id, name] : text_.size_names) sizes.push_back(name);
    switch (d.id) {
      case DialectId::Cuda: for (const std::string& s : sizes) parameters.push_back("long long " + s); break;
      case DialectId::OpenCl: for (const std::string& s : sizes) parameters.push_back("long " + s); break;
      case DialectId::Metal:
        if (!sizes.empty()) parameters.push_back("LM_SIZES(" + args + ", " + last + ")");
        break;
      case DialectId::Glsl:
        if (!sizes.empty()) {
          std::string fields;
          for (const std::string& s : sizes) fields += "int " + s + "_; ";
          out.line("layout(push_constant) uniform Sizes { " + fields + "} lm_args;");
        }
        out.line("layout(local_size_x = " + threads + ") in;");
        break;
      case DialectId::Wgsl:
        if (!sizes.empty()) out.line("@group(0) @binding(" + last + ") var<storage, read> " + args + ": array<i32>;");
        break;
    }
    std::string list;
    for (const std::string& p : parameters) list += (list.empty() ? "" : ", ") + p;
    if (d.words) for (const std::string& s : shared) out.line(s);
    switch (d.id) {
      case DialectId::Cuda: out.open("LM_KERNEL(" + out_.name + ", " + threads + ")(" + list + ")"); break;
      case DialectId::Metal: out.open("LM_KERNEL(" + out_.name + ", " + threads + ")(" + list + (list.empty() ? "LM_IDS)" : " LM_AND_IDS)")); break;
      case DialectId::OpenCl: out.open("__kernel __attribute__((reqd_work_group_size(" + threads + ", 1, 1))) void " + out_.name + "(" + list + ")"); break;
      case DialectId::Glsl: out.open("void main()"); break;
      case DialectId::Wgsl:
        out.open("@compute @workgroup_size(" + threads + ")\nfn " + out_.name +
                 "(@builtin(local_invocation_index) lm_tid_: u32, @builtin(workgroup_id) lm_group_: vec3<u32>, @builtin(num_workgroups) lm_groups_: vec3<u32>)");
        break;
    }
    const std::string_view index = text_.index_type();
    switch (d.id) {
      case DialectId::Cuda:
      case DialectId::Metal: out.line("const int lm_tid = LM_TID, lm_group = LM_BLOCK_X, lm_groups = LM_GRID_X;"); break;
      case DialectId::OpenCl: break;  // macros: a private variable across barriers costs PoCL a slot a thread
      case DialectId::Glsl: out.line("const int lm_tid = int(gl_LocalInvocationIndex), lm_group = int(gl_WorkGroupID.x), lm_groups = int(gl_NumWorkGroups.x);"); break;
      case DialectId::Wgsl: out.line("let lm_tid = i32(lm_tid_); let lm_group = i32(lm_group_.x); let lm_groups = i32(lm_groups_.x);"); break;
    }
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (d.id == DialectId::Metal) out.line("const long " + sizes[i] + " = " + args + "[" + std::to_string(i) + "];");
      if (d.id == DialectId::Glsl) out.line("const int " + sizes[i] + " = lm_args." + sizes[i] + "_;");
      if (d.id == DialectId::Wgsl) out.line("let " + sizes[i] + " = " + args + "[" + std::to_string(i) + "];");
    }
    if (!d.words) for (const std::string& s : shared) out.line(s);
    if (text_.synchronised) {
      out.line("const int lm_lane = lm_tid & 31, lm_warp = lm_tid >> 5;");
      for (const std::string& line : text_.prologue) out.line(line);
      for (const auto& [b, held] : text_.held) if (held == Held::Registers) out.line(register_declaration(text_, b));
    }
    for (const auto& [b, offset] : slices_) {
      // A slice's buffer is reached through the whole one, from its first word on.
      const std::string start = text_.buffer_names.at(b) + "_0";
      out.line(fixed(d, index, start, convert(d, index, "lm_group") + " * " + slice_text_ + " + " + offset));
    }
  }

  const tile::Kernel& kernel_;
  Text text_;
  DeviceKernel out_;
  std::vector<std::pair<int, std::string>> slices_;
  std::string slice_text_;
};

}  // namespace

base::Result<DeviceProgram> emit_device(const tile::Program& program, const DeviceOptions& options) {
  DeviceProgram out;
  const Dialect& d = dialect(options.dialect);
  std::string module;
  for (size_t k = 0; k < program.kernels.size(); ++k) {
    KernelWriter writer(program, program.kernels[k], int(k), options);
    LEMMA_TRY(DeviceKernel kernel, writer.write(module, out.notes));
    out.kernels.push_back(std::move(kernel));
  }
  out.preamble = preamble(d);
  if (d.one_text) out.source = std::string(prelude(d)) + module;
  return out;
}

}  // namespace lemma::emit::device
