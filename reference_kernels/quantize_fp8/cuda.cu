// Row-wise quantisation to float8: the row's largest magnitude, then every element over its scale.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

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

struct Max {
    static __device__ float of(float a, float b) { return fmaxf(a, b); }
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
__global__ void quantize_fp8_kernel(const T* x, __nv_fp8_e4m3* q, float* scales, int64_t rows, int64_t cols,
                                    int64_t stride_row, int64_t stride_col) {
    int64_t row = int64_t(blockIdx.x) * blockDim.y + threadIdx.y;
    if (row >= rows) return;
    x += row * stride_row;
    q += row * cols;
    float v[VEC], largest = 0.0f;
    for (int64_t j = threadIdx.x * VEC; j < cols; j += THREADS * VEC) {
        load(v, x, j, stride_col);
#pragma unroll
        for (int k = 0; k < VEC; ++k) largest = fmaxf(largest, fabsf(v[k]));
    }
    float scale = fmaxf(reduce<THREADS, Max>(largest), 1e-12f) / 448.0f;
    if (threadIdx.x == 0) scales[row] = scale;
    for (int64_t j = threadIdx.x * VEC; j < cols; j += THREADS * VEC) {
        load(v, x, j, stride_col);
        alignas(VEC) __nv_fp8_e4m3 rounded[VEC];
#pragma unroll
        for (int k = 0; k < VEC; ++k) rounded[k] = __nv_fp8_e4m3(v[k] / scale);  // saturates at 448
        if constexpr (VEC == 8)
            *reinterpret_cast<uint2*>(q + j) = *reinterpret_cast<uint2*>(rounded);
        else if constexpr (VEC == 4)
            *reinterpret_cast<uint32_t*>(q + j) = *reinterpret_cast<uint32_t*>(rounded);
        else
            q[j] = rounded[0];
    }
}

// Whether every row can be read 16 bytes at a time.
bool packable(const Tensor& x, int width) {
    int64_t rows = x.ndim > 1 ? x.stride[0] : 0, cols = x.shape[x.ndim - 1];
    bool aligned = reinterpret_cast<uintptr_t>(x.data) % 16 == 0;
    return aligned && x.stride[x.ndim - 1] == 1 && rows % width == 0 && cols % width == 0;
}

template <class T, int VEC>
void launch_rows(const Tensor& x, const Tensor& q, const Tensor& scale, cudaStream_t stream) {
    int64_t rows = x.shape[0], cols = x.shape[1];
    if (cols <= 1024) {  // a warp a row, eight rows a block
        quantize_fp8_kernel<T, VEC, 32><<<(rows + 7) / 8, dim3(32, 8), 0, stream>>>(
            x.as<T>(), q.as<__nv_fp8_e4m3>(), scale.as<float>(), rows, cols, x.stride[0], x.stride[1]);
    } else {
        quantize_fp8_kernel<T, VEC, 256><<<rows, 256, 0, stream>>>(
            x.as<T>(), q.as<__nv_fp8_e4m3>(), scale.as<float>(), rows, cols, x.stride[0], x.stride[1]);
    }
}

template <class T>
void launch(const Tensor& x, const Tensor& q, const Tensor& scale, cudaStream_t stream) {
    constexpr int width = 16 / sizeof(T);
    if (x.numel() == 0) return;
    if (packable(x, width))
        launch_rows<T, width>(x, q, scale, stream);
    else
        launch_rows<T, 1>(x, q, scale, stream);
}

extern "C" void quantize_fp8(const Tensor& x, const Tensor& q, const Tensor& scale, cudaStream_t stream) {
    switch (x.dtype) {
        case DType::float32: return launch<float>(x, q, scale, stream);
        case DType::float16: return launch<__half>(x, q, scale, stream);
        case DType::bfloat16: return launch<__nv_bfloat16>(x, q, scale, stream);
        default: return;
    }
}
