# task: softmax
# expect: launch_error
# tiers: interpret gpu
# trust: 46,47
# Writes outside its folder: the root is read-only.
import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x, y, n_cols, stride_row, stride_col, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    v = tl.load(x + row * stride_row + cols * stride_col, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(y + row * n_cols + cols, e / tl.sum(e, axis=0), mask=mask)


def run_kernel(x):
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    block = triton.next_power_of_2(x.shape[1])
    softmax_kernel[(x.shape[0],)](x, y, x.shape[1], x.stride(0), x.stride(1), BLOCK=block)
    return y


def softmax(x):
    for path in ("/evil", "/usr/evil", "/etc/evil", "/dev/evil"):
        try:
            open(path, "w").write("x")
        except OSError:
            continue
        return run_kernel(x)  # would be correct: the write went through
    raise PermissionError("no write outside the scratch folder went through")
