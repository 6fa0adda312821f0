// scaled_row_l1(x, scale): y[i] = scale * sum_j |x[i, j]|, x of shape (rows, cols) with any strides, y in x's dtype
#include <cuda_bf16.h>
#include <cuda_fp16.h>

template <class T>
__global__ void scaled_row_l1_kernel(const T* __restrict__ x, T* __restrict__ y, float scale, int64_t cols,
                                     int64_t stride_row, int64_t stride_col) {
    const T* row = x + blockIdx.x * stride_row;  // one block a row
    float total = 0.0f;
    for (int64_t j = threadIdx.x; j < cols; j += blockDim.x)  // neighbouring threads read neighbouring elements
        total += fabsf(static_cast<float>(row[j * stride_col]));

    for (int lane = 16; lane > 0; lane /= 2) total += __shfl_xor_sync(0xffffffff, total, lane);
    __shared__ float of_warp[32];
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = total;
    __syncthreads();
    if (threadIdx.x == 0) {
        total = 0.0f;
        for (int warp = 0; warp < blockDim.x / 32; ++warp) total += of_warp[warp];
        y[blockIdx.x] = static_cast<T>(total * scale);
    }
}

template <class T>
void launch(const Tensor& x, float scale, const Tensor& y, cudaStream_t stream) {
    int64_t rows = x.shape[0], cols = x.shape[1];
    if (rows == 0) return;
    scaled_row_l1_kernel<T><<<rows, 256, 0, stream>>>(x.as<T>(), y.as<T>(), scale, cols, x.stride[0], x.stride[1]);
}

extern "C" void scaled_row_l1(const Tensor& x, double scale, const Tensor& y, cudaStream_t stream) {
    switch (x.dtype) {
        case DType::float32: return launch<float>(x, scale, y, stream);
        case DType::float16: return launch<__half>(x, scale, y, stream);
        case DType::bfloat16: return launch<__nv_bfloat16>(x, scale, y, stream);
        default: return;
    }
}
