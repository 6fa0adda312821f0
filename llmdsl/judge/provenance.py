"""Whose work an answer is. The runner reports what torch did while the entry ran; this decides what that means."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from llmdsl.judge.answers import GpuKernel

# Allocation, views, copies and casts: what host code around a kernel needs. By ATen name without its overload.
_HOUSEKEEPING = frozenset(
    [
        "empty",
        "empty_strided",
        "empty_like",
        "new_empty",
        "new_empty_strided",
        "zeros",
        "zeros_like",
        "new_zeros",
        "ones",
        "ones_like",
        "new_ones",
        "full",
        "full_like",
        "new_full",
        "zero_",
        "zero",
        "fill_",
        "fill",
        "arange",
        "scalar_tensor",
        "lift_fresh",
        "lift_fresh_copy",
        "eye",
        "view",
        "_unsafe_view",
        "reshape",
        "_reshape_alias",
        "as_strided",
        "slice",
        "select",
        "narrow",
        "squeeze",
        "unsqueeze",
        "transpose",
        "t",
        "permute",
        "expand",
        "expand_as",
        "movedim",
        "alias",
        "detach",
        "detach_",
        "unfold",
        "diagonal",
        "split",
        "split_with_sizes",
        "chunk",
        "unbind",
        "flatten",
        "ravel",
        "view_as",
        "unflatten",
        "real",
        "view_dtype",
        "contiguous",
        "clone",
        "copy_",
        "_to_copy",
        "to",
        "resize_",
        "set_",
        "is_contiguous",
        "is_pinned",
        "_pin_memory",
        "sym_size",
        "sym_stride",
        "sym_numel",
        "sym_storage_offset",
        "size",
        "stride",
        "numel",
        "_local_scalar_dense_python",
        "constant_pad_nd",
        "broadcast_to",
        "mT",
        "adjoint",
        "swapaxes",
        "swapdims",
        "pin_memory",
        "record_stream",
        "is_same_size",
    ]
)
# Shapes and scales may be read on the host from tensors this small (a seed, a length); data may not.
_SCALAR = 1


def foreign_ops(ops: Mapping[str, int]) -> list[str]:
    """Operations on tensor data that the candidate's own kernels should have done, as a person would name them.

    `ops` maps what the runner saw ("aten.mm.default", "Tensor.numpy") to the most elements it touched.
    """
    found = []
    for name, elements in sorted(ops.items()):
        kind, _, rest = name.partition(".")
        if kind == "Tensor":
            if rest in ("untyped_storage", "storage") or elements <= _SCALAR:
                continue
            found.append(f"Tensor.{rest}() on {elements} elements")
        elif kind == "aten":
            operation = rest.split(".")[0]
            if operation in _HOUSEKEEPING or (
                operation in ("_local_scalar_dense", "item") and elements <= _SCALAR
            ):
                continue
            found.append(f"torch.{operation} on {elements} elements")
        elif kind not in ("prim", "profiler"):
            found.append(f"{name} on {elements} elements")
    return found


# Kernels with which torch allocates, fills, copies and casts, and copies by the driver, as `_HOUSEKEEPING` allows.
_HOUSEKEEPING_KERNEL = re.compile(
    r"at6native.*(FillFunctor|copy_kernel|arange|CopyFunctor)|\((memcpy|memset)\)$"
)
# Names that only torch and NVIDIA's libraries give: such a kernel is nobody's own, whatever the runner says.
_LIBRARY_KERNEL = re.compile(
    r"at6native|at4cuda|cublas|cudnn|nvjet_|xmma_|cutlass_\d+_|cub\d*_?\d*_NS|nccl|cufft|cusparse"
)


def foreign_kernels(kernels: Iterable[GpuKernel]) -> list[str]:
    """What ran on the GPU and is neither the candidate's own kernel in its language nor housekeeping."""
    found = []
    for kernel in kernels:
        housekeeping = _HOUSEKEEPING_KERNEL.search(kernel.name)
        if not housekeeping and (not kernel.own or _LIBRARY_KERNEL.search(kernel.name)):
            share = "" if kernel.share is None else f" ({kernel.share:.0%} of the time)"
            found.append(f"GPU kernel {kernel.name[:120]}{share}")
    return found


def own_kernels(kernels: Iterable[GpuKernel]) -> list[str]:
    """Names of the candidate's own kernels among what ran on the GPU."""
    return [k.name for k in kernels if k.own and not _LIBRARY_KERNEL.search(k.name)]
