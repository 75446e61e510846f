#include "lemma/lower/lower.h"

#include <set>

#include "lemma/lower/groups.h"

namespace lemma::lower {
namespace {

using tensor::Graph;
using tensor::Input;
using tensor::Value;

// Parameters: the inputs in order, then the outputs in order. An input that an output takes over is an Update.
void declare_parameters(Context& context) {
  const Graph& graph = context.graph;
  std::set<int> updated;
  for (const tensor::GraphOutput& o : graph.outputs) {
    if (o.updates) updated.insert(o.updates->index);
  }
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const auto* input = std::get_if<Input>(&graph.nodes[n]);
    if (!input) continue;
    tile::Buffer buffer;
    buffer.name = input->name;
    buffer.type = input->type;
    buffer.space = updated.count(int(n)) ? tile::Space::Update : tile::Space::Input;
    buffer.extents = input->extents;
    if (input->strided) {
      for (size_t d = 0; d < input->extents.size(); ++d) {
        context.program.sizes.push_back({input->name + ".stride." + std::to_string(d), {}});
        buffer.strides.push_back(Form::size(int(context.program.sizes.size()) - 1));
      }
    }
    const int id = context.add_buffer(std::move(buffer));
    context.homes[{tensor::Tensor{int32_t(n)}, 0}].push_back({id, false, {}});
  }
}

tile::Buffer global(const Graph& graph, Value value, const std::string& name, scalar::DType type, tile::Space space) {
  tile::Buffer buffer;
  buffer.name = name;
  buffer.type = type;
  buffer.space = space;
  buffer.extents = tensor::extents(graph, value);
  return buffer;
}

// An output can be written straight into the input it takes over if it is a scatter onto that input and nothing else
// reads the input.
bool updates_in_place(const Graph& graph, const tensor::GraphOutput& output) {
  const auto* scatter = std::get_if<tensor::Scatter>(&graph.node(output.value.node));
  if (!scatter || !scatter->base || !(scatter->base->node == *output.updates)) return false;
  int reads = 0;
  for (const tensor::Node& n : graph.nodes) {
    for (Value v : tensor::sources(n)) reads += v.node == *output.updates;
  }
  return reads == 1 && scatter->type == std::get<Input>(graph.node(*output.updates)).type;
}

// Copies `from` into `to`, element by element.
void copy_kernel(Context& context, const std::string& name, int from, int to, const std::vector<Form>& extents) {
  tile::Kernel kernel;
  kernel.name = name;
  tile::Map map;
  tile::Access read, write;
  read.buffer = from;
  write.buffer = to;
  for (size_t d = 0; d < extents.size(); ++d) {
    const tile::Var v = context.variable("i" + std::to_string(d));
    map.points.push_back({v, extents[d]});
    read.coords.push_back(Form::index(v));
  }
  write.coords = read.coords;
  // The outermost dimension is the grid.
  if (map.points.size() > 1) {
    kernel.grid.push_back({map.points[0].var, map.points[0].extent, false});
    map.points.erase(map.points.begin());
  }
  const scalar::Kind kind = scalar::kind_of(context.program.buffers[size_t(from)].type);
  const scalar::Kind stored = scalar::kind_of(context.program.buffers[size_t(to)].type);
  map.reads.push_back(read);
  map.stores.push_back({write, scalar::cast(scalar::arg(*context.program.arena, kind, 0), stored), {}, {}});
  kernel.body.push_back(std::move(map));
  context.program.kernels.push_back(std::move(kernel));
}

bool read_elsewhere(const Graph& graph, const schedule::Schedule& schedule, Value value) {
  for (const schedule::Group& g : schedule.groups) {
    if (g.member(value.node)) continue;
    for (const schedule::Member& m : g.members) {
      for (Value v : tensor::sources(graph.node(m.node))) {
        if (v == value) return true;
      }
    }
  }
  return false;
}

struct PendingCopy {
  std::string name;
  Value value;
  int to;
};

// Homes of outputs, and scratch for what passes between kernels. Copies that run last are returned.
std::vector<PendingCopy> declare_values(Context& context, const schedule::Schedule& schedule) {
  const Graph& graph = context.graph;
  std::vector<PendingCopy> copies;
  for (const tensor::GraphOutput& o : graph.outputs) {
    const bool in_place = o.updates && updates_in_place(graph, o);
    if (in_place) {
      context.homes[o.value].push_back(*context.global_home({*o.updates, 0}));
      continue;
    }
    int id;
    if (o.updates) {
      id = context.global_home({*o.updates, 0})->buffer;
    } else {
      id = context.add_buffer(global(graph, o.value, o.name, o.type, tile::Space::Output));
    }
    // Other kernels read a value at its own precision, not at an output's.
    const bool exact = o.type == tensor::type(graph, o.value) || !read_elsewhere(graph, schedule, o.value);
    const bool direct = !o.updates && exact && !context.global_home(o.value);
    if (direct) context.homes[o.value].push_back({id, false, {}});
    else copies.push_back({o.name, o.value, id});
  }
  std::vector<int> group_of(graph.nodes.size(), -1);
  for (size_t g = 0; g < schedule.groups.size(); ++g) {
    for (const schedule::Member& m : schedule.groups[g].members) group_of[size_t(m.node.index)] = int(g);
  }
  auto need = [&](Value v) {
    if (context.global_home(v)) return;
    const int id = context.add_buffer(
        global(graph, v, tensor::name(graph, v), tensor::type(graph, v), tile::Space::Scratch));
    context.homes[v].push_back({id, false, {}});
  };
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (group_of[n] < 0) continue;
    for (Value v : tensor::sources(graph.nodes[n])) {
      if (group_of[size_t(v.node.index)] != group_of[n]) need(v);
    }
    if (std::holds_alternative<tensor::Scatter>(graph.nodes[n])) need({tensor::Tensor{int32_t(n)}, 0});
  }
  for (const PendingCopy& c : copies) need(c.value);
  return copies;
}

}  // namespace

base::Result<tile::Program> lower(const Graph& graph, const schedule::Schedule& schedule, const tile::Target& target) {
  Context context(graph, target);
  declare_parameters(context);
  const std::vector<PendingCopy> copies = declare_values(context, schedule);
  for (const schedule::Group& group : schedule.groups) {
    base::Result<void> done = [&]() -> base::Result<void> {
      switch (group.strategy) {
        case schedule::Strategy::Rows: return lower_rows(context, group);
        case schedule::Strategy::Product:
          return target.device ? lower_device_product(context, group) : lower_product(context, group);
        case schedule::Strategy::Streamed:
          return target.device ? lower_device_streamed(context, group) : lower_streamed(context, group);
        case schedule::Strategy::Scatter: return lower_scatter(context, group);
      }
      return {};
    }();
    if (!done) return done.error();
    // Local homes end with the kernel.
    for (auto& [value, homes] : context.homes) {
      std::erase_if(homes, [](const Home& h) { return h.local; });
    }
  }
  for (const PendingCopy& c : copies) {
    copy_kernel(context, c.name + ".copy", context.global_home(c.value)->buffer, c.to,
                tensor::extents(graph, c.value));
  }
  return std::move(context.program);
}

}  // namespace lemma::lower
