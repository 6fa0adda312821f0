// Flash attention, forward: a block takes 64 queries of one head and walks over the keys, 64 at a time, with an online
// softmax. 16-bit products run on tensor cores (wmma); scores and accumulators lie in shared memory. float32 has a kernel
// of its own, a warp a query.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

struct Problem {
    int64_t queries, keys, q_b, q_h, q_n, k_b, k_h, k_n, v_b, v_h, v_n;
    int heads, group, head_dim;
    float scale;
    bool causal;

    // How many keys a query sees.
    __device__ int64_t seen(int64_t query) const {
        int64_t last = causal ? query + keys - queries + 1 : keys;
        return last < keys ? last : keys;
    }
};

constexpr int BLOCK = 64, WARPS = 4, THREADS = 32 * WARPS;

// (BLOCK, DIM) values of one head from row `start` on; 0 outside of it.
template <int DIM, class T>
__device__ void bring(T* to, const T* from, int64_t start, int64_t rows, int64_t stride, int head_dim, bool packed) {
    constexpr int pitch = DIM + 8;
    if (packed) {
        for (int at = threadIdx.x * 8; at < BLOCK * DIM; at += THREADS * 8) {
            int i = at / DIM, d = at % DIM;
            uint4 piece = {0, 0, 0, 0};
            if (start + i < rows && d < head_dim)
                piece = *reinterpret_cast<const uint4*>(from + (start + i) * stride + d);
            *reinterpret_cast<uint4*>(to + i * pitch + d) = piece;
        }
    } else {
        for (int at = threadIdx.x; at < BLOCK * DIM; at += THREADS) {
            int i = at / DIM, d = at % DIM;
            bool inside = start + i < rows && d < head_dim;
            to[i * pitch + d] = inside ? from[(start + i) * stride + d] : static_cast<T>(0.0f);
        }
    }
}

template <int DIM, class T>
struct Shared {
    T q[BLOCK * (DIM + 8)], kv[BLOCK * (DIM + 8)], p[BLOCK * (BLOCK + 8)];
    float scores[BLOCK * (BLOCK + 4)], out[BLOCK * (DIM + 4)];
};

template <class T, int DIM>
__global__ void __launch_bounds__(THREADS) attention_kernel(const T* q, const T* k, const T* v, T* out, Problem problem,
                                                            bool packed) {
    extern __shared__ __align__(128) char bytes[];
    auto& shared = *reinterpret_cast<Shared<DIM, T>*>(bytes);
    constexpr int pitch = DIM + 8, p_pitch = BLOCK + 8, s_pitch = BLOCK + 4, o_pitch = DIM + 4;
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, first = warp * 16;  // a warp's 16 queries are nobody else's
    int64_t block = gridDim.x - 1 - blockIdx.x;  // the longest causal rows first: the short ones fill the gaps
    int64_t start = block * BLOCK;
    int batch = blockIdx.y / problem.heads, head = blockIdx.y % problem.heads, kv_head = head / problem.group;
    q += batch * problem.q_b + head * problem.q_h;
    k += batch * problem.k_b + kv_head * problem.k_h;
    v += batch * problem.v_b + kv_head * problem.v_h;
    bring<DIM>(shared.q, q, start, problem.queries, problem.q_n, problem.head_dim, packed);
    for (int at = threadIdx.x; at < BLOCK * o_pitch; at += THREADS) shared.out[at] = 0.0f;

    // Two lanes share a query: each keeps the maximum and the sum of all its keys.
    int row = first + lane / 2, half = lane % 2 * (BLOCK / 2);
    int64_t query = start + row;
    float top = -INFINITY, total = 0.0f;
    int64_t last = start + BLOCK - 1 < problem.queries ? start + BLOCK - 1 : problem.queries - 1;
    int64_t end = problem.seen(last), seen = query < problem.queries ? problem.seen(query) : end;
    float scale = problem.scale * 1.4426950408889634f;  // exp(x) = exp2(x * log2(e))

    for (int64_t key = 0; key < end; key += BLOCK) {
        __syncthreads();
        bring<DIM>(shared.kv, k, key, problem.keys, problem.k_n, problem.head_dim, packed);
        __syncthreads();
#pragma unroll
        for (int j = 0; j < BLOCK; j += 16) {
            wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
            wmma::fill_fragment(sum, 0.0f);
#pragma unroll
            for (int d = 0; d < DIM; d += 16) {
                wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> left;
                wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::col_major> right;  // k transposed
                wmma::load_matrix_sync(left, shared.q + first * pitch + d, pitch);
                wmma::load_matrix_sync(right, shared.kv + j * pitch + d, pitch);
                wmma::mma_sync(sum, left, right, sum);
            }
            wmma::store_matrix_sync(shared.scores + first * s_pitch + j, sum, s_pitch, wmma::mem_row_major);
        }
        __syncthreads();  // all warps are done with k
        bring<DIM>(shared.kv, v, key, problem.keys, problem.v_n, problem.head_dim, packed);

        float* scores = shared.scores + row * s_pitch + half;
        float next = top;
        for (int j = 0; j < BLOCK / 2; ++j)
            if (key + half + j < seen) next = fmaxf(next, scores[j] * scale);
        next = fmaxf(next, __shfl_xor_sync(0xffffffff, next, 1));  // every query sees key 0, so it is finite
        float shrink = exp2f(top - next), sum = 0.0f;
        for (int j = 0; j < BLOCK / 2; ++j) {
            float p = key + half + j < seen ? exp2f(scores[j] * scale - next) : 0.0f;
            sum += p;
            shared.p[row * p_pitch + half + j] = static_cast<T>(p);
        }
        total = total * shrink + sum + __shfl_xor_sync(0xffffffff, sum, 1);
        top = next;
        for (int d = lane % 2; d < DIM; d += 2) shared.out[row * o_pitch + d] *= shrink;
        __syncthreads();  // v is there

#pragma unroll
        for (int d = 0; d < DIM; d += 16) {
            wmma::fragment<wmma::accumulator, 16, 16, 16, float> acc;
            wmma::load_matrix_sync(acc, shared.out + first * o_pitch + d, o_pitch, wmma::mem_row_major);
#pragma unroll
            for (int j = 0; j < BLOCK; j += 16) {
                wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> left;
                wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::row_major> right;
                wmma::load_matrix_sync(left, shared.p + first * p_pitch + j, p_pitch);
                wmma::load_matrix_sync(right, shared.kv + j * pitch + d, pitch);
                wmma::mma_sync(acc, left, right, acc);
            }
            wmma::store_matrix_sync(shared.out + first * o_pitch + d, acc, o_pitch, wmma::mem_row_major);
        }
        __syncwarp();
    }
    if (query < problem.queries) {
        T* to = out + (int64_t(blockIdx.y) * problem.queries + query) * problem.head_dim;
        for (int d = lane % 2; d < problem.head_dim; d += 2)
            to[d] = static_cast<T>(shared.out[row * o_pitch + d] / total);
    }
}

// A warp a query: lanes take a key each for the scores, and up to 4 dimensions each for the result.
__global__ void attention_float_kernel(const float* q, const float* k, const float* v, float* out, Problem problem) {
    int lane = threadIdx.x % 32;
    int64_t query = int64_t(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32;
    if (query >= problem.queries) return;
    int batch = blockIdx.y / problem.heads, head = blockIdx.y % problem.heads, kv_head = head / problem.group;
    q += batch * problem.q_b + head * problem.q_h + query * problem.q_n;
    k += batch * problem.k_b + kv_head * problem.k_h;
    v += batch * problem.v_b + kv_head * problem.v_h;
    float top = -INFINITY, total = 0.0f, acc[4] = {};
    int64_t seen = problem.seen(query);
    for (int64_t key = 0; key < seen; key += 32) {
        float score = -INFINITY;
        if (key + lane < seen) {
            score = 0.0f;
            for (int d = 0; d < problem.head_dim; ++d) score += q[d] * k[(key + lane) * problem.k_n + d];
            score *= problem.scale;
        }
        float next = score;
        for (int other = 16; other > 0; other /= 2) next = fmaxf(next, __shfl_xor_sync(0xffffffff, next, other));
        next = fmaxf(next, top);
        float p = expf(score - next), shrink = expf(top - next), sum = p;
        for (int other = 16; other > 0; other /= 2) sum += __shfl_xor_sync(0xffffffff, sum, other);
        total = total * shrink + sum;
        top = next;
        for (int i = 0; i < 4; ++i) acc[i] *= shrink;
        int here = seen - key < 32 ? seen - key : 32;
        for (int j = 0; j < here; ++j) {
            float weight = __shfl_sync(0xffffffff, p, j);
            for (int i = 0; i < 4; ++i)
                if (lane + 32 * i < problem.head_dim) acc[i] += weight * v[(key + j) * problem.v_n + lane + 32 * i];
        }
    }
    out += (int64_t(blockIdx.y) * problem.queries + query) * problem.head_dim;
    for (int i = 0; i < 4; ++i)
        if (lane + 32 * i < problem.head_dim) out[lane + 32 * i] = acc[i] / total;
}

bool packable(const Tensor& x) {
    bool good = reinterpret_cast<uintptr_t>(x.data) % 16 == 0 && x.shape[3] % 8 == 0;
    for (int d = 0; d < 3; ++d) good = good && x.stride[d] % 8 == 0;
    return good;
}

template <class T, int DIM>
void launch(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out, const Problem& problem,
            cudaStream_t stream) {
    auto kernel = attention_kernel<T, DIM>;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Shared<DIM, T>));
    dim3 grid((problem.queries + BLOCK - 1) / BLOCK, q.shape[0] * q.shape[1]);
    bool packed = packable(q) && packable(k) && packable(v);
    kernel<<<grid, THREADS, sizeof(Shared<DIM, T>), stream>>>(q.as<T>(), k.as<T>(), v.as<T>(), out.as<T>(), problem, packed);
}

template <class T>
void launch(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out, const Problem& problem,
            cudaStream_t stream) {
    if (problem.head_dim <= 64)
        launch<T, 64>(q, k, v, out, problem, stream);
    else
        launch<T, 128>(q, k, v, out, problem, stream);
}

extern "C" void attention(const Tensor& q, const Tensor& k, const Tensor& v, bool causal, double scale, const Tensor& out,
                          cudaStream_t stream) {
    if (out.numel() == 0) return;
    Problem problem = {q.shape[2], k.shape[2], q.stride[0], q.stride[1], q.stride[2], k.stride[0], k.stride[1], k.stride[2],
                       v.stride[0], v.stride[1], v.stride[2], int(q.shape[1]), int(q.shape[1] / k.shape[1]),
                       int(q.shape[3]), float(scale), causal};
    dim3 grid((problem.queries + 3) / 4, q.shape[0] * q.shape[1]);
    switch (q.dtype) {
        case DType::float32:
            return attention_float_kernel<<<grid, 128, 0, stream>>>(q.as<float>(), k.as<float>(), v.as<float>(),
                                                                    out.as<float>(), problem);
        case DType::float16: return launch<__half>(q, k, v, out, problem, stream);
        case DType::bfloat16: return launch<__nv_bfloat16>(q, k, v, out, problem, stream);
        default: return;
    }
}
