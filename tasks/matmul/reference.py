import torch  # noqa: F401


def inputs(make, m, n, k, scale=1.0):
    return {"a": make.tensor((m, k), scale=scale), "b": make.tensor((k, n), scale=scale)}


def matmul(a, b):
    return a @ b


def magnitude(a, b):
    # Tensor cores drop bits when they align products: on an H200 the worst of 33 million sums of 14336 bfloat16 products
    # was 8 float32 roundings of |a| @ |b| off, where float32 arithmetic stays within 1.
    return 4 * (a.abs() @ b.abs())
