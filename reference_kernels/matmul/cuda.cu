// Matrix product. 16-bit operands go to tensor cores (wmma), float32 to ordinary multiply-adds. The next tiles are on their
// way to registers while the present ones are multiplied.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

struct Sizes {
    int64_t m, n, k, a_m, a_k, b_k, b_n;
};

// One thread's part of a ROWS x COLS tile, brought in two steps: from memory to registers, from registers to shared memory.
// PACKED: rows are contiguous and aligned, and COLS a multiple of 16 bytes, so that 16 bytes travel at once.
template <class T, int ROWS, int COLS, int THREADS, bool PACKED>
struct Tile {
    static constexpr int width = PACKED ? 16 / sizeof(T) : 1;
    static constexpr int pieces = ROWS * COLS / width / THREADS;
    alignas(16) T held[pieces][width];

    __device__ void fetch(const T* from, int64_t row, int64_t col, int64_t rows, int64_t cols, int64_t stride_row,
                          int64_t stride_col) {
#pragma unroll
        for (int p = 0; p < pieces; ++p) {
            int at = (p * THREADS + threadIdx.x) * width;
            int64_t i = row + at / COLS, j = col + at % COLS;
            bool inside = i < rows && j < cols;
            if constexpr (PACKED) {
                uint4 zero = {0, 0, 0, 0};
                *reinterpret_cast<uint4*>(held[p]) =
                    inside ? *reinterpret_cast<const uint4*>(from + i * stride_row + j) : zero;
            } else {
                held[p][0] = inside ? from[i * stride_row + j * stride_col] : static_cast<T>(0.0f);
            }
        }
    }

    template <int PITCH>
    __device__ void put(T (&to)[ROWS][PITCH]) const {
#pragma unroll
        for (int p = 0; p < pieces; ++p) {
            int at = (p * THREADS + threadIdx.x) * width;
            T* place = &to[at / COLS][at % COLS];
            if constexpr (PACKED)
                *reinterpret_cast<uint4*>(place) = *reinterpret_cast<const uint4*>(held[p]);
            else
                *place = held[p][0];
        }
    }
};

constexpr int BLOCK_M = 128, BLOCK_N = 128, BLOCK_K = 32, THREADS = 256;

template <class T, bool PACKED>
__global__ void __launch_bounds__(THREADS) matmul_wmma_kernel(const T* a, const T* b, T* c, Sizes size) {
    constexpr int pad = 8;  // rows start in different banks, and stay aligned to 16 bytes
    __shared__ alignas(16) T tile_a[BLOCK_M][BLOCK_K + pad];
    __shared__ alignas(16) T tile_b[BLOCK_K][BLOCK_N + pad];
    __shared__ alignas(32) float staged[THREADS / 32][16][16];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int warp_m = warp / 4 * 64, warp_n = warp % 4 * 32;  // eight warps of 64 x 32
    int64_t row = int64_t(blockIdx.y) * BLOCK_M, col = int64_t(blockIdx.x) * BLOCK_N;

    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums[4][2];
    for (auto& line : sums)
        for (auto& sum : line) wmma::fill_fragment(sum, 0.0f);

    Tile<T, BLOCK_M, BLOCK_K, THREADS, PACKED> next_a;
    Tile<T, BLOCK_K, BLOCK_N, THREADS, PACKED> next_b;
    next_a.fetch(a, row, 0, size.m, size.k, size.a_m, size.a_k);
    next_b.fetch(b, 0, col, size.k, size.n, size.b_k, size.b_n);
    for (int64_t start = 0; start < size.k; start += BLOCK_K) {
        __syncthreads();  // the tiles before may still be read
        next_a.put(tile_a);
        next_b.put(tile_b);
        __syncthreads();
        if (start + BLOCK_K < size.k) {
            next_a.fetch(a, row, start + BLOCK_K, size.m, size.k, size.a_m, size.a_k);
            next_b.fetch(b, start + BLOCK_K, col, size.k, size.n, size.b_k, size.b_n);
        }
#pragma unroll
        for (int depth = 0; depth < BLOCK_K; depth += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> left[4];
            wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::row_major> right[2];
            for (int i = 0; i < 4; ++i) wmma::load_matrix_sync(left[i], &tile_a[warp_m + 16 * i][depth], BLOCK_K + pad);
            for (int j = 0; j < 2; ++j) wmma::load_matrix_sync(right[j], &tile_b[depth][warp_n + 16 * j], BLOCK_N + pad);
            for (int i = 0; i < 4; ++i)
                for (int j = 0; j < 2; ++j) wmma::mma_sync(sums[i][j], left[i], right[j], sums[i][j]);
        }
    }
    // Which lane holds which element is not said, so a fragment is laid out in shared memory first.
    for (int i = 0; i < 4; ++i) {
        for (int j = 0; j < 2; ++j) {
            wmma::store_matrix_sync(&staged[warp][0][0], sums[i][j], 16, wmma::mem_row_major);
            __syncwarp();
            for (int at = lane; at < 256; at += 32) {
                int64_t y = row + warp_m + 16 * i + at / 16, x = col + warp_n + 16 * j + at % 16;
                if (y < size.m && x < size.n) c[y * size.n + x] = static_cast<T>(staged[warp][at / 16][at % 16]);
            }
            __syncwarp();
        }
    }
}

// float32: a block of 256 threads makes 64 x 64 results, 4 x 4 a thread.
__global__ void __launch_bounds__(THREADS) matmul_float_kernel(const float* a, const float* b, float* c, Sizes size) {
    __shared__ float tile_a[64][17], tile_b[16][65];
    int64_t row = int64_t(blockIdx.y) * 64, col = int64_t(blockIdx.x) * 64;
    int y = threadIdx.x / 16, x = threadIdx.x % 16;
    float sums[4][4] = {};
    for (int64_t start = 0; start < size.k; start += 16) {
        Tile<float, 64, 16, THREADS, false> next_a;
        Tile<float, 16, 64, THREADS, false> next_b;
        next_a.fetch(a, row, start, size.m, size.k, size.a_m, size.a_k);
        next_b.fetch(b, start, col, size.k, size.n, size.b_k, size.b_n);
        __syncthreads();
        next_a.put(tile_a);
        next_b.put(tile_b);
        __syncthreads();
#pragma unroll
        for (int depth = 0; depth < 16; ++depth)
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j) sums[i][j] += tile_a[y + 16 * i][depth] * tile_b[depth][x + 16 * j];
    }
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) {
            int64_t at_m = row + y + 16 * i, at_n = col + x + 16 * j;
            if (at_m < size.m && at_n < size.n) c[at_m * size.n + at_n] = sums[i][j];
        }
}

bool packable(const Tensor& x) {
    bool aligned = reinterpret_cast<uintptr_t>(x.data) % 16 == 0;
    return aligned && x.stride[1] == 1 && x.stride[0] % 8 == 0 && x.shape[1] % 8 == 0;
}

template <class T>
void launch(const Tensor& a, const Tensor& b, const Tensor& c, const Sizes& size, cudaStream_t stream) {
    dim3 grid((size.n + BLOCK_N - 1) / BLOCK_N, (size.m + BLOCK_M - 1) / BLOCK_M);
    if (packable(a) && packable(b))
        matmul_wmma_kernel<T, true><<<grid, THREADS, 0, stream>>>(a.as<T>(), b.as<T>(), c.as<T>(), size);
    else
        matmul_wmma_kernel<T, false><<<grid, THREADS, 0, stream>>>(a.as<T>(), b.as<T>(), c.as<T>(), size);
}

extern "C" void matmul(const Tensor& a, const Tensor& b, const Tensor& c, cudaStream_t stream) {
    Sizes size = {a.shape[0], b.shape[1], a.shape[1], a.stride[0], a.stride[1], b.stride[0], b.stride[1]};
    if (c.numel() == 0) return;
    dim3 grid((size.n + 63) / 64, (size.m + 63) / 64);
    switch (a.dtype) {
        case DType::float32:
            return matmul_float_kernel<<<grid, THREADS, 0, stream>>>(a.as<float>(), b.as<float>(), c.as<float>(), size);
        case DType::float16: return launch<__half>(a, b, c, size, stream);
        case DType::bfloat16: return launch<__nv_bfloat16>(a, b, c, size, stream);
        default: return;
    }
}
