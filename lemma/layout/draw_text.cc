#include <algorithm>

#include "lemma/layout/cells.h"

namespace lemma::layout {
namespace {

std::string text(const Cell& cell, const Layout& layout) {
  if (cell.holders == 0) return "-";
  std::string out;
  if (!layout[Axis::Offset].empty()) {
    out = std::to_string(cell.first[size_t(Axis::Offset)]);
  } else {
    if (!layout[Axis::Warp].empty()) out += "W" + std::to_string(cell.first[size_t(Axis::Warp)]) + " ";
    out +=
        "T" + std::to_string(cell.first[size_t(Axis::Lane)]) + ":" + std::to_string(cell.first[size_t(Axis::Register)]);
  }
  return cell.holders > 1 ? out + "+" : out;
}

std::string right(const std::string& s, size_t width) {
  return std::string(width - std::min(width, s.size()), ' ') + s;
}

}  // namespace

base::Result<std::string> draw_text(const Layout& layout, const DrawOptions& options) {
  LEMMA_TRY(const std::vector<Cell> all, cells(layout, options));
  const Tables tile = tables(layout.shape);
  std::vector<std::string> texts;
  size_t width = std::to_string(tile.columns - 1).size();
  for (const Cell& cell : all) {
    texts.push_back(text(cell, layout));
    width = std::max(width, texts.back().size());
  }
  const size_t margin = std::to_string(tile.rows - 1).size();
  std::string out;
  for (int64_t t = 0; t < tile.count; ++t) {
    const std::string title = table_title(layout.shape, t);
    if (!title.empty()) out += title + "\n";
    out += std::string(margin, ' ');
    for (int64_t c = 0; c < tile.columns; ++c) out += "  " + right(std::to_string(c), width);
    out += "\n";
    for (int64_t r = 0; r < tile.rows; ++r) {
      out += right(std::to_string(r), margin);
      for (int64_t c = 0; c < tile.columns; ++c) {
        out += "  " + right(texts[size_t((t * tile.rows + r) * tile.columns + c)], width);
      }
      out += "\n";
    }
  }
  return out;
}

}  // namespace lemma::layout
