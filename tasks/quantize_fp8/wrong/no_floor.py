"""Divides by the largest magnitude even where it is 0."""
import torch


def quantize_fp8(x):
    x = x.float()
    scale = x.abs().amax(-1) / 448
    return (x / scale[:, None]).clamp(-448, 448).to(torch.float8_e4m3fn), scale
