// The text of schedules: the members of each kernel and its tiles. Loops follow from the members, so they are printed
// as a comment and worked out again when a text is read.
//
//     schedule {
//       kernel s, r, o tile rows=96 stream=256   # streamed: grid b, h, i; stream j; inner d, c
//     }

#include <algorithm>
#include <map>
#include <sstream>

#include "lemma/schedule/schedule.h"

namespace lemma::schedule {
namespace {

using tensor::Graph;
using tensor::Tensor;

const char* name(Strategy s) {
  switch (s) {
    case Strategy::Rows: return "rows";
    case Strategy::Product: return "product";
    case Strategy::Streamed: return "streamed";
    case Strategy::Scatter: return "scatter";
  }
  return "";
}

std::string loops_of(const Group& group, LoopKind kind, const char* label) {
  std::string out;
  for (const Loop& l : group.loops) {
    if (l.kind == kind) out += (out.empty() ? std::string("; ") + label + " " : ", ") + l.name;
  }
  return out;
}

std::string quoted(const std::string& name) {
  for (char c : name) {
    if (!(std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.')) return '"' + name + '"';
  }
  return name;
}

struct Word {
  std::string text;
  int line, column;
  base::Span span() const { return {"", line, column, int(text.size())}; }
};

// Words, commas, braces and equals signs; `#` starts a comment.
std::vector<Word> words(const std::string& text) {
  std::vector<Word> out;
  int line = 1, column = 1;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    auto take = [&](size_t n) {
      out.push_back({text.substr(i, n), line, column});
      i += n;
      column += int(n);
    };
    if (c == '\n') {
      ++line, column = 1, ++i;
    } else if (std::isspace(static_cast<unsigned char>(c))) {
      ++column, ++i;
    } else if (c == '#') {
      while (i < text.size() && text[i] != '\n') ++i;
    } else if (c == '"') {
      size_t end = text.find_first_of("\"\n", i + 1);
      if (end == std::string::npos) end = text.size();
      out.push_back({text.substr(i + 1, end - i - 1), line, column});
      column += int(end - i) + 1;
      i = std::min(text.size(), end + 1);
    } else if (std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.') {
      size_t n = 1;
      while (i + n < text.size() &&
             (std::isalnum(static_cast<unsigned char>(text[i + n])) || text[i + n] == '_' || text[i + n] == '.')) {
        ++n;
      }
      take(n);
    } else {
      take(1);
    }
  }
  return out;
}

}  // namespace

std::string print(const Schedule& schedule, const Graph& graph) {
  std::string out = "schedule {\n";
  for (const Group& g : schedule.groups) {
    out += "  kernel ";
    for (size_t i = 0; i < g.members.size(); ++i) {
      out += (i ? ", " : "") + quoted(tensor::name(graph, {g.members[i].node, 0}));
    }
    const std::pair<const char*, int64_t> tiles[] = {{"rows", g.tiles.rows},
                                                     {"columns", g.tiles.columns},
                                                     {"depth", g.tiles.depth},
                                                     {"stream", g.tiles.stream}};
    bool any = false;
    for (auto [label, value] : tiles) {
      if (value == 0) continue;
      out += (any ? " " : " tile ") + std::string(label) + "=" + std::to_string(value);
      any = true;
    }
    out += std::string("  # ") + name(g.strategy) + loops_of(g, LoopKind::Grid, "grid") +
           loops_of(g, LoopKind::Stream, "stream") + loops_of(g, LoopKind::Inner, "inner") + "\n";
  }
  return out + "}\n";
}

namespace {

constexpr int64_t kLargestTile = 16384;  // two of them make a block of a gigabyte

base::Result<Schedule> parse_words(const std::vector<Word>& list, const Graph& graph, const tile::Target& target) {
  std::map<std::string, Tensor> by_name;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (std::holds_alternative<tensor::Input>(graph.nodes[n])) continue;
    by_name.emplace(tensor::name(graph, {Tensor{int32_t(n)}, 0}), Tensor{int32_t(n)});
  }
  size_t at = 0;
  auto span = [&]() -> base::Span {
    return list.empty() ? base::Span{"", 1, 1, 1} : list[std::min(at, list.size() - 1)].span();
  };
  auto peek = [&](const char* s) { return at < list.size() && list[at].text == s; };
  auto expect = [&](const char* s) -> base::Result<void> {
    if (!peek(s)) {
      return base::invalid("found " + (at < list.size() ? "`" + list[at].text + "`" : std::string("the end")) +
                               ", expected `" + s + "`", span());
    }
    ++at;
    return {};
  };
  LEMMA_TRY_VOID(expect("schedule"));
  LEMMA_TRY_VOID(expect("{"));
  Schedule out;
  std::vector<base::Span> kernels;  // where each group stands
  std::map<int, bool> seen;
  while (at < list.size() && !peek("}")) {
    const base::Span kernel = span();
    LEMMA_TRY_VOID(expect("kernel"));
    std::vector<Tensor> nodes;
    do {
      if (at >= list.size()) return base::invalid("found the end, expected the name of a node", span());
      const auto it = by_name.find(list[at].text);
      if (it == by_name.end()) {
        return base::invalid("no node is called `" + list[at].text + "`", span(),
                             "`lemma show --level derived` lists the nodes a schedule may name");
      }
      if (seen[it->second.index]) return base::invalid("`" + list[at].text + "` stands in two kernels", span());
      seen[it->second.index] = true;
      nodes.push_back(it->second);
      ++at;
    } while (peek(",") && ++at);
    auto group = make_group(graph, nodes, target);
    if (!group) {
      base::Diagnostic d = group.error();
      d.span = kernel;
      return d;
    }
    if (peek("tile")) {
      ++at;
      while (at + 2 < list.size() && list[at + 1].text == "=") {
        int64_t* field = list[at].text == "rows"      ? &group->tiles.rows
                         : list[at].text == "columns" ? &group->tiles.columns
                         : list[at].text == "depth"   ? &group->tiles.depth
                         : list[at].text == "stream"  ? &group->tiles.stream
                                                      : nullptr;
        if (!field) return base::invalid("`" + list[at].text + "` is not a tile", span(), "rows, columns, depth or stream");
        const std::string& tile = list[at].text;
        at += 2;
        const std::string& digits = list[at].text;
        if (digits.size() > 7 || digits.find_first_not_of("0123456789") != std::string::npos || std::stoll(digits) < 1 ||
            std::stoll(digits) > kLargestTile) {
          return base::invalid("the tile " + tile + " of " + tensor::name(graph, {nodes.back(), 0}) + " is `" + digits +
                                   "`, expected a size from 1 to " + std::to_string(kLargestTile),
                               span(), "a block keeps a tile near; leave it out for the target's default");
        }
        *field = std::stoll(digits);
        ++at;
      }
    }
    out.groups.push_back(*std::move(group));
    kernels.push_back(kernel);
  }
  LEMMA_TRY_VOID(expect("}"));
  if (at != list.size()) return base::invalid("found `" + list[at].text + "` after the schedule", span());
  std::string missing;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (std::holds_alternative<tensor::Input>(graph.nodes[n]) || seen[int(n)]) continue;
    missing += (missing.empty() ? "`" : ", `") + tensor::name(graph, {Tensor{int32_t(n)}, 0}) + "`";
  }
  if (!missing.empty()) {
    return base::invalid("the schedule does not name " + missing, {"", list[0].line, list[0].column, int(list[0].text.size())},
                         "each node that computes stands in one kernel; `lemma show --level schedule` prints the default");
  }
  // Launch order: a group after the groups whose values it reads.
  std::vector<int> group_of(graph.nodes.size(), -1);
  for (size_t g = 0; g < out.groups.size(); ++g) {
    for (const Member& m : out.groups[g].members) group_of[size_t(m.node.index)] = int(g);
  }
  std::vector<bool> done(out.groups.size(), false);
  Schedule ordered;
  while (ordered.groups.size() < out.groups.size()) {
    bool moved = false;
    for (size_t g = 0; g < out.groups.size(); ++g) {
      if (done[g]) continue;
      bool ready = true;
      for (const Member& m : out.groups[g].members) {
        for (tensor::Value v : tensor::sources(graph.node(m.node))) {
          const int from = group_of[size_t(v.node.index)];
          if (from >= 0 && from != int(g) && !done[size_t(from)]) ready = false;
        }
      }
      if (!ready) continue;
      done[g] = moved = true;
      ordered.groups.push_back(out.groups[g]);
    }
    if (!moved) {
      const size_t first = size_t(std::find(done.begin(), done.end(), false) - done.begin());
      return base::invalid("the kernel of " + out.groups[first].name + " and another each read what the other writes", kernels[first],
                           "put their nodes into one kernel, or split one of them");
    }
  }
  return ordered;
}

}  // namespace

base::Result<Schedule> parse(const std::string& text, const Graph& graph, const tile::Target& target, const std::string& file) {
  auto out = parse_words(words(text), graph, target);
  if (out) return out;
  base::Diagnostic d = out.error();
  d.span.file = file;
  std::istringstream lines(text);
  for (int line = 0; line < d.span.line && std::getline(lines, d.excerpt); ++line) {}
  return d;
}

}  // namespace lemma::schedule
