// Cumulative sum: a block walks along a row and carries the running sum. Threads sum VEC neighbours, warps scan by shuffles.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

// VEC neighbouring elements as float: one 16-byte access where VEC is more than 1.
template <int VEC, class T>
__device__ void load(float (&out)[VEC], const T* from, int64_t at, int64_t stride) {
    if constexpr (VEC == 1) {
        out[0] = static_cast<float>(from[at * stride]);
    } else {
        alignas(16) T packed[VEC];
        *reinterpret_cast<uint4*>(packed) = *reinterpret_cast<const uint4*>(from + at);
#pragma unroll
        for (int k = 0; k < VEC; ++k) out[k] = static_cast<float>(packed[k]);
    }
}

template <int VEC, class T>
__device__ void store(T* to, int64_t at, const float (&in)[VEC]) {
    if constexpr (VEC == 1) {
        to[at] = static_cast<T>(in[0]);
    } else {
        alignas(16) T packed[VEC];
#pragma unroll
        for (int k = 0; k < VEC; ++k) packed[k] = static_cast<T>(in[k]);
        *reinterpret_cast<uint4*>(to + at) = *reinterpret_cast<uint4*>(packed);
    }
}

template <class T, int VEC, int THREADS>
__global__ void cumsum_kernel(const T* x, T* y, int64_t cols, int64_t stride_row, int64_t stride_col) {
    constexpr int warps = THREADS / 32;
    __shared__ float of_warp[2][warps];  // two, so that one barrier a step is enough
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    x += blockIdx.x * stride_row;
    y += blockIdx.x * cols;
    float carry = 0.0f;
    int turn = 0;
    for (int64_t start = 0; start < cols; start += THREADS * VEC, turn ^= 1) {
        int64_t j = start + threadIdx.x * VEC;
        float v[VEC] = {};
        if (j < cols) load(v, x, j, stride_col);
#pragma unroll
        for (int k = 1; k < VEC; ++k) v[k] += v[k - 1];
        float sum = v[VEC - 1];  // inclusive over the lanes after the scan
#pragma unroll
        for (int distance = 1; distance < 32; distance *= 2) {
            float other = __shfl_up_sync(0xffffffff, sum, distance);
            if (lane >= distance) sum += other;
        }
        if (lane == 31) of_warp[turn][warp] = sum;
        float before = __shfl_up_sync(0xffffffff, sum, 1);
        before = lane == 0 ? 0.0f : before;
        __syncthreads();
        float total = 0.0f, earlier = 0.0f;
#pragma unroll
        for (int w = 0; w < warps; ++w) {
            if (w == warp) earlier = total;
            total += of_warp[turn][w];
        }
        before += carry + earlier;
        carry += total;
#pragma unroll
        for (int k = 0; k < VEC; ++k) v[k] += before;
        if (j < cols) store(y, j, v);
    }
}

// Whether every row can be read 16 bytes at a time.
bool packable(const Tensor& x, int width) {
    int64_t rows = x.ndim > 1 ? x.stride[0] : 0, cols = x.shape[x.ndim - 1];
    bool aligned = reinterpret_cast<uintptr_t>(x.data) % 16 == 0;
    return aligned && x.stride[x.ndim - 1] == 1 && rows % width == 0 && cols % width == 0;
}

template <class T, int VEC>
void launch_rows(const Tensor& x, const Tensor& y, cudaStream_t stream) {
    int64_t rows = x.shape[0], cols = x.shape[1];
    if (cols <= 64 * VEC)
        cumsum_kernel<T, VEC, 64><<<rows, 64, 0, stream>>>(x.as<T>(), y.as<T>(), cols, x.stride[0], x.stride[1]);
    else
        cumsum_kernel<T, VEC, 512><<<rows, 512, 0, stream>>>(x.as<T>(), y.as<T>(), cols, x.stride[0], x.stride[1]);
}

template <class T>
void launch(const Tensor& x, const Tensor& y, cudaStream_t stream) {
    constexpr int width = 16 / sizeof(T);
    if (x.numel() == 0) return;
    if (packable(x, width))
        launch_rows<T, width>(x, y, stream);
    else
        launch_rows<T, 1>(x, y, stream);
}

extern "C" void cumsum(const Tensor& x, const Tensor& y, cudaStream_t stream) {
    switch (x.dtype) {
        case DType::float32: return launch<float>(x, y, stream);
        case DType::float16: return launch<__half>(x, y, stream);
        case DType::bfloat16: return launch<__nv_bfloat16>(x, y, stream);
        default: return;
    }
}
