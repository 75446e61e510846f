#include "lemma/driver/tile_program.h"

#include <chrono>

#include "lemma/emit/c.h"
#include "lemma/tile/print.h"
#include "lemma/tile/run.h"
#include "lemma/tile/space.h"
#include "lemma/tile/validate.h"
#include "lemma/view/convert.h"

namespace lemma::driver {
namespace {

using base::Result;
using tile::Buffer;
using tile::Space;
using view::AtomKind;
using view::Form;

// Sizes that are nothing but a stride come with the arrays.
std::vector<char> stride_sizes(const tile::Program& program) {
  std::vector<char> stride(program.sizes.size()), other(program.sizes.size());
  for (const Buffer& b : program.buffers) {
    for (const Form& s : b.strides) {
      if (const auto size = s.as_size()) stride[size_t(*size)] = true;
    }
    for (const Form& e : b.extents) {
      for (int size : e.ids(AtomKind::Size)) other[size_t(size)] = true;
    }
  }
  for (size_t i = 0; i < stride.size(); ++i) stride[i] = stride[i] && !other[i];
  return stride;
}

// The graph's forms of the program's sizes: symbols, or what their definitions say.
class Sizes {
 public:
  Sizes(const tile::Program& program, tensor::Graph& graph) : program_(program), forms_(program.sizes.size()) {
    const std::vector<char> strides = stride_sizes(program);
    for (size_t i = 0; i < program.sizes.size(); ++i) {
      const tile::SizeDecl& size = program.sizes[i];
      if (size.name == "threads" || strides[i]) continue;
      if (size.definition.valid()) {
        const auto form = view::from_expr(size.definition);
        if (form && known(*form)) forms_[i] = in_graph(*form);
        continue;
      }
      tensor::Size symbol;
      symbol.name = size.name;
      symbol.typical = size.typical;
      forms_[i] = Form::size(int(graph.sizes.size()));
      graph.sizes.push_back(std::move(symbol));
    }
  }

  Result<Form> form(const Form& f, const Buffer& buffer) const {
    for (int size : f.ids(AtomKind::Size)) {
      if (forms_[size_t(size)]) continue;
      return base::unsupported("an extent of `" + buffer.name + "` uses the size `" + program_.sizes[size_t(size)].name + "`, which is no sum, product or quotient of sizes",
                               {}, "write the extent over the sizes that are given");
    }
    return in_graph(f);
  }
  Result<std::vector<Form>> forms(const std::vector<Form>& list, const Buffer& buffer) const {
    std::vector<Form> out;
    for (const Form& f : list) {
      LEMMA_TRY(Form one, form(f, buffer));
      out.push_back(std::move(one));
    }
    return out;
  }

 private:
  bool known(const Form& f) const {
    for (int size : f.ids(AtomKind::Size)) {
      if (!forms_[size_t(size)]) return false;
    }
    return true;
  }
  Form in_graph(const Form& f) const {
    return f.substitute([&](const view::Atom& a) -> std::optional<Form> {
      return a.kind == AtomKind::Size ? forms_[size_t(a.id)] : std::nullopt;
    });
  }

  const tile::Program& program_;
  std::vector<std::optional<Form>> forms_;
};

// A node of these extents that holds 0 everywhere.
tensor::Value placeholder(tensor::Graph& graph, const Buffer& b, const std::vector<Form>& extents) {
  tensor::Comprehension node;
  node.name = b.name;
  tensor::Output output;
  output.name = b.name;
  output.type = b.type;
  for (const Form& e : extents) {
    output.dims.push_back(int(node.indices.size()));
    node.indices.push_back({"i" + std::to_string(node.indices.size()), e, tensor::Role::Point});
  }
  const scalar::Kind kind = scalar::kind_of(b.type);
  node.body.push_back(kind == scalar::Kind::Bool ? scalar::boolean(*graph.arena, false) : scalar::constant_bits(*graph.arena, kind, 0));
  node.outputs.push_back(std::move(output));
  return {graph.add(std::move(node)), 0};
}

}  // namespace

bool is_tile_text(std::string_view text) {
  size_t at = text.starts_with("\xEF\xBB\xBF") ? 3 : 0;
  while (at < text.size()) {
    if (text[at] == '#') {
      while (at < text.size() && text[at] != '\n') ++at;
    } else if (text[at] == ' ' || text[at] == '\t' || text[at] == '\r' || text[at] == '\n') {
      ++at;
    } else {
      break;
    }
  }
  constexpr std::string_view kWord = "program";
  if (text.substr(at, kWord.size()) != kWord) return false;
  // `program[i] = ...` is an equation.
  const size_t after = text.find_first_not_of(" \t\r\n", at + kWord.size());
  const char next = after == std::string_view::npos ? '\0' : text[after];
  return next == '{' || (after > at + kWord.size() && next != '[' && next != '=' && next != '(');
}

Result<tensor::Graph> interface_of(const tile::Program& program) {
  tensor::Graph graph;
  graph.name = program.name;
  const Sizes sizes(program, graph);
  std::vector<tensor::GraphOutput> updates, outputs;
  for (const Buffer& b : program.buffers) {
    if (!is_parameter(b.space)) continue;
    LEMMA_TRY(std::vector<Form> extents, sizes.forms(b.extents, b));
    if (b.space == Space::Output) {
      outputs.push_back({b.name, placeholder(graph, b, extents), b.type, {}});
      continue;
    }
    if (!outputs.empty()) {
      return base::invalid("the parameter `" + b.name + "` stands after the output `" + outputs[0].name + "`, and inputs and updates come first", {},
                           "move the outputs behind the last input");
    }
    tensor::Input input;
    input.name = b.name;
    input.type = b.type;
    input.extents = extents;
    input.strided = !b.strides.empty();
    if (b.low && b.high) {
      LEMMA_TRY(input.low, sizes.form(*b.low, b));
      LEMMA_TRY(input.high, sizes.form(*b.high, b));
    }
    const tensor::Tensor node = graph.add(std::move(input));
    if (b.space == Space::Update) updates.push_back({b.name, placeholder(graph, b, extents), b.type, node});
  }
  graph.outputs = std::move(updates);
  graph.outputs.insert(graph.outputs.end(), outputs.begin(), outputs.end());
  return graph;
}

Result<Compiled> compile_tiles(tile::Program program, const CompileOptions& options, const Trace& trace) {
  Compiled out;
  const auto start = std::chrono::steady_clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  if (options.schedule) return base::invalid("a tile program has no schedule: it says itself how", {}, "leave --schedule out");
  LEMMA_TRY_VOID(tile::validate(program));
  LEMMA_TRY(out.source, interface_of(program));
  out.derived = out.source;
  out.program = std::move(program);
  if (trace) trace("tile", tile::print(out.program), seconds());
  LEMMA_TRY(out.c_source, emit::emit_c(out.program, {.target = options.target}));
  if (trace) trace("c", out.c_source, seconds());
  return out;
}

Result<std::vector<runtime::Named>> interpret_tiles(const Compiled& compiled, const Arguments& arguments,
                                                    const std::function<void(const std::string&)>& print) {
  LEMMA_TRY(Call call, prepare(compiled, arguments));
  std::vector<tile::SizeValue> sizes;
  size_t next = 0;
  for (const tile::SizeDecl& size : compiled.program.sizes) {
    if (!size.definition.valid() && size.name != "threads") sizes.push_back({size.name, call.program_sizes[next++]});
  }
  std::vector<tile::Argument> memory;
  for (const runtime::Array& array : call.arrays) {
    int64_t reach = array.count() > 0 ? 1 : 0;
    for (size_t d = 0; d < array.extents.size() && reach > 0; ++d) reach += (array.extents[d] - 1) * std::max<int64_t>(array.strides[d], 0);
    memory.push_back({array.data(), reach});
  }
  tile::RunOptions options;
  options.print = print;
  LEMMA_TRY_VOID(tile::run(compiled.program, sizes, memory, options));
  return std::move(call.outputs);
}

}  // namespace lemma::driver
