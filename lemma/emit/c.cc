// The unit: prelude, environment, one function a kernel, the entry points.

#include "lemma/emit/c.h"

#include <algorithm>

#include "lemma/emit/block.h"
#include "lemma/emit/library.h"
#include "lemma/emit/prelude.h"
#include "lemma/emit/statements.h"
#include "lemma/emit/unit.h"
#include "lemma/emit/value.h"
#include "lemma/tile/passes/split_phases.h"
#include "lemma/tile/space.h"

namespace lemma::emit {

using scalar::Expr;
using tile::Space;
using view::Form;

namespace {

constexpr int64_t kStackBytes = 16 << 10;

std::string bytes_text(Unit& unit, const Form& count, scalar::DType type) {
  const std::string n = unit.form_text(count, {});
  if (scalar::bits(type) == 4) return "((" + n + " + 1) / 2)";
  return "(" + n + ") * " + std::to_string(scalar::bits(type) / 8);
}

struct KernelText {
  std::string name;
  std::string text;         // the block function
  std::string local_bytes;  // what a thread's slice must hold, over lm_e->sizes
  bool any_local = false;
};

class UnitWriter {
 public:
  UnitWriter(const tile::Program& program, const COptions& options) : p_(program), unit_(program, options) {}

  std::string source(const std::string& exported) {
    for (const tile::Kernel& k : p_.kernels) kernels_.push_back(kernel(k));
    std::string body = environment();
    for (const std::string& tile : unit_.tiles) body += tile + "\n";
    for (const KernelText& k : kernels_) body += k.text;
    unit_.out = Writer();
    sizes_function();
    workspace_function();
    for (size_t k = 0; k < kernels_.size(); ++k) launch_function(p_.kernels[k], kernels_[k]);
    run_function();
    body += unit_.out.text();
    body += exported;
    std::string head = "/* " + title() + " */\n#include <math.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <string.h>\n";
    if (unit_.prints) head += "#include <stdio.h>\n";
    return head + prelude_for(body, unit_.options.target.vector_bytes) + "\n" + body;
  }

  Unit& unit() { return unit_; }

 private:
  std::string title() const { return "Made by Lemma from the program " + clean_identifier(p_.name) + " for " + clean_identifier(unit_.options.target.name); }

  // ---- one kernel ----

  KernelText kernel(const tile::Kernel& k) {
    unit_.out = Writer();
    unit_.used_sizes.clear();
    unit_.used_buffers.clear();
    unit_.temporaries.clear();
    unit_.combined.clear();
    unit_.restart_names();
    unit_.out.set_depth(1);
    for (const tile::GridLoop& g : k.grid) note_range(unit_, {g.var, g.extent});
    emit_block(unit_, k.body);
    const std::string body = unit_.out.text();

    KernelText out;
    out.name = names_.take("lm_block_", k.name);
    Writer w;
    if (!k.comment.empty()) w.line("/* " + comment_text(k.comment) + " */");
    std::string head = "LM_NOINLINE void " + out.name + "(const lm_env* lm_e, char* lm_local";
    for (const tile::GridLoop& g : k.grid) head += ", int64_t " + unit_.var_name(g.var);
    w.open(head + ")");
    Writer locals;
    locals.set_depth(1);
    declare_locals(locals, out);  // may use more sizes
    for (int s : unit_.used_sizes) w.line("const int64_t " + unit_.size_names()[size_t(s)] + " = lm_e->" + unit_.size_names()[size_t(s)] + ";");
    for (int b : unit_.used_buffers) {
      if (!is_global(unit_.buffer(b).space)) continue;
      const std::string& name = unit_.raw_buffer_name(b);
      const std::string type = pointer(unit_, b);
      // What other blocks change meanwhile must be read when it is its turn.
      const std::string restricted = unit_.combined.count(b) ? " const " : " LM_RESTRICT const ";
      w.line(type + restricted + name + " = lm_e->" + name + ";");
    }
    w.raw(locals.text());
    w.line("(void)lm_e;");
    w.line("(void)lm_local;");
    for (const tile::GridLoop& g : k.grid) w.line("(void)" + unit_.var_name(g.var) + ";");
    w.raw(body);
    w.close();
    out.text = w.text();
    return out;
  }

  static std::string comment_text(std::string text) {
    for (size_t i = 0; i + 1 < text.size(); ++i) {
      if (text[i] == '*' && text[i + 1] == '/') text[i + 1] = ' ';
      if (text[i] == '/' && text[i + 1] == '*') text[i + 1] = ' ';
    }
    return text;
  }

  // Small buffers of known size on the stack, the others in the thread's slice of the workspace.
  void declare_locals(Writer& w, KernelText& out) {
    std::vector<LocalBuffer> all;
    for (int b : unit_.used_buffers) {
      if (is_global(unit_.buffer(b).space) || b >= int(p_.buffers.size())) continue;
      all.push_back({unit_.raw_buffer_name(b), unit_.buffer(b).type, unit_.element_count(b)});
    }
    all.insert(all.end(), unit_.temporaries.begin(), unit_.temporaries.end());
    int64_t stack = 0;
    for (const LocalBuffer& b : all) {
      const std::string unused = "(void)" + b.name + ";";
      const std::string type = c_type(b.type);
      const auto n = b.count.constant();
      const int64_t bytes = n ? (scalar::bytes(b.type, std::max<int64_t>(*n, 1)) + 63) / 64 * 64 : kStackBytes + 1;
      if (stack + bytes <= kStackBytes) {
        stack += bytes;
        w.line("LM_ALIGN " + type + " " + b.name + "[" + std::to_string(bytes * 8 / std::max(8, scalar::bits(b.type))) + "];");
        w.line(unused);
        continue;
      }
      const std::string size = "lm_round_up(" + bytes_text(unit_, b.count, b.type) + ", 64)";
      w.line(type + "* LM_RESTRICT const " + b.name + " = (" + type + "*)LM_ALIGNED(lm_local);");
      w.line(unused);
      w.line("lm_local += " + size + ";");
      out.local_bytes += (out.local_bytes.empty() ? "" : " + ") + size;
      out.any_local = true;
    }
    if (out.local_bytes.empty()) out.local_bytes = "0";
  }

  // ---- what all kernels see ----

  std::string environment() {
    Writer w;
    w.open("typedef struct lm_env");
    w.line("int32_t* status;");
    w.line("int32_t threads;");
    for (const std::string& s : unit_.size_names()) w.line("int64_t " + s + ";");
    for (size_t b = 0; b < p_.buffers.size(); ++b) {
      if (is_global(p_.buffers[b].space)) w.line(pointer(unit_, int(b)) + " " + unit_.raw_buffer_name(int(b)) + ";");
    }
    w.close(" lm_env;");
    return w.text();
  }

  // Declares every size as a local of the function being written.
  void unpack_sizes() {
    for (const std::string& s : unit_.size_names()) {
      unit_.out.line("const int64_t " + s + " = lm_e->" + s + ";");
      unit_.out.line("(void)" + s + ";");
    }
  }

  void sizes_function() {
    Writer& w = unit_.out;
    w.open("LM_FUNCTION void lm_bind_sizes(lm_env* lm_e, const int64_t* sizes, int32_t threads)");
    w.line("(void)sizes;");
    w.line("lm_e->threads = threads < 1 ? 1 : threads;");
    int next = 0;
    for (size_t s = 0; s < p_.sizes.size(); ++s) {
      const std::string& name = unit_.size_names()[s];
      if (is_threads(p_.sizes[s])) {
        w.line("const int64_t " + name + " = lm_e->threads;");
      } else if (!p_.sizes[s].definition.valid()) {
        w.line("const int64_t " + name + " = sizes[" + std::to_string(next++) + "];");
      } else {
        Frame frame;
        const Value v = emit_value(unit_, frame, scalar::import(p_.sizes[s].definition, unit_.arena));
        w.line("const int64_t " + name + " = " + v.text + ";");
      }
      w.line("lm_e->" + name + " = " + name + ";");
    }
    w.close();
  }

  void workspace_function() {
    Writer& w = unit_.out;
    w.line("/* Bytes of scratch buffers; a thread's slice. */");
    w.open("LM_FUNCTION int64_t lm_scratch_bytes(const lm_env* lm_e)");
    w.line("(void)lm_e;");
    unpack_sizes();
    w.line("int64_t bytes = 0;");
    for (size_t b = 0; b < p_.buffers.size(); ++b) {
      if (p_.buffers[b].space != Space::Scratch) continue;
      w.line("bytes += lm_round_up(" + bytes_text(unit_, unit_.element_count(int(b)), p_.buffers[b].type) + ", 64);");
    }
    w.line("return lm_round_up(bytes, 128);");
    w.close();
    w.open("LM_FUNCTION int64_t lm_slice_bytes(const lm_env* lm_e)");
    w.line("(void)lm_e;");
    unpack_sizes();
    w.line("int64_t most = 0, bytes = 0;");
    for (const KernelText& k : kernels_) {
      if (!k.any_local) continue;
      w.line("bytes = " + k.local_bytes + ";");
      w.line("if (bytes > most) most = bytes;");
    }
    w.line("(void)bytes;");
    w.line("return lm_round_up(most, 128);");
    w.close();
  }

  // ---- launches ----

  std::string block_count(const tile::Kernel& k) {
    std::string out;
    for (const tile::GridLoop& g : k.grid) {
      out += (out.empty() ? "" : " * ") + ("lm_max_i64(0, " + unit_.form_text(g.extent, {}) + ")");
    }
    return out.empty() ? "1" : out;
  }

  // The block function for flat index lm_b.
  void call_block(const tile::Kernel& k, const KernelText& text, const std::string& local) {
    Writer& w = unit_.out;
    std::string arguments = "lm_e, " + local;
    bool descending = false;
    for (const tile::GridLoop& g : k.grid) descending = descending || g.descending;
    (void)descending;
    if (!k.grid.empty()) w.line("int64_t lm_rest = lm_b;");
    for (size_t i = k.grid.size(); i-- > 0;) {
      const tile::GridLoop& g = k.grid[i];
      const std::string& v = unit_.var_name(g.var);
      const std::string extent = "(" + unit_.form_text(g.extent, {}) + ")";
      w.line("int64_t " + v + " = lm_rest" + (i > 0 ? " % " + extent : "") + ";");
      if (i > 0) w.line("lm_rest /= " + extent + ";");
      if (g.descending) w.line(v + " = " + extent + " - 1 - " + v + ";");
    }
    for (const tile::GridLoop& g : k.grid) arguments += ", " + unit_.var_name(g.var);
    w.line(text.name + "(" + arguments + ");");
  }

  void launch_function(const tile::Kernel& k, const KernelText& text) {
    Writer& w = unit_.out;
    w.open("LM_FUNCTION void " + text.name + "_all(const lm_env* lm_e, char* lm_slices, int64_t lm_slice)");
    unpack_sizes();
    w.line("const int64_t lm_blocks = " + block_count(k) + ";");
    w.line("(void)lm_slice;");
    if (unit_.options.openmp && !k.grid.empty() && !ordered(k)) {
      w.line("#if defined(_OPENMP)");
      w.open("if (lm_e->threads > 1 && lm_blocks > 1)");
      w.line("const int lm_team = lm_blocks < lm_e->threads ? (int)lm_blocks : lm_e->threads;");
      w.line("#pragma omp parallel for schedule(dynamic, 1) num_threads(lm_team)");
      w.open("for (int64_t lm_b = 0; lm_b < lm_blocks; ++lm_b)");
      w.line("if (*(volatile int32_t*)lm_e->status) continue;");
      call_block(k, text, "lm_slices + lm_slice * omp_get_thread_num()");
      w.close();
      w.line("return;");
      w.close();
      w.line("#endif");
    }
    w.open("for (int64_t lm_b = 0; lm_b < lm_blocks; ++lm_b)");
    w.line("if (*lm_e->status) return;");
    call_block(k, text, "lm_slices");
    w.close();
    w.close();
  }

  void run_function() {
    Writer& w = unit_.out;
    w.open("LM_FUNCTION int32_t lm_run(lm_env* lm_e, char* workspace)");
    w.line("(void)workspace;");
    unpack_sizes();
    for (const tile::Assert& a : p_.requirements) {
      unit_.messages.push_back(a.message);
      w.open("");
      Frame frame;
      const std::string condition = condition_with_reads(unit_, frame, a.reads, a.condition);
      w.line("if (!(" + condition + ")) return " + std::to_string(unit_.messages.size()) + ";");
      w.close();
    }
    for (size_t b = 0; b < p_.buffers.size(); ++b) {
      if (p_.buffers[b].space != Space::Scratch) continue;
      w.line("lm_e->" + unit_.raw_buffer_name(int(b)) + " = (" + c_type(p_.buffers[b].type) + "*)(void*)workspace;");
      w.line("workspace += lm_round_up(" + bytes_text(unit_, unit_.element_count(int(b)), p_.buffers[b].type) + ", 64);");
    }
    w.line("char* lm_slices = workspace;");
    w.line("const int64_t lm_slice = lm_slice_bytes(lm_e);");
    w.line("(void)lm_slices;");
    w.line("(void)lm_slice;");
    for (const KernelText& k : kernels_) {
      w.line(k.name + "_all(lm_e, lm_slices, lm_slice);");
      w.line("if (*lm_e->status) return *lm_e->status;");
    }
    w.line("return 0;");
    w.close();
  }

  const tile::Program& p_;
  Unit unit_;
  Names names_;
  std::vector<KernelText> kernels_;
};

base::Result<void> check(const tile::Program& p) {
  for (const tile::Buffer& b : p.buffers) {
    if (scalar::bits(b.type) == 4 && !b.strides.empty()) {
      return base::unsupported("the buffer " + b.name + " has strides and holds two elements a byte", {},
                               "store it contiguously");
    }
  }
  return {};
}

// The messages are known once the unit is written, so this part is made last and put in by the caller.
std::string runtime_exports(const Unit& unit, const tile::Program& p) {
  Writer w;
  w.line("#if defined(_WIN32)");
  w.line("#define LM_EXPORT __declspec(dllexport)");
  w.line("#elif defined(__GNUC__)");
  w.line("#define LM_EXPORT __attribute__((visibility(\"default\")))");
  w.line("#else");
  w.line("#define LM_EXPORT");
  w.line("#endif");
  w.line("LM_EXPORT int32_t lemma_run(const int64_t* sizes, void* const* buffers, void* workspace, int32_t threads);");
  w.line("LM_EXPORT int64_t lemma_workspace(const int64_t* sizes, int32_t threads);");
  w.line("LM_EXPORT const char* lemma_message(int32_t code);");
  w.open("int32_t lemma_run(const int64_t* sizes, void* const* buffers, void* workspace, int32_t threads)");
  w.line("lm_env e;");
  w.line("memset(&e, 0, sizeof e);");
  w.line("lm_bind_sizes(&e, sizes, threads);");
  w.line("(void)buffers;");
  int next = 0;
  for (size_t b = 0; b < p.buffers.size(); ++b) {
    if (!is_parameter(p.buffers[b].space)) continue;
    w.line("e." + unit.raw_buffer_name(int(b)) + " = (" + pointer(unit, int(b)) + ")buffers[" + std::to_string(next++) + "];");
  }
  w.line("int32_t status = 0;");
  w.line("e.status = &status;");
  w.line("return lm_run(&e, (char*)workspace);");
  w.close();
  w.open("int64_t lemma_workspace(const int64_t* sizes, int32_t threads)");
  w.line("lm_env e;");
  w.line("memset(&e, 0, sizeof e);");
  w.line("lm_bind_sizes(&e, sizes, threads);");
  w.line("return lm_scratch_bytes(&e) + lm_slice_bytes(&e) * e.threads;");
  w.close();
  w.open("const char* lemma_message(int32_t code)");
  if (!unit.messages.empty()) {
    w.open("static const char* const messages[] =");
    for (const std::string& m : unit.messages) w.line(quoted(m) + ",");
    w.close(";");
    w.line("return code >= 1 && code <= " + std::to_string(unit.messages.size()) + " ? messages[code - 1] : 0;");
  } else {
    w.line("(void)code;");
    w.line("return 0;");
  }
  w.close();
  return w.text();
}

}  // namespace

base::Result<std::string> emit_c(const tile::Program& given, const COptions& options) {
  LEMMA_TRY_VOID(check(given));
  const tile::Program program = tile::split_phases(given);
  UnitWriter writer(program, options);
  std::string text;
  if (options.openmp) text = "#if defined(_OPENMP)\nint omp_get_thread_num(void);\n#endif\n";
  text += writer.source("");
  return text + runtime_exports(writer.unit(), program);
}

base::Result<Library> emit_library(const tile::Program& given, const COptions& options,
                                   const LibraryOptions& library) {
  LEMMA_TRY_VOID(check(given));
  const tile::Program program = tile::split_phases(given);
  COptions plain = options;
  plain.openmp = options.openmp;
  UnitWriter writer(program, plain);
  std::string text;
  if (plain.openmp) text = "#if defined(_OPENMP)\nint omp_get_thread_num(void);\n#endif\n";
  text += writer.source("");
  return library_of(writer.unit(), program, std::move(text), library.name.empty() ? program.name : library.name);
}

}  // namespace lemma::emit
