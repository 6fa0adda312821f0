"""Matrix product on pointers: 16-bit operands on the tensor cores, float32 in IEEE arithmetic on the ordinary units."""

import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import mma_v2


@gluon.jit
def tile_of(tile, m, n, BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, GROUP: gl.constexpr):
    """Row and column of a tile, GROUP rows of tiles at a time: neighbours share operands in the L2."""
    across = gl.cdiv(n, BLOCK_N)
    first = tile // (GROUP * across) * GROUP
    height = gl.minimum(gl.cdiv(m, BLOCK_M) - first, GROUP)
    inside = tile % (GROUP * across)
    return first + inside % height, inside // height


@gluon.jit
def load_tile(source, first_row, first_col, rows, cols, stride_row, stride_col, M: gl.constexpr, N: gl.constexpr,
              layout: gl.constexpr):  # fmt: skip
    row = (first_row + gl.arange(0, M, layout=gl.SliceLayout(1, layout))).to(gl.int64)[:, None]
    col = (first_col + gl.arange(0, N, layout=gl.SliceLayout(0, layout))).to(gl.int64)[None, :]
    return gl.load(source + row * stride_row + col * stride_col, mask=(row < rows) & (col < cols), other=0.0)


@gluon.jit
def matmul_kernel(a, b, c, m, n, k, a_m, a_k, b_k, b_n, BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr,
                  BLOCK_K: gl.constexpr, GROUP: gl.constexpr, TENSOR_CORES: gl.constexpr, a_layout: gl.constexpr,
                  b_layout: gl.constexpr, c_layout: gl.constexpr, acc_layout: gl.constexpr,
                  K_WIDTH: gl.constexpr):  # fmt: skip
    left: gl.constexpr = gl.DotOperandLayout(0, acc_layout, K_WIDTH)
    right: gl.constexpr = gl.DotOperandLayout(1, acc_layout, K_WIDTH)
    tile_row, tile_col = tile_of(gl.program_id(0), m, n, BLOCK_M, BLOCK_N, GROUP)
    first_row, first_col = tile_row * BLOCK_M, tile_col * BLOCK_N
    acc = gl.zeros([BLOCK_M, BLOCK_N], gl.float32, acc_layout)
    x = load_tile(a, first_row, 0, m, k, a_m, a_k, BLOCK_M, BLOCK_K, a_layout)
    y = load_tile(b, 0, first_col, k, n, b_k, b_n, BLOCK_K, BLOCK_N, b_layout)
    for start in range(0, k, BLOCK_K):
        x_now, y_now = gl.convert_layout(x, left), gl.convert_layout(y, right)
        # The next operands are on their way while these are multiplied.
        x = load_tile(a, first_row, start + BLOCK_K, m, k, a_m, a_k, BLOCK_M, BLOCK_K, a_layout)
        y = load_tile(b, start + BLOCK_K, first_col, k, n, b_k, b_n, BLOCK_K, BLOCK_N, b_layout)
        if TENSOR_CORES:
            acc = mma_v2(x_now, y_now, acc)
        else:
            acc = gl.dot_fma(x_now, y_now, acc)
    row = (first_row + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, c_layout))).to(gl.int64)[:, None]
    col = (first_col + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, c_layout))).to(gl.int64)[None, :]
    out = gl.convert_layout(acc.to(c.dtype.element_ty), c_layout)
    gl.store(c + row * n + col, out, mask=(row < m) & (col < n))


def tile_layout(rows, cols, rows_side_by_side, warps, wide):
    """16 bytes a thread along the dimension in which neighbours lie side by side."""
    if rows_side_by_side:
        threads = min(32, rows // wide)
        return gl.BlockedLayout([wide, 1], [threads, 32 // threads], [1, warps], [0, 1])
    threads = min(32, cols // wide)
    return gl.BlockedLayout([1, wide], [32 // threads, threads], [warps, 1], [1, 0])


def matmul(a, b):
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty((m, n), dtype=a.dtype, device=a.device)
    tensor_cores = a.element_size() == 2
    if tensor_cores:
        block_m, block_n, block_k, warps = (128, 128, 32, 8) if m >= 128 and n >= 128 else (64, 64, 32, 4)
        acc_layout = gl.NVMMADistributedLayout(version=[2, 0], warps_per_cta=[warps // 2, 2], instr_shape=[16, 8])
    else:
        block_m, block_n, block_k, warps = 64, 64, 16, 4
        acc_layout = gl.BlockedLayout([4, 4], [4, 8], [warps, 1], [1, 0])
    wide = 16 // a.element_size()
    matmul_kernel[(triton.cdiv(m, block_m) * triton.cdiv(n, block_n),)](
        a, b, c, m, n, k, *a.stride(), *b.stride(), BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, GROUP=8,
        TENSOR_CORES=tensor_cores, a_layout=tile_layout(block_m, block_k, a.stride(0) == 1, warps, wide),
        b_layout=tile_layout(block_k, block_n, b.stride(0) == 1, warps, wide),
        c_layout=tile_layout(block_m, block_n, False, warps, wide), acc_layout=acc_layout,
        K_WIDTH=2 if tensor_cores else 0, num_warps=warps,
    )  # fmt: skip
    return c
