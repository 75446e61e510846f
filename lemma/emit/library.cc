#include "lemma/emit/library.h"

#include "lemma/tile/space.h"

namespace lemma::emit {

using scalar::DType;
using tile::Space;

bool is_threads(const tile::SizeDecl& s) { return s.name == "threads" && !s.definition.valid(); }

std::string pointer(const Unit& unit, int b) {
  const bool constant = unit.buffer(b).space == Space::Input;
  return (constant ? "const " : "") + c_type(unit.buffer(b).type) + "*";
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  constexpr char kDigits[] = "01234567";
  for (char c : text) {
    const auto u = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\' || c == '?') {
      out += '\\';
      out += c;
    } else if (u < 32 || u >= 127) {
      out += '\\';
      for (int shift : {6, 3, 0}) out += kDigits[u >> shift & 7];
    } else {
      out += c;
    }
  }
  return out + "\"";
}

namespace {

std::string upper(std::string text) {
  for (char& c : text) if (c >= 'a' && c <= 'z') c = char(c - 'a' + 'A');
  return text;
}

// A comment's text: nothing in it may end the comment.
std::string safe(std::string text) {
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    if ((text[i] == '*' && text[i + 1] == '/') || (text[i] == '/' && text[i + 1] == '*')) text[i + 1] = ' ';
  }
  return text;
}

const char* meaning(DType type) {
  switch (type) {
    case DType::F16: return " (IEEE half precision bits)";
    case DType::BF16: return " (the upper half of an f32's bits)";
    case DType::F8E4M3: case DType::F8E5M2: return " (bits)";
    case DType::I4: case DType::U4: return " (two to a byte, low half first)";
    case DType::Bool: return " (0 or 1)";
    default: return "";
  }
}

// What the typed function takes, in order.
struct Signature {
  std::string function;
  std::vector<int> sizes;                 // given by the caller
  std::vector<std::string> size_names;
  std::vector<int> buffers;
  std::vector<std::string> buffer_names;
};

Signature signature(const tile::Program& p, const std::string& name) {
  Names names;
  Signature out;
  out.function = names.take("", name);
  for (const char* word : {"_workspace", "_message"}) names.take("", out.function + word);
  for (size_t s = 0; s < p.sizes.size(); ++s) {
    if (p.sizes[s].definition.valid() || is_threads(p.sizes[s])) continue;
    out.sizes.push_back(int(s));
    out.size_names.push_back(names.take("", p.sizes[s].name));
  }
  for (size_t b = 0; b < p.buffers.size(); ++b) {
    if (!is_parameter(p.buffers[b].space)) continue;
    out.buffers.push_back(int(b));
    out.buffer_names.push_back(names.take("", p.buffers[b].name));
  }
  return out;
}

std::string shape_text(const tile::Program& p, const tile::Buffer& b) {
  view::Names names;
  names.size = [&](int s) { return p.sizes[size_t(s)].name; };
  names.index = names.data = [](int) { return std::string("?"); };
  std::string out = std::string(scalar::name(b.type)) + "[";
  for (size_t d = 0; d < b.extents.size(); ++d) out += (d ? ", " : "") + view::print(b.extents[d], names);
  return out + "]";
}

std::string joined(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts) out += (out.empty() ? "" : ", ") + part;
  return out;
}

}  // namespace

Library library_of(const Unit& unit, const tile::Program& p, std::string source, const std::string& name) {
  const Signature s = signature(p, name);
  std::vector<std::string> sizes, arguments;
  for (const std::string& n : s.size_names) sizes.push_back("int64_t " + n);
  arguments = sizes;
  for (size_t i = 0; i < s.buffers.size(); ++i) arguments.push_back(pointer(unit, s.buffers[i]) + " " + s.buffer_names[i]);
  arguments.push_back("void* workspace");
  arguments.push_back("int threads");
  sizes.push_back("int threads");
  const std::string run = "int " + s.function + "(" + joined(arguments) + ")";
  const std::string space = "int64_t " + s.function + "_workspace(" + joined(sizes) + ")";
  const std::string message = "const char* " + s.function + "_message(int code)";

  Writer h;
  const std::string guard = upper(s.function) + "_H_INCLUDED";
  h.line("/* " + safe(name) + ", made by Lemma. C99 and its mathematical functions; nothing is allocated in a call. */");
  // The flags with which Lemma compiles kernels for itself; without those of the target vectors are narrower.
  const COptions& options = unit.options;
  const std::string& machine = options.target.compiler_flags;
  h.line("/* To compile: cc -std=gnu11 -O3 -ffp-contract=fast -fno-math-errno -fno-trapping-math " + machine + (machine.empty() ? "" : " ") +
         std::string(options.openmp ? "-fopenmp " : "") + "-c " + s.function + ".c");
  h.line(options.openmp ? " * and link with -lm -fopenmp; without -fopenmp it runs on one thread. */" : " * and link with -lm. */");
  h.line("#ifndef " + guard);
  h.line("#define " + guard);
  h.line("");
  h.line("#include <stdint.h>");
  h.line("");
  h.line("#ifdef __cplusplus");
  h.line("extern \"C\" {");
  h.line("#endif");
  h.line("");
  h.line("/*");
  for (size_t i = 0; i < s.buffers.size(); ++i) {
    const tile::Buffer& b = p.buffers[size_t(s.buffers[i])];
    const char* role = b.space == Space::Input ? "in " : b.space == Space::Output ? "out" : "in and out";
    h.line(" * " + s.buffer_names[i] + ": " + role + ", " + safe(shape_text(p, b)) + meaning(b.type) +
           (b.strides.empty() ? ", row-major and contiguous" : ", strides in elements"));
  }
  h.line(" * workspace: " + s.function + "_workspace(...) bytes, aligned to 64; may be null where that is 0");
  h.line(" * threads: how many threads may be used; more than one needs a source compiled with OpenMP");
  h.line(" * Gives 0, or a code that " + s.function + "_message explains.");
  h.line(" */");
  h.line(run + ";");
  h.line("");
  h.line("/* Bytes of workspace for these sizes. */");
  h.line(space + ";");
  h.line("");
  h.line("/* What a code means; null for 0. */");
  h.line(message + ";");
  h.line("");
  h.line("#ifdef __cplusplus");
  h.line("}");
  h.line("#endif");
  h.line("");
  h.line("#endif");

  Writer w;
  const auto bind = [&] {
    w.line("lm_env lm_e;");
    std::string values;
    for (const std::string& n : s.size_names) values += (values.empty() ? "" : ", ") + n;
    w.line("const int64_t lm_sizes[] = {" + (values.empty() ? "0" : values) + "};");
    w.line("memset(&lm_e, 0, sizeof lm_e);");
    w.line("lm_bind_sizes(&lm_e, lm_sizes, (int32_t)threads);");
  };
  w.open(run);
  bind();
  for (size_t i = 0; i < s.buffers.size(); ++i) {
    w.line("lm_e." + unit.raw_buffer_name(s.buffers[i]) + " = " + s.buffer_names[i] + ";");
  }
  w.line("int32_t lm_status = 0;");
  w.line("lm_e.status = &lm_status;");
  w.line("return (int)lm_run(&lm_e, (char*)workspace);");
  w.close();
  w.open(space);
  bind();
  w.line("return lm_scratch_bytes(&lm_e) + lm_slice_bytes(&lm_e) * lm_e.threads;");
  w.close();
  w.open(message);
  if (unit.messages.empty()) {
    w.line("(void)code;");
    w.line("return 0;");
  } else {
    w.open("static const char* const messages[] =");
    for (const std::string& m : unit.messages) w.line(quoted(m) + ",");
    w.close(";");
    w.line("return code >= 1 && code <= " + std::to_string(unit.messages.size()) + " ? messages[code - 1] : 0;");
  }
  w.close();
  return {s.function, h.text(), "#include \"" + s.function + ".h\"\n\n" + source + w.text()};
}

}  // namespace lemma::emit
