"""CUDA C++ as nvcc compiles it."""

from .nvcc import Nvcc

BACKEND = Nvcc()
