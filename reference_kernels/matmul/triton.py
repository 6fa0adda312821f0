"""Matrix product. 16-bit operands that TMA can address go to a persistent kernel on tensor descriptors; everything else
(odd strides, float32, small sizes) to a plain kernel on pointers."""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def tile_of(tile, m, n, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUP: tl.constexpr):
    """Row and column of a tile, GROUP rows of tiles at a time: neighbours share operands in the L2."""
    across = tl.cdiv(n, BLOCK_N)
    first = tile // (GROUP * across) * GROUP
    height = tl.minimum(tl.cdiv(m, BLOCK_M) - first, GROUP)
    inside = tile % (GROUP * across)
    return first + inside % height, inside // height


@triton.jit
def persistent_kernel(a, b, c, m, n, k, B_IS_TRANSPOSED: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                      BLOCK_K: tl.constexpr, GROUP: tl.constexpr):  # fmt: skip
    tiles = tl.cdiv(m, BLOCK_M) * tl.cdiv(n, BLOCK_N)
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=True):
        row, col = tile_of(tile, m, n, BLOCK_M, BLOCK_N, GROUP)
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for start in range(0, tl.cdiv(k, BLOCK_K)):
            x = a.load([row * BLOCK_M, start * BLOCK_K])
            if B_IS_TRANSPOSED:
                y = b.load([col * BLOCK_N, start * BLOCK_K]).T
            else:
                y = b.load([start * BLOCK_K, col * BLOCK_N])
            acc = tl.dot(x, y, acc)
        c.store([row * BLOCK_M, col * BLOCK_N], acc.to(c.dtype))


@triton.jit
def pointer_kernel(a, b, c, m, n, k, a_m, a_k, b_k, b_n, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                   BLOCK_K: tl.constexpr, GROUP: tl.constexpr):  # fmt: skip
    row, col = tile_of(tl.program_id(0), m, n, BLOCK_M, BLOCK_N, GROUP)
    rows = (row * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)
    cols = (col * BLOCK_N + tl.arange(0, BLOCK_N)).to(tl.int64)
    depth = tl.arange(0, BLOCK_K)
    a_ptrs = a + rows[:, None] * a_m + depth[None, :].to(tl.int64) * a_k
    b_ptrs = b + depth[:, None].to(tl.int64) * b_k + cols[None, :] * b_n
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, k, BLOCK_K):
        x = tl.load(a_ptrs, mask=(rows[:, None] < m) & (depth[None, :] < k - start), other=0.0)
        y = tl.load(b_ptrs, mask=(depth[:, None] < k - start) & (cols[None, :] < n), other=0.0)
        acc = tl.dot(x, y, acc, input_precision="ieee")
        a_ptrs += BLOCK_K * a_k
        b_ptrs += BLOCK_K * b_k
    tl.store(c + rows[:, None] * n + cols[None, :], acc, mask=(rows[:, None] < m) & (cols[None, :] < n))


def for_tma(x):
    """TMA wants a last stride of 1, other strides and the base in multiples of 16 bytes."""
    return x.stride(1) == 1 and x.stride(0) * x.element_size() % 16 == 0 and x.data_ptr() % 16 == 0


def matmul(a, b):
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty((m, n), dtype=a.dtype, device=a.device)
    large = m >= 128 and n >= 128 and k >= 64
    b_is_transposed = b.stride(0) == 1
    stored_b = b.T if b_is_transposed else b
    if large and a.element_size() == 2 and for_tma(a) and for_tma(stored_b) and for_tma(c):
        block_m, block_n, block_k = 128, 256, 64
        b_block = [block_n, block_k] if b_is_transposed else [block_k, block_n]
        tiles = triton.cdiv(m, block_m) * triton.cdiv(n, block_n)
        sms = torch.cuda.get_device_properties(a.device).multi_processor_count
        persistent_kernel[(min(tiles, sms),)](
            TensorDescriptor.from_tensor(a, [block_m, block_k]), TensorDescriptor.from_tensor(stored_b, b_block),
            TensorDescriptor.from_tensor(c, [block_m, block_n]), m, n, k, B_IS_TRANSPOSED=b_is_transposed,
            BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, GROUP=8, num_warps=8, num_stages=3,
        )  # fmt: skip
        return c
    block_m, block_n, block_k = (64, 64, 32) if a.element_size() == 4 or not large else (128, 128, 64)
    grid = (triton.cdiv(m, block_m) * triton.cdiv(n, block_n),)
    pointer_kernel[grid](
        a, b, c, m, n, k, *a.stride(), *b.stride(), BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, GROUP=8,
        num_warps=4, num_stages=3,
    )  # fmt: skip
    return c
