#include "lemma/layout/banks.h"
#include "lemma/layout/cells.h"
#include "lemma/layout/digits.h"
#include "lemma/layout/text.h"

namespace lemma::layout {
namespace {

constexpr int cell_width = 34, cell_height = 22, margin = 30, title_height = 24;

// Neighbouring numbers get hues far apart: steps of the golden angle.
std::string colour(int64_t number, int64_t warp) {
  const int64_t hue = number * 137 % 360;
  const int64_t light = 84 - warp % 4 * 8;
  return "hsl(" + std::to_string(hue) + ",65%," + std::to_string(light) + "%)";
}

std::string element(int64_t x, int64_t y, const std::string& text, const char* style) {
  return "<text x=\"" + std::to_string(x) + "\" y=\"" + std::to_string(y) + "\"" + style + ">" + text + "</text>\n";
}

std::string draw_cell(const Cell& cell, const Layout& layout, const DrawOptions& options, int64_t x, int64_t y) {
  std::string fill = "white", label = "-", tip = "held by nobody";
  if (cell.holders > 0 && !layout[Axis::Offset].empty()) {
    const int64_t offset = cell.first[size_t(Axis::Offset)];
    const int64_t bank = offset * options.element_bits / bank_bits % banks;
    fill = colour(bank, 0);
    label = std::to_string(offset);
    tip = "offset " + label + ", bank " + std::to_string(bank);
  } else if (cell.holders > 0) {
    const int64_t lane = cell.first[size_t(Axis::Lane)], warp = cell.first[size_t(Axis::Warp)];
    fill = colour(lane, warp);
    label = std::to_string(lane) + ":" + std::to_string(cell.first[size_t(Axis::Register)]);
    tip = "warp " + std::to_string(warp) + ", lane " + std::to_string(lane) + ", register " +
          std::to_string(cell.first[size_t(Axis::Register)]);
  }
  if (cell.holders > 1) {
    label += "+";
    tip += ", held " + std::to_string(cell.holders) + " times";
  }
  return "<g><title>" + tip + "</title><rect x=\"" + std::to_string(x) + "\" y=\"" + std::to_string(y) + "\" width=\"" +
         std::to_string(cell_width) + "\" height=\"" + std::to_string(cell_height) + "\" fill=\"" + fill + "\"/>" +
         element(x + cell_width / 2, y + cell_height / 2 + 3, label, "") + "</g>\n";
}

}  // namespace

base::Result<std::string> draw_svg(const Layout& layout, const DrawOptions& options) {
  LEMMA_TRY_VOID(check_element_bits(options.element_bits));
  LEMMA_TRY(const std::vector<Cell> all, cells(layout, options));
  const Tables tile = tables(layout.shape);
  const int64_t table_height = title_height + margin + tile.rows * cell_height;
  const int64_t width = 2 * margin + tile.columns * cell_width;
  const int64_t height = title_height + tile.count * table_height + margin;
  std::string out = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + std::to_string(width) + "\" height=\"" +
                    std::to_string(height) + "\" font-family=\"monospace\" font-size=\"10\" text-anchor=\"middle\">\n";
  out += "<style>rect{stroke:#888;stroke-width:.5}</style>\n";
  out += element(margin, title_height - 8, print(layout), " text-anchor=\"start\" font-size=\"11\"");
  for (int64_t t = 0; t < tile.count; ++t) {
    const int64_t top = title_height + t * table_height;
    const std::string title = table_title(layout.shape, t);
    if (!title.empty()) out += element(margin, top + title_height - 8, title, " text-anchor=\"start\"");
    const int64_t first_row = top + title_height + margin / 2;
    for (int64_t c = 0; c < tile.columns; ++c) {
      out += element(margin + c * cell_width + cell_width / 2, first_row - 4, std::to_string(c), "");
    }
    for (int64_t r = 0; r < tile.rows; ++r) {
      const int64_t y = first_row + r * cell_height;
      out += element(margin / 2, y + cell_height / 2 + 3, std::to_string(r), "");
      for (int64_t c = 0; c < tile.columns; ++c) {
        out +=
            draw_cell(all[size_t((t * tile.rows + r) * tile.columns + c)], layout, options, margin + c * cell_width, y);
      }
    }
  }
  return out + "</svg>\n";
}

}  // namespace lemma::layout
