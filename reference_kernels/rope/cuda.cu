// Rotary embedding: a thread takes VEC pairs (j, j + half) of one position of one head.
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

struct Strides {
    int64_t batch, head, position, dim;
};

template <class T, int VEC>
__global__ void rope_kernel(const T* x, const float* cos, const float* sin, T* out, int64_t pairs, int heads, int positions,
                            int half, Strides stride) {
    int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;  // counts groups of VEC pairs in the order of out
    if (i * VEC >= pairs) return;
    int groups = half / VEC;
    int64_t row = i / groups;
    int j = i % groups * VEC, position = row % positions;
    int64_t head = row / positions % heads, batch = row / positions / heads;
    const T* from = x + batch * stride.batch + head * stride.head + position * stride.position;
    float low[VEC], high[VEC], c[VEC], s[VEC];
    load(low, from, j, stride.dim);
    load(high, from + half * stride.dim, j, stride.dim);
#pragma unroll
    for (int k = 0; k < VEC; ++k) {
        c[k] = cos[int64_t(position) * half + j + k];
        s[k] = sin[int64_t(position) * half + j + k];
        float rotated = low[k] * c[k] - high[k] * s[k];
        high[k] = high[k] * c[k] + low[k] * s[k];
        low[k] = rotated;
    }
    T* to = out + row * 2 * half;
    store(to, j, low);
    store(to + half, j, high);
}

template <class T, int VEC>
void launch_packed(const Tensor& x, const Tensor& cos, const Tensor& sin, const Tensor& out, cudaStream_t stream) {
    int64_t pairs = x.numel() / 2, threads = pairs / VEC;
    rope_kernel<T, VEC><<<(threads + 255) / 256, 256, 0, stream>>>(
        x.as<T>(), cos.as<float>(), sin.as<float>(), out.as<T>(), pairs, x.shape[1], x.shape[2], x.shape[3] / 2,
        Strides{x.stride[0], x.stride[1], x.stride[2], x.stride[3]});
}

template <class T>
void launch(const Tensor& x, const Tensor& cos, const Tensor& sin, const Tensor& out, cudaStream_t stream) {
    constexpr int width = 16 / sizeof(T);
    if (x.numel() == 0) return;
    bool packable = reinterpret_cast<uintptr_t>(x.data) % 16 == 0 && x.stride[3] == 1 && x.shape[3] / 2 % width == 0;
    for (int d = 0; d < 3; ++d) packable = packable && x.stride[d] % width == 0;
    if (packable)
        launch_packed<T, width>(x, cos, sin, out, stream);
    else
        launch_packed<T, 1>(x, cos, sin, out, stream);
}

extern "C" void rope(const Tensor& x, const Tensor& cos, const Tensor& sin, const Tensor& out, cudaStream_t stream) {
    switch (x.dtype) {
        case DType::float32: return launch<float>(x, cos, sin, out, stream);
        case DType::float16: return launch<__half>(x, cos, sin, out, stream);
        case DType::bfloat16: return launch<__nv_bfloat16>(x, cos, sin, out, stream);
        default: return;
    }
}
