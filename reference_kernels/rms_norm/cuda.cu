// RMS norm: a row is read twice, the second time from cache.
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

struct Sum {
    static __device__ float of(float a, float b) { return a + b; }
};

// One value for all THREADS threads of a row: shuffles within warps, shared memory between them.
template <int THREADS, class Op>
__device__ float reduce(float v) {
#pragma unroll
    for (int lane = 16; lane > 0; lane /= 2) v = Op::of(v, __shfl_xor_sync(0xffffffff, v, lane));
    if constexpr (THREADS > 32) {
        __shared__ float of_warp[THREADS / 32];
        __syncthreads();  // an earlier reduction may still be read
        if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = v;
        __syncthreads();
        v = of_warp[0];
#pragma unroll
        for (int warp = 1; warp < THREADS / 32; ++warp) v = Op::of(v, of_warp[warp]);
    }
    return v;
}

template <class T, int VEC, int THREADS>
__global__ void rms_norm_kernel(const T* x, const T* weight, T* y, float eps, int64_t rows, int64_t cols,
                                int64_t stride_row, int64_t stride_col) {
    int64_t row = int64_t(blockIdx.x) * blockDim.y + threadIdx.y;
    if (row >= rows) return;
    x += row * stride_row;
    y += row * cols;
    float v[VEC], w[VEC], squares = 0.0f;
    for (int64_t j = threadIdx.x * VEC; j < cols; j += THREADS * VEC) {
        load(v, x, j, stride_col);
#pragma unroll
        for (int k = 0; k < VEC; ++k) squares += v[k] * v[k];
    }
    float scale = rsqrtf(reduce<THREADS, Sum>(squares) / cols + eps);
    for (int64_t j = threadIdx.x * VEC; j < cols; j += THREADS * VEC) {
        load(v, x, j, stride_col);
        load(w, weight, j, 1);
#pragma unroll
        for (int k = 0; k < VEC; ++k) v[k] *= scale * w[k];
        store(y, j, v);
    }
}

// Whether every row can be read 16 bytes at a time.
bool packable(const Tensor& x, int width) {
    int64_t rows = x.ndim > 1 ? x.stride[0] : 0, cols = x.shape[x.ndim - 1];
    bool aligned = reinterpret_cast<uintptr_t>(x.data) % 16 == 0;
    return aligned && x.stride[x.ndim - 1] == 1 && rows % width == 0 && cols % width == 0;
}

template <class T, int VEC>
void launch_rows(const Tensor& x, const Tensor& weight, double eps, const Tensor& y, cudaStream_t stream) {
    int64_t rows = x.shape[0], cols = x.shape[1];
    if (cols <= 1024) {  // a warp a row, eight rows a block
        rms_norm_kernel<T, VEC, 32><<<(rows + 7) / 8, dim3(32, 8), 0, stream>>>(
            x.as<T>(), weight.as<T>(), y.as<T>(), eps, rows, cols, x.stride[0], x.stride[1]);
    } else {
        rms_norm_kernel<T, VEC, 256><<<rows, 256, 0, stream>>>(
            x.as<T>(), weight.as<T>(), y.as<T>(), eps, rows, cols, x.stride[0], x.stride[1]);
    }
}

template <class T>
void launch(const Tensor& x, const Tensor& weight, double eps, const Tensor& y, cudaStream_t stream) {
    constexpr int width = 16 / sizeof(T);
    if (x.numel() == 0) return;
    if (packable(x, width) && packable(weight, width))
        launch_rows<T, width>(x, weight, eps, y, stream);
    else
        launch_rows<T, 1>(x, weight, eps, y, stream);
}

extern "C" void rms_norm(const Tensor& x, const Tensor& weight, double eps, const Tensor& y, cudaStream_t stream) {
    switch (x.dtype) {
        case DType::float32: return launch<float>(x, weight, eps, y, stream);
        case DType::float16: return launch<__half>(x, weight, eps, y, stream);
        case DType::bfloat16: return launch<__nv_bfloat16>(x, weight, eps, y, stream);
        default: return;
    }
}
