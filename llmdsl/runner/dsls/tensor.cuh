// What candidates in CUDA C++ are handed. Included before their first line.
#pragma once
#include <cstdint>
#include <cuda_runtime.h>

enum class DType : int32_t { float64, float32, float16, bfloat16, float8_e4m3fn, float8_e5m2, int64, int32, int16, int8, uint8, boolean };

struct Tensor {
    void* data;         // the first element, in GPU memory
    DType dtype;
    int32_t ndim;
    int64_t shape[8];
    int64_t stride[8];  // in elements, not bytes

    template <class T> T* as() const { return static_cast<T*>(data); }
    int64_t numel() const {
        int64_t n = 1;
        for (int i = 0; i < ndim; ++i) n *= shape[i];
        return n;
    }
};
