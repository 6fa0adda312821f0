// Cross entropy: one pass over a row makes its maximum and sum; ignored rows are not read.
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

struct Sum {
    static __device__ float of(float a, float b) { return a + b; }
};

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
__global__ void cross_entropy_kernel(const T* logits, const int64_t* target, float* loss, int64_t ignore_index, int64_t rows,
                                     int64_t cols, int64_t stride_row, int64_t stride_col) {
    int64_t row = int64_t(blockIdx.x) * blockDim.y + threadIdx.y;
    if (row >= rows) return;
    int64_t wanted = target[row];
    if (wanted == ignore_index) {  // the same for all threads of the row
        if (threadIdx.x == 0) loss[row] = 0.0f;
        return;
    }
    logits += row * stride_row;
    float v[VEC], top = -INFINITY, total = 0.0f;
    for (int64_t j = threadIdx.x * VEC; j < cols; j += THREADS * VEC) {
        load(v, logits, j, stride_col);
        float next = top;
#pragma unroll
        for (int k = 0; k < VEC; ++k) next = fmaxf(next, v[k]);
        total *= expf(top - next);
#pragma unroll
        for (int k = 0; k < VEC; ++k) total += expf(v[k] - next);
        top = next;
    }
    float highest = reduce<THREADS, Max>(top);
    total = reduce<THREADS, Sum>(total * expf(top - highest));
    if (threadIdx.x == 0) loss[row] = logf(total) + (highest - static_cast<float>(logits[wanted * stride_col]));
}

// Whether every row can be read 16 bytes at a time.
bool packable(const Tensor& x, int width) {
    int64_t rows = x.ndim > 1 ? x.stride[0] : 0, cols = x.shape[x.ndim - 1];
    bool aligned = reinterpret_cast<uintptr_t>(x.data) % 16 == 0;
    return aligned && x.stride[x.ndim - 1] == 1 && rows % width == 0 && cols % width == 0;
}

template <class T, int VEC>
void launch_rows(const Tensor& logits, const Tensor& target, int64_t ignore_index, const Tensor& loss, cudaStream_t stream) {
    int64_t rows = logits.shape[0], cols = logits.shape[1];
    if (cols <= 1024) {  // a warp a row, eight rows a block
        cross_entropy_kernel<T, VEC, 32><<<(rows + 7) / 8, dim3(32, 8), 0, stream>>>(
            logits.as<T>(), target.as<int64_t>(), loss.as<float>(), ignore_index, rows, cols, logits.stride[0], logits.stride[1]);
    } else {
        cross_entropy_kernel<T, VEC, 512><<<rows, 512, 0, stream>>>(
            logits.as<T>(), target.as<int64_t>(), loss.as<float>(), ignore_index, rows, cols, logits.stride[0], logits.stride[1]);
    }
}

template <class T>
void launch(const Tensor& logits, const Tensor& target, int64_t ignore_index, const Tensor& loss, cudaStream_t stream) {
    constexpr int width = 16 / sizeof(T);
    if (logits.numel() == 0) return;
    if (packable(logits, width))
        launch_rows<T, width>(logits, target, ignore_index, loss, stream);
    else
        launch_rows<T, 1>(logits, target, ignore_index, loss, stream);
}

extern "C" void cross_entropy(const Tensor& logits, const Tensor& target, int64_t ignore_index, const Tensor& loss, cudaStream_t stream) {
    switch (logits.dtype) {
        case DType::float32: return launch<float>(logits, target, ignore_index, loss, stream);
        case DType::float16: return launch<__half>(logits, target, ignore_index, loss, stream);
        case DType::bfloat16: return launch<__nv_bfloat16>(logits, target, ignore_index, loss, stream);
        default: return;
    }
}
