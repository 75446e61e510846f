// Kernels in the neutral form, for tests: run by the emulator, and accepted by the device's compiler.
#pragma once

namespace lemma::emulator {

inline constexpr const char* kAdd = R"(
LM_KERNEL(add, 128) (LM_GLOBAL(const float) b_x, LM_GLOBAL(const float) b_y, LM_GLOBAL(float) b_z, long long s_N) {
  LM_AT(1); const long long i = LM_BLOCK_X * 128ll + LM_TID;
  LM_AT(2); if (i < s_N) b_z[i] = b_x[i] + b_y[i];
}
)";

inline constexpr const char* kTranspose = R"(
LM_KERNEL(transpose, 256) (LM_GLOBAL(const float) b_x, LM_GLOBAL(float) b_y, int s_M, int s_N) {
  LM_SHARED(float, tile, 16 * 17);
  LM_AT(1); const int c = LM_TID % 16, r = LM_TID / 16, row = LM_BLOCK_Y * 16 + r, column = LM_BLOCK_X * 16 + c;
  LM_AT(2); if (row < s_M && column < s_N) tile[r * 17 + c] = b_x[(long long)row * s_N + column];
  LM_AT(3); lm_barrier();
  LM_AT(4); const int to_row = LM_BLOCK_X * 16 + r, to_column = LM_BLOCK_Y * 16 + c;
  LM_AT(5); if (to_row < s_N && to_column < s_M) b_y[(long long)to_row * s_M + to_column] = tile[c * 17 + r];
}
)";

inline constexpr const char* kSum = R"(
LM_KERNEL(sum, 256) (LM_GLOBAL(const float) b_x, LM_GLOBAL(float) b_y, int s_N) {
  LM_SHARED(float, parts, 8);
  LM_AT(1); float total = 0;
  for (int i = LM_TID; i < s_N; i += 256) { LM_AT(2); total += b_x[LM_BLOCK_X * (long long)s_N + i]; }
  LM_AT(3); for (int step = 16; step > 0; step /= 2) total += lm_shuffle_xor(total, step);
  LM_AT(4); if (LM_LANE == 0) parts[LM_WARP] = total;
  LM_AT(5); lm_barrier();
  LM_AT(6); if (LM_WARP == 0) {
    total = LM_LANE < 8 ? (float)parts[LM_LANE] : 0.0f;
    LM_AT(7); for (int step = 4; step > 0; step /= 2) total += lm_shuffle_down(total, step);
    LM_AT(8); if (LM_LANE == 0) b_y[LM_BLOCK_X] = total;
  }
}
)";

inline constexpr const char* kHistogram = R"(
LM_KERNEL(histogram, 64) (LM_GLOBAL(const int) b_x, LM_GLOBAL(int) b_y, int s_N) {
  LM_AT(1); const int i = LM_BLOCK_X * 64 + LM_TID;
  LM_AT(2); if (i < s_N) lm_atomic_add(b_y, b_x[i], 1);
}
)";

// c = a * b, 32 x 32 a block of 4 warps (16 x 16 each), 32 of K a step. Rows of a tile are 64 bytes in 4 chunks of 16,
// which are exchanged by bits 1 and 2 of the row: the 8 rows of a matrix then lie in different banks.
inline constexpr const char* kMatmul = R"(
LM_DEVICE int swizzled(int row, int column) { return row * 32 + (((column >> 3) ^ ((row >> 1) & 3)) << 3) + (column & 7); }

LM_KERNEL(matmul, 128) (LM_GLOBAL(const lm_bf16) b_a, LM_GLOBAL(const lm_bf16) b_b, LM_GLOBAL(float) b_c, int s_M, int s_N,
                        int s_K) {
  LM_SHARED(lm_bf16, as, 32 * 32);
  LM_SHARED(lm_bf16, bs, 32 * 32);
  float c[2][4] = {};
  const int row0 = LM_BLOCK_Y * 32, column0 = LM_BLOCK_X * 32;
  const int r = LM_TID / 4, k = LM_TID % 4 * 8;
  const int wr = LM_WARP / 2 * 16, wc = LM_WARP % 2 * 16;
  for (int k0 = 0; k0 < s_K; k0 += 32) {
    LM_AT(1); lm_store<8>(as, swizzled(r, k), lm_load<8>(b_a, (long long)(row0 + r) * s_K + k0 + k));
    LM_AT(2); lm_store<8>(bs, swizzled(r, k), lm_load<8>(b_b, (long long)(k0 + r) * s_N + column0 + k));
    LM_AT(3); lm_barrier();
    for (int kk = 0; kk < 32; kk += 16) {
      unsigned fa[4], fb[4];
      LM_AT(4); lm_ldmatrix_x4(fa, as, swizzled(wr + LM_LANE % 16, kk + LM_LANE / 16 * 8));
      LM_AT(5); lm_ldmatrix_x4_trans(fb, bs, swizzled(kk + LM_LANE % 16, wc + LM_LANE / 16 * 8));
      LM_AT(6); lm_mma_m16n8k16_bf16(c[0], fa, fb);
      LM_AT(7); lm_mma_m16n8k16_bf16(c[1], fa, fb + 2);
    }
    LM_AT(8); lm_barrier();
  }
  for (int j = 0; j < 2; ++j) {
    for (int i = 0; i < 4; ++i) {
      const int row = row0 + wr + LM_LANE / 4 + i / 2 * 8, column = column0 + wc + j * 8 + LM_LANE % 4 * 2 + i % 2;
      LM_AT(9); b_c[(long long)row * s_N + column] = c[j][i];
    }
  }
}
)";

// y[b] = sum over tiles of (x[b][tile][i] * x[b][tile][63 - i]): each thread reads another's element. Two stages.
inline constexpr const char* kDouble = R"(
LM_KERNEL(doubled, 64) (LM_GLOBAL(const float) b_x, LM_GLOBAL(float) b_y, int s_T) {
  LM_SHARED(float, stage, 2 * 64);
  float total = 0;
  const long long base = LM_BLOCK_X * (long long)s_T * 64;
  LM_AT(1); if (LM_TID < 16) lm_copy_async<16>(stage, LM_TID * 4, b_x, base + LM_TID * 4);
  LM_AT(2); lm_copy_commit();
  for (int t = 0; t < s_T; ++t) {
    LM_AT(3); if (LM_TID < 16 && t + 1 < s_T)
      lm_copy_async<16>(stage, (t + 1) % 2 * 64 + LM_TID * 4, b_x, base + (t + 1) * 64 + LM_TID * 4);
    LM_AT(4); lm_copy_commit();
    LM_AT(5); lm_copy_wait<1>();
    LM_AT(6); lm_barrier();
    LM_AT(7); total += stage[t % 2 * 64 + LM_TID] * stage[t % 2 * 64 + 63 - LM_TID];
    LM_AT(8); lm_barrier();
  }
  LM_AT(9); b_y[LM_BLOCK_X * 64 + LM_TID] = total;
}
)";

// Warp 0 fills a ring of three stages of 64 elements by bulk loads; warps 1 and 2 sum them up, each thread all of the
// elements that have its rank in some warp, and pass the sums to each other at the end by a named barrier.
inline constexpr const char* kRing = R"(
LM_KERNEL(ring, 96) (LM_GLOBAL(const float) b_x, LM_GLOBAL(float) b_y, int s_T) {
  LM_SHARED(lm_mbarrier, full, 3);
  LM_SHARED(lm_mbarrier, empty, 3);
  LM_SHARED(float, sums, 64);
  LM_SHARED_POOL(pool);
  const LM_POINTER(float) stage = lm_shared_at<float>(pool, 0);
  LM_AT(1); if (LM_TID == 0) {
    for (int s = 0; s < 3; ++s) { lm_mbarrier_init(full, s, 1); lm_mbarrier_init(empty, s, 64); }
  }
  LM_AT(2); lm_barrier();
  if (LM_WARP == 0) {
    int s = 0, parity = 0;
    for (int t = 0; t < s_T && LM_LANE == 0; ++t) {
      LM_AT(3); lm_mbarrier_wait_parity(empty, s, parity ^ 1);
      LM_AT(4); lm_mbarrier_arrive_expect(full, s, 256);
      LM_AT(5); lm_bulk_load(stage, s * 64, b_x, (LM_BLOCK_X * (long long)s_T + t) * 64, 256, full, s);
      if (++s == 3) { s = 0; parity ^= 1; }
    }
  } else {
    const int i = LM_TID - 32;
    int s = 0, parity = 0;
    float total = 0;
    for (int t = 0; t < s_T; ++t) {
      LM_AT(6); while (!lm_mbarrier_try_wait_parity(full, s, parity)) {}
      LM_AT(7); total += stage[s * 64 + i] + 2 * stage[s * 64 + 63 - i];
      LM_AT(8); lm_mbarrier_arrive(empty, s);
      if (++s == 3) { s = 0; parity ^= 1; }
    }
    LM_AT(9); sums[i] = total;
    LM_AT(10); lm_barrier_named(1, 64);
    LM_AT(11); b_y[LM_BLOCK_X * 64 + i] = sums[i] - sums[63 - i];
  }
}
)";

// Each block doubles its elements in shared memory and lets the copy engine write them out, two halves in turn.
inline constexpr const char* kStore = R"(
LM_KERNEL(stored, 32) (LM_GLOBAL(const float) b_x, LM_GLOBAL(float) b_y, int s_T) {
  LM_SHARED(float, t, 2 * 32);
  for (int i = 0; i < s_T; ++i) {
    LM_AT(1); if (LM_TID == 0) lm_bulk_wait_read<1>();
    LM_AT(2); lm_barrier();
    LM_AT(3); t[i % 2 * 32 + LM_TID] = 2 * b_x[i * 32 + LM_TID];
    LM_AT(4); lm_fence_async();
    LM_AT(5); lm_barrier();
    LM_AT(6); if (LM_TID == 0) { lm_bulk_store(b_y, i * 32, t, i % 2 * 32, 128); lm_bulk_commit(); }
  }
  LM_AT(7); if (LM_TID == 0) lm_bulk_wait<0>();
}
)";

}  // namespace lemma::emulator
