// Indented text, one line at a time.
#pragma once

#include <string>
#include <string_view>

namespace lemma::emit {

class Writer {
 public:
  void line(std::string_view text) {
    if (!text.empty() && text[0] != '#') out_.append(size_t(depth_) * 2, ' ');
    out_.append(text);
    out_ += '\n';
  }
  void open(std::string_view head) {
    line(head.empty() ? std::string("{") : std::string(head) + " {");
    ++depth_;
  }
  void close(std::string_view tail = "") {
    --depth_;
    line("}" + std::string(tail));
  }
  void close(int count) {
    for (int i = 0; i < count; ++i) close();
  }
  void otherwise(std::string_view head = "else") {
    --depth_;
    open("} " + std::string(head));
  }
  void raw(std::string_view text) { out_.append(text); }
  int depth() const { return depth_; }
  void set_depth(int depth) { depth_ = depth; }
  const std::string& text() const { return out_; }

 private:
  std::string out_;
  int depth_ = 0;
};

}  // namespace lemma::emit
