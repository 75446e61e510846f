// The libraries a C++ user would call instead, behind the protocol of server.h: OpenBLAS and oneDNN, each given the
// layout and the settings it likes best, with packing and primitive creation outside the timing. Works and variants:
//
//     matmul       c[m,n] = a[m,k] b[k,n]                          openblas, onednn, onednn_packed   (f32, bf16: onednn)
//     epilogue     gelu(a b + bias[n]) + residual[m,n]             openblas, onednn
//     attention    softmax(q kᵀ/√d) v over h heads, causal or not  openblas, onednn    (by blocks of query rows)
//     softmax, layer_norm, rms_norm   over rows × width            onednn / openblas
//     copy         the bytes of rows × width, once                 memcpy
//     cumsum       down the rows of rows × width                   loop
//     conv         3×3, pad 1, stride 1, n × hw × hw × c -> c      onednn_nhwc, onednn_blocked
//     neighbours   the 5 nearest of r references, for q queries    openblas
#include <cblas.h>
#include <omp.h>

#include <algorithm>
#include <oneapi/dnnl/dnnl.hpp>

#include "bench/server.h"

namespace {

using namespace lemma::bench;
using dnnl::memory;
using Arguments = std::unordered_map<int, memory>;

struct OneDnn {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};

  memory wrap(const memory::desc& desc, void* data) const { return memory(desc, engine, data); }
  // The same values in the layout `desc`.
  memory reordered(memory source, const memory::desc& desc) const {
    if (source.get_desc() == desc) return source;
    memory target(desc, engine);
    dnnl::stream own(engine);
    dnnl::reorder(source, target).execute(own, source, target);
    own.wait();
    return target;
  }
};

memory::data_type type_of(bool bf16) { return bf16 ? memory::data_type::bf16 : memory::data_type::f32; }

void set_threads(const Request& request) {
  omp_set_num_threads(request.threads());
  openblas_set_num_threads(request.threads());
}

Job cannot(std::string why) {
  Job job;
  job.error = std::move(why);
  return job;
}

// ---- matrix products

Job matmul_openblas(const Request& request) {
  if (request.bf16()) return cannot("OpenBLAS of this version has no bf16 product for this machine");
  const int m = int(request.size("m")), n = int(request.size("n")), k = int(request.size("k"));
  const Buffer a = random_values(1, int64_t(m) * k, false), b = random_values(2, int64_t(k) * n, false);
  const Buffer c(size_t(m) * n * 4);
  return {[=] {
            if (m == 1) {
              cblas_sgemv(CblasRowMajor, CblasTrans, k, n, 1, b.f32(), n, a.f32(), 1, 0, c.f32(), 1);
            } else {
              cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1, a.f32(), k, b.f32(), n, 0, c.f32(), n);
            }
          },
          [=] { return as_f32(c, int64_t(m) * n, false); }, ""};
}

Job matmul_onednn(const Request& request, bool packed, bool epilogue) {
  const bool bf16 = request.bf16();
  const int64_t m = request.size("m"), n = request.size("n"), k = request.size("k");
  const Buffer a = random_values(1, m * k, bf16), b = random_values(2, k * n, bf16);
  const Buffer bias = random_values(3, n, false), residual = random_values(4, m * n, bf16);
  const Buffer c(size_t(m * n) * (bf16 ? 2 : 4));
  const OneDnn one;
  const auto type = type_of(bf16);
  const memory::desc plain_a({m, k}, type, memory::format_tag::ab), plain_b({k, n}, type, memory::format_tag::ab);
  const memory::desc plain_c({m, n}, type, memory::format_tag::ab);
  const memory::desc bias_desc({1, n}, memory::data_type::f32, memory::format_tag::ab);
  const memory::desc weights = packed ? memory::desc({k, n}, type, memory::format_tag::any) : plain_b;
  dnnl::primitive_attr attributes;
  Arguments arguments{{DNNL_ARG_SRC, one.wrap(plain_a, a.f32())}, {DNNL_ARG_DST, one.wrap(plain_c, c.f32())}};
  if (epilogue) {
    dnnl::post_ops after;
    after.append_eltwise(1.0f, dnnl::algorithm::eltwise_gelu_erf, 0, 0);
    after.append_binary(dnnl::algorithm::binary_add, plain_c);
    attributes.set_post_ops(after);
    arguments[DNNL_ARG_BIAS] = one.wrap(bias_desc, bias.f32());
    arguments[DNNL_ARG_ATTR_MULTIPLE_POST_OP(1) | DNNL_ARG_SRC_1] = one.wrap(plain_c, residual.f32());
  }
  const auto desc = epilogue ? dnnl::matmul::desc(plain_a, weights, bias_desc, plain_c)
                             : dnnl::matmul::desc(plain_a, weights, plain_c);
  const dnnl::matmul::primitive_desc chosen(desc, attributes, one.engine);
  arguments[DNNL_ARG_WEIGHTS] = one.reordered(one.wrap(plain_b, b.f32()), chosen.weights_desc());
  const dnnl::matmul product(chosen);
  return {[=] {
            auto stream = one.stream;
            product.execute(stream, arguments);
            stream.wait();
            (void)a, (void)b, (void)bias, (void)residual;
          },
          [=] { return as_f32(c, m * n, bf16); }, ""};
}

Job epilogue_openblas(const Request& request) {
  if (request.bf16()) return cannot("OpenBLAS of this version has no bf16 product for this machine");
  const int m = int(request.size("m")), n = int(request.size("n")), k = int(request.size("k"));
  const Buffer a = random_values(1, int64_t(m) * k, false), b = random_values(2, int64_t(k) * n, false);
  const Buffer bias = random_values(3, n, false), residual = random_values(4, int64_t(m) * n, false);
  const Buffer c(size_t(m) * n * 4);
  return {[=] {
            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1, a.f32(), k, b.f32(), n, 0, c.f32(), n);
            float* const out = c.f32();
#pragma omp parallel for
            for (int i = 0; i < m; ++i) {
              for (int j = 0; j < n; ++j) {
                const float z = out[int64_t(i) * n + j] + bias.f32()[j];
                out[int64_t(i) * n + j] = 0.5f * z * (1 + erff(z * 0.70710678f)) + residual.f32()[int64_t(i) * n + j];
              }
            }
          },
          [=] { return as_f32(c, int64_t(m) * n, false); }, ""};
}

// ---- attention, by blocks of query rows: scores, softmax and the second product of one block stay near the cache, and
// a causal block stops at its last key

struct AttentionSizes {
  int64_t heads, groups, n, d, block;
  bool causal, bf16;
  float scale;
};

AttentionSizes attention_sizes(const Request& request) {
  AttentionSizes sizes{};
  sizes.heads = request.size("h", 1);
  sizes.groups = request.size("g", sizes.heads);
  sizes.n = request.size("n");
  sizes.d = request.size("d");
  sizes.block = std::min(request.size("block", 128), sizes.n);
  sizes.causal = request.size("causal", 0) != 0;
  sizes.bf16 = request.bf16();
  sizes.scale = 1 / std::sqrt(float(sizes.d));
  return sizes;
}

struct AttentionData {
  Buffer q, k, v, out;
  explicit AttentionData(const AttentionSizes& s)
      : q(random_values(1, s.heads * s.n * s.d, s.bf16, 2)),
        k(random_values(2, s.groups * s.n * s.d, s.bf16, 2)),
        v(random_values(3, s.groups * s.n * s.d, s.bf16)),
        out(size_t(s.heads * s.n * s.d) * (s.bf16 ? 2 : 4)) {}
};

// The rows of a block: masked, then softmax, by plain loops the compiler vectorises but for libm's exp.
void softmax_rows(float* scores, int64_t rows, int64_t keys, int64_t first_row, bool causal) {
#pragma omp parallel for
  for (int64_t i = 0; i < rows; ++i) {
    float* const s = scores + i * keys;
    const int64_t live = causal ? std::min(keys, first_row + i + 1) : keys;
    float most = -INFINITY, sum = 0;
    for (int64_t j = 0; j < live; ++j) most = std::max(most, s[j]);
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < live; ++j) sum += s[j] = expf(s[j] - most);
    const float scale = 1 / sum;
    for (int64_t j = 0; j < live; ++j) s[j] *= scale;
    for (int64_t j = live; j < keys; ++j) s[j] = 0;
  }
}

Job attention_openblas(const Request& request) {
  const AttentionSizes s = attention_sizes(request);
  if (s.bf16) return cannot("OpenBLAS of this version has no bf16 product for this machine");
  const AttentionData data(s);
  const Buffer scores(size_t(s.block * s.n) * 4);
  return {[=] {
            for (int64_t head = 0; head < s.heads; ++head) {
              const int64_t group = head * s.groups / s.heads;
              const float* k = data.k.f32() + group * s.n * s.d;
              const float* v = data.v.f32() + group * s.n * s.d;
              for (int64_t row = 0; row < s.n; row += s.block) {
                const int64_t rows = std::min(s.block, s.n - row), keys = s.causal ? row + rows : s.n;
                const float* q = data.q.f32() + (head * s.n + row) * s.d;
                float* out = data.out.f32() + (head * s.n + row) * s.d;
                cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, int(rows), int(keys), int(s.d), s.scale, q, int(s.d),
                            k, int(s.d), 0, scores.f32(), int(keys));
                softmax_rows(scores.f32(), rows, keys, row, s.causal);
                cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, int(rows), int(s.d), int(keys), 1, scores.f32(),
                            int(keys), v, int(s.d), 0, out, int(s.d));
              }
            }
          },
          [=] { return as_f32(data.out, s.heads * s.n * s.d, false); }, ""};
}

// One block's three primitives.
struct AttentionStep {
  dnnl::matmul scores, mix;
  dnnl::softmax_v2_forward softmax;
  memory q, k, s, p, v, out;
  int64_t row = 0, rows = 0, keys = 0;
};

AttentionStep attention_step(const OneDnn& one, const AttentionSizes& s, const AttentionData& data, int64_t row,
                             const Buffer& scores, const Buffer& weights) {
  AttentionStep step;
  step.row = row;
  step.rows = std::min(s.block, s.n - row);
  step.keys = s.causal ? row + step.rows : s.n;
  const auto type = type_of(s.bf16);
  using Tag = memory::format_tag;
  const memory::desc q({step.rows, s.d}, type, Tag::ab), k({s.d, step.keys}, type, Tag::ba);
  const memory::desc v({step.keys, s.d}, type, Tag::ab), out({step.rows, s.d}, type, Tag::ab);
  const memory::desc score({step.rows, step.keys}, memory::data_type::f32, Tag::ab);
  const memory::desc weight({step.rows, step.keys}, type, Tag::ab);
  dnnl::primitive_attr attributes;
  attributes.set_output_scales(0, {s.scale});
  step.scores = dnnl::matmul({{q, k, score}, attributes, one.engine});
  step.softmax = dnnl::softmax_v2_forward({{dnnl::prop_kind::forward_inference, dnnl::algorithm::softmax_accurate, score,
                                            weight, 1}, one.engine});
  step.mix = dnnl::matmul({{weight, v, out}, one.engine});
  step.q = one.wrap(q, data.q.f32());
  step.k = one.wrap(k, data.k.f32());
  step.s = one.wrap(score, scores.f32());
  step.p = one.wrap(weight, s.bf16 ? weights.f32() : scores.f32());
  step.v = one.wrap(v, data.v.f32());
  step.out = one.wrap(out, data.out.f32());
  return step;
}

// Only the last `rows` keys of a causal block can lie after their row. (A mask added by oneDNN itself, as a post-op,
// takes its slow reference path.)
void mask_diagonal(float* scores, const AttentionStep& step) {
  for (int64_t i = 0; i < step.rows; ++i) {
    for (int64_t j = step.row + i + 1; j < step.keys; ++j) scores[i * step.keys + j] = -INFINITY;
  }
}

Job attention_onednn(const Request& request) {
  const AttentionSizes s = attention_sizes(request);
  const AttentionData data(s);
  const OneDnn one;
  const Buffer scores(size_t(s.block * s.n) * 4), weights(size_t(s.block * s.n) * 2);
  std::vector<AttentionStep> steps;
  for (int64_t row = 0; row < s.n; row += s.block) {
    steps.push_back(attention_step(one, s, data, row, scores, weights));
  }
  const int64_t bytes = s.bf16 ? 2 : 4;
  return {[=]() mutable {
            auto stream = one.stream;
            const auto at = [&](const Buffer& buffer, int64_t offset) {
              return static_cast<char*>(buffer.memory.get()) + offset * s.d * bytes;
            };
            for (int64_t head = 0; head < s.heads; ++head) {
              const int64_t group = head * s.groups / s.heads;
              for (AttentionStep& step : steps) {
                step.q.set_data_handle(at(data.q, head * s.n + step.row));
                step.out.set_data_handle(at(data.out, head * s.n + step.row));
                step.k.set_data_handle(at(data.k, group * s.n));
                step.v.set_data_handle(at(data.v, group * s.n));
                step.scores.execute(stream,
                                    {{DNNL_ARG_SRC, step.q}, {DNNL_ARG_WEIGHTS, step.k}, {DNNL_ARG_DST, step.s}});
                if (s.causal) {
                  stream.wait();
                  mask_diagonal(scores.f32(), step);
                }
                step.softmax.execute(stream, {{DNNL_ARG_SRC, step.s}, {DNNL_ARG_DST, step.p}});
                step.mix.execute(stream,
                                 {{DNNL_ARG_SRC, step.p}, {DNNL_ARG_WEIGHTS, step.v}, {DNNL_ARG_DST, step.out}});
              }
            }
            stream.wait();
            (void)scores, (void)weights;
          },
          [=] { return as_f32(data.out, s.heads * s.n * s.d, s.bf16); }, ""};
}

// ---- row reductions

Job softmax_onednn(const Request& request) {
  const int64_t rows = request.size("rows"), width = request.size("width");
  const Buffer x = random_values(1, rows * width, false, 4), y(size_t(rows * width) * 4);
  const OneDnn one;
  const memory::desc desc({rows, width}, memory::data_type::f32, memory::format_tag::ab);
  const dnnl::softmax_v2_forward softmax({{dnnl::prop_kind::forward_inference, dnnl::algorithm::softmax_accurate, desc,
                                           desc, 1}, one.engine});
  const Arguments arguments{{DNNL_ARG_SRC, one.wrap(desc, x.f32())}, {DNNL_ARG_DST, one.wrap(desc, y.f32())}};
  return {[=] {
            auto stream = one.stream;
            softmax.execute(stream, arguments);
            stream.wait();
            (void)x;
          },
          [=] { return as_f32(y, rows * width, false); }, ""};
}

Job layer_norm_onednn(const Request& request) {
  const int64_t rows = request.size("rows"), width = request.size("width");
  const Buffer x = random_values(1, rows * width, false), y(size_t(rows * width) * 4);
  const Buffer weight = random_values(2, width, false), bias = random_values(3, width, false);
  const OneDnn one;
  const memory::desc desc({rows, width}, memory::data_type::f32, memory::format_tag::ab);
  const memory::desc row({width}, memory::data_type::f32, memory::format_tag::a);
  const auto flags = dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift;
  const dnnl::layer_normalization_forward norm(
      {{dnnl::prop_kind::forward_inference, desc, 1e-5f, flags}, one.engine});
  const Arguments arguments{{DNNL_ARG_SRC, one.wrap(desc, x.f32())},
                            {DNNL_ARG_DST, one.wrap(desc, y.f32())},
                            {DNNL_ARG_SCALE, one.wrap(row, weight.f32())},
                            {DNNL_ARG_SHIFT, one.wrap(row, bias.f32())}};
  return {[=] {
            auto stream = one.stream;
            norm.execute(stream, arguments);
            stream.wait();
            (void)x, (void)weight, (void)bias;
          },
          [=] { return as_f32(y, rows * width, false); }, ""};
}

// Neither library has this one: a dot product of the BLAS and a loop the compiler vectorises, row by row in cache.
Job rms_norm_openblas(const Request& request) {
  const int64_t rows = request.size("rows"), width = request.size("width");
  const Buffer x = random_values(1, rows * width, false), y(size_t(rows * width) * 4);
  const Buffer weight = random_values(2, width, false);
  return {[=] {
            openblas_set_num_threads(1);  // the rows are shared out instead
#pragma omp parallel for
            for (int64_t i = 0; i < rows; ++i) {
              const float* const from = x.f32() + i * width;
              float* const to = y.f32() + i * width;
              const float* const w = weight.f32();
              const float scale = 1 / std::sqrt(cblas_sdot(int(width), from, 1, from, 1) / float(width) + 1e-5f);
              for (int64_t j = 0; j < width; ++j) to[j] = from[j] * scale * w[j];
            }
          },
          [=] { return as_f32(y, rows * width, false); }, ""};
}

Job copy_memcpy(const Request& request) {
  const int64_t count = request.size("rows") * request.size("width");
  const Buffer x = random_values(1, count, false), y(size_t(count) * 4);
  const int parts = request.threads();
  return {[=] {
            if (parts == 1) {
              std::memcpy(y.f32(), x.f32(), size_t(count) * 4);
              return;
            }
#pragma omp parallel for
            for (int part = 0; part < parts; ++part) {
              const int64_t begin = count * part / parts, end = count * (part + 1) / parts;
              std::memcpy(y.f32() + begin, x.f32() + begin, size_t(end - begin) * 4);
            }
          },
          [=] { return as_f32(y, count, false); }, ""};
}

// Running sums down the rows, as one writes them; one thread, since rows depend on one another.
Job cumsum_loop(const Request& request) {
  const int64_t rows = request.size("rows"), width = request.size("width");
  const Buffer x = random_values(1, rows * width, false), y(size_t(rows * width) * 4);
  return {[=] {
            const float* from = x.f32();
            float* to = y.f32();
            for (int64_t j = 0; j < width; ++j) to[j] = from[j];
            for (int64_t i = 1; i < rows; ++i) {
              for (int64_t j = 0; j < width; ++j) to[i * width + j] = to[(i - 1) * width + j] + from[i * width + j];
            }
          },
          [=] { return as_f32(y, rows * width, false); }, ""};
}

// ---- convolution

Job conv_onednn(const Request& request, bool blocked) {
  const bool bf16 = request.bf16();
  const int64_t batch = request.size("batch", 1), c = request.size("c"), hw = request.size("hw");
  const int64_t o = request.size("o", c), pixels = batch * hw * hw;
  using Tag = memory::format_tag;
  const auto type = type_of(bf16);
  const Buffer x = random_values(1, pixels * c, bf16), w = random_values(2, 9 * c * o, bf16);
  const Buffer y(size_t(pixels * o) * (bf16 ? 2 : 4));
  const OneDnn one;
  // In memory x[b,i,j,c] and w[r,s,c,o]; oneDNN names dimensions b c i j and o c r s.
  const memory::desc plain_x({batch, c, hw, hw}, type, Tag::nhwc), plain_y({batch, o, hw, hw}, type, Tag::nhwc);
  const memory::desc plain_w({o, c, 3, 3}, type, Tag::hwio);
  const memory::desc any_w({o, c, 3, 3}, type, Tag::any);
  const memory::desc in = blocked ? memory::desc({batch, c, hw, hw}, type, Tag::any) : plain_x;
  const memory::desc out = blocked ? memory::desc({batch, o, hw, hw}, type, Tag::any) : plain_y;
  const dnnl::convolution_forward::primitive_desc chosen(
      {dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct, in, any_w, out, {1, 1}, {1, 1}, {1, 1}},
      one.engine);
  const memory result(chosen.dst_desc(), one.engine);
  const Arguments arguments{{DNNL_ARG_SRC, one.reordered(one.wrap(plain_x, x.f32()), chosen.src_desc())},
                            {DNNL_ARG_WEIGHTS, one.reordered(one.wrap(plain_w, w.f32()), chosen.weights_desc())},
                            {DNNL_ARG_DST, result}};
  const dnnl::convolution_forward convolution(chosen);
  return {[=] {
            auto stream = one.stream;
            convolution.execute(stream, arguments);
            stream.wait();
            (void)x, (void)w;
          },
          [=] {
            const memory plain = one.reordered(result, plain_y);
            std::memcpy(y.memory.get(), plain.get_data_handle(), y.bytes);
            return as_f32(y, pixels * o, bf16);
          },
          ""};
}

// ---- nearest neighbours: |t|² - 2 q·t by blocks of queries, then a selection of 5

constexpr int kNearest = 5;

void select_nearest(const float* products, const float* norms, int64_t references, float* nearest) {
  float best[kNearest];
  std::fill(best, best + kNearest, INFINITY);
  for (int64_t t = 0; t < references; ++t) {
    const float distance = norms[t] - 2 * products[t];
    if (distance >= best[kNearest - 1]) continue;
    int slot = kNearest - 1;
    while (slot > 0 && best[slot - 1] > distance) {
      best[slot] = best[slot - 1];
      --slot;
    }
    best[slot] = distance;
  }
  std::copy(best, best + kNearest, nearest);
}

Job neighbours_openblas(const Request& request) {
  const int64_t references = request.size("r"), queries = request.size("q"), width = request.size("width", 784);
  const int64_t block = std::min<int64_t>(queries, request.size("block", 1000));
  const auto bytes = [](uint64_t seed, int64_t count) {
    Buffer buffer(size_t(count) * 4);
    for (int64_t i = 0; i < count; ++i) buffer.f32()[i] = float((hash(seed, uint64_t(i)) >> 33) % 256);
    return buffer;
  };
  const Buffer t = bytes(1, references * width), q = bytes(2, queries * width);
  const Buffer norms(size_t(references) * 4), products(size_t(block * references) * 4);
  const Buffer nearest(size_t(queries) * kNearest * 4);
  return {[=] {
#pragma omp parallel for
            for (int64_t r = 0; r < references; ++r) {
              float sum = 0;
#pragma omp simd reduction(+ : sum)
              for (int64_t c = 0; c < width; ++c) sum += t.f32()[r * width + c] * t.f32()[r * width + c];
              norms.f32()[r] = sum;
            }
            for (int64_t first = 0; first < queries; first += block) {
              const int64_t count = std::min(block, queries - first);
              cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, int(count), int(references), int(width), 1,
                          q.f32() + first * width, int(width), t.f32(), int(width), 0, products.f32(), int(references));
#pragma omp parallel for
              for (int64_t i = 0; i < count; ++i) {
                select_nearest(products.f32() + i * references, norms.f32(), references,
                               nearest.f32() + (first + i) * kNearest);
              }
            }
          },
          [=] { return as_f32(nearest, queries * kNearest, false); }, ""};
}

Job make(const Request& request) {
  set_threads(request);
  const std::string name = request.work + " " + request.text("variant", "");
  if (name == "matmul openblas") return matmul_openblas(request);
  if (name == "matmul onednn") return matmul_onednn(request, false, false);
  if (name == "matmul onednn_packed") return matmul_onednn(request, true, false);
  if (name == "epilogue openblas") return epilogue_openblas(request);
  if (name == "epilogue onednn") return matmul_onednn(request, false, true);
  if (name == "attention openblas") return attention_openblas(request);
  if (name == "attention onednn") return attention_onednn(request);
  if (name == "softmax onednn") return softmax_onednn(request);
  if (name == "layer_norm onednn") return layer_norm_onednn(request);
  if (name == "rms_norm openblas") return rms_norm_openblas(request);
  if (name == "copy memcpy") return copy_memcpy(request);
  if (name == "cumsum loop") return cumsum_loop(request);
  if (name == "conv onednn_nhwc") return conv_onednn(request, false);
  if (name == "conv onednn_blocked") return conv_onednn(request, true);
  if (name == "neighbours openblas") return neighbours_openblas(request);
  return cannot("");
}

}  // namespace

int main() {
  return serve([](const Request& request) {
    try {
      return make(request);
    } catch (const dnnl::error& failure) {
      return cannot(std::string("oneDNN: ") + failure.what());
    }
  });
}
