"""One call of a candidate, recorded as a CUDA graph: which kernels it runs, and what it is without some of them.

(CUDA driver API, section "Graph Management".)
"""

from __future__ import annotations

import ctypes as c
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from .cuda import CudaError, driver

_KERNEL, _CHILD_GRAPH = 0, 4
_NODE_TYPES = {1: "memcpy", 2: "memset", 3: "host callback", 4: "child graph", 5: "empty", 6: "event wait",
               7: "event record", 10: "allocation", 11: "free", 13: "conditional"}  # fmt: skip
# Nodes that order others and do nothing themselves.
_SILENT = {5, 6, 7, 10, 11}


class _KernelParameters(c.Structure):
    """CUDA_KERNEL_NODE_PARAMS_v2."""

    _fields_ = (
        ("function", c.c_void_p), ("grid", c.c_uint * 3), ("block", c.c_uint * 3), ("shared_bytes", c.c_uint),
        ("parameters", c.c_void_p), ("extra", c.c_void_p), ("kernel", c.c_void_p), ("context", c.c_void_p),
    )  # fmt: skip


class NotRecorded(Exception):
    """The call cannot be captured: it synchronises, allocates outside torch, or reads data on the host."""


class Recording:
    """A call captured into a CUDA graph. The call must have run before, so that nothing lazy is left in it.

    `outputs` is what the captured call returned; it holds values after `replay()`. Raises NotRecorded with the reason.
    """

    def __init__(self, call: Callable[[], Any]):
        self._graph = torch.cuda.CUDAGraph(keep_graph=True)
        torch.cuda.synchronize()
        try:
            with torch.cuda.graph(self._graph, stream=torch.cuda.Stream()):
                self.outputs = call()
            self._graph.instantiate()
        except Exception as error:
            torch.cuda.synchronize()
            text = f"the call cannot be recorded as a CUDA graph: {type(error).__name__}: {error}"
            raise NotRecorded(text[:400]) from error
        self._nodes: dict[str, list[int]] = {}
        """Kernel name, or kind of node in parentheses → its nodes, in the graph's own order."""
        for node, name in _walk(self._graph.raw_cuda_graph()):
            self._nodes.setdefault(name, []).append(node)

    @property
    def kernels(self) -> list[str]:
        """Names of what the call runs on the GPU. Copies and the like stand in parentheses: "(memcpy)"."""
        return list(self._nodes)

    def replay(self) -> None:
        """Runs everything again on the current stream; does not wait."""
        self._graph.replay()

    def shares(self, repeats: int = 5) -> dict[str, float]:
        """Each kernel's share of the call's device time, from replays in which it runs alone. Sums to 1."""
        if len(self._nodes) == 1:
            return dict.fromkeys(self._nodes, 1.0)
        with self.without(set(self._nodes)):
            nothing = self._shortest_us(repeats)
        alone = {}
        for name in self._nodes:
            with self.without(set(self._nodes) - {name}):
                # What a replay costs without any kernel is nobody's.
                alone[name] = max(0.01, self._shortest_us(repeats) - nothing)
        total = sum(alone.values())
        return {name: microseconds / total for name, microseconds in alone.items()}

    @contextmanager
    def without(self, names: set[str]) -> Iterator[None]:
        """Inside, replays leave these kernels out: the nodes stay and do nothing."""
        left_out = [node for name in names for node in self._nodes[name]]
        self._enable(left_out, False)
        try:
            yield
        finally:
            self._enable(left_out, True)

    def _enable(self, nodes: list[int], enabled: bool) -> None:
        executable = c.c_void_p(self._graph.raw_cuda_graph_exec())
        for node in nodes:
            try:
                driver().cuGraphNodeSetEnabled(executable, c.c_void_p(node), c.c_uint(enabled))
            except CudaError:
                continue  # only kernels, copies and memsets of the top level can be left out

    def _shortest_us(self, repeats: int) -> float:
        events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(repeats)]
        for start, end in events:
            start.record()
            self.replay()
            end.record()
        torch.cuda.synchronize()
        return min(start.elapsed_time(end) * 1e3 for start, end in events)


def _walk(graph: int) -> Iterator[tuple[int, str]]:
    """(node, kernel name or kind of node) of everything in a graph that works; graphs inside it are looked into."""
    count = c.c_size_t()
    driver().cuGraphGetNodes(c.c_void_p(graph), None, c.byref(count))
    nodes = (c.c_void_p * count.value)()
    driver().cuGraphGetNodes(c.c_void_p(graph), nodes, c.byref(count))
    for node in nodes:
        kind = c.c_int()
        driver().cuGraphNodeGetType(c.c_void_p(node), c.byref(kind))
        if kind.value == _KERNEL:
            yield node, _kernel_name(node)
        elif kind.value == _CHILD_GRAPH:
            child = c.c_void_p()
            driver().cuGraphChildGraphNodeGetGraph(c.c_void_p(node), c.byref(child))
            yield from _walk(child.value or 0)
        elif kind.value not in _SILENT:
            yield node, f"({_NODE_TYPES.get(kind.value, f'node of type {kind.value}')})"


def _kernel_name(node: int) -> str:
    parameters, name = _KernelParameters(), c.c_char_p()
    driver().cuGraphKernelNodeGetParams_v2(c.c_void_p(node), c.byref(parameters))
    if parameters.function:
        driver().cuFuncGetName(c.byref(name), c.c_void_p(parameters.function))
    else:
        driver().cuKernelGetName(c.byref(name), c.c_void_p(parameters.kernel))
    return (name.value or b"?").decode(errors="replace")[:400]


def profiled(call: Callable[[], Any]) -> tuple[Any, list[str]]:
    """(what the call returns, names of the kernels it ran) by CUPTI: for calls that cannot be recorded."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        outputs = call()
        torch.cuda.synchronize()
    names = {event.name for event in seen.events() if event.device_type == torch.autograd.DeviceType.CUDA}
    return outputs, sorted(_as_nodes(name) for name in names)


def _as_nodes(name: str) -> str:
    """The profiler's words for copies and memsets → a recording's."""
    for start, kind in (("Memcpy", "(memcpy)"), ("Memset", "(memset)")):
        if name.startswith(start):
            return kind
    return name[:400]
