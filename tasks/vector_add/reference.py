import torch  # noqa: F401


def inputs(make, rows, cols, transposed_b=False):
    return {
        "a": make.tensor((rows, cols)),
        "b": make.tensor((rows, cols), layout="transposed" if transposed_b else None),
    }


def vector_add(a, b):
    return a + b
