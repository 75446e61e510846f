#include "lemma/layout/cells.h"

namespace lemma::layout {

base::Result<std::vector<Cell>> cells(const Layout& layout, const DrawOptions& options) {
  LEMMA_TRY_VOID(validate(layout));
  if (size(layout.shape) > options.most || count(layout) > 16 * options.most) {
    return base::unsupported("a drawing of " + std::to_string(size(layout.shape)) + " elements and " +
                                 std::to_string(count(layout)) + " indices, expected at most " +
                                 std::to_string(options.most) + " elements",
                             {}, "draw a part of the tile");
  }
  std::vector<Cell> out(size_t(size(layout.shape)));
  for (int64_t i = 0; i < count(layout); ++i) {
    const Index index = unflatten(layout, i);
    Cell& cell = out[size_t(flatten(layout.shape, at(layout, index)))];
    if (cell.holders++ == 0) cell.first = index;
  }
  return out;
}

Tables tables(const Point& shape) {
  Tables out;
  out.columns = shape.back();
  if (shape.size() > 1) out.rows = shape[shape.size() - 2];
  out.count = size(shape) / out.rows / out.columns;
  return out;
}

std::string table_title(const Point& shape, int64_t table) {
  if (shape.size() <= 2) return "";
  const Point leading(shape.begin(), shape.end() - 2);
  std::string out = "[";
  for (int32_t v : point_of(leading, table)) out += std::to_string(v) + ", ";
  return out + "*, *]";
}

}  // namespace lemma::layout
