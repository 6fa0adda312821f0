"""Serves a weights file with llama.cpp over HTTP on loopback: `python engine.py WEIGHTS CONTEXT THREADS`.

A process of its own, run as a file: it needs nothing of llmdsl. In the caller's process the engine's destructor would
wait for ever, with the interpreter locked, where it comes before the engine's loop runs or while it generates. It
prints one JSON line, {"address": …} or {"error": …}, and ends when its standard input does, so also when its parent
is killed.
"""

from __future__ import annotations

import json
import os
import sys


def serve(weights: str, context: int, threads: int) -> None:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = weights
    params.n_ctx = context
    params.n_parallel = 1
    params.warmup = False
    params.verbosity = -1
    params.cpuparams.n_threads = threads
    server = xllamacpp.Server(params)
    print(json.dumps({"address": server.listening_address}), flush=True)
    sys.stdin.read()
    os._exit(0)  # past the destructor


if __name__ == "__main__":
    try:
        serve(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    except Exception as failure:
        print(json.dumps({"error": f"{type(failure).__name__}: {failure}"}), flush=True)
        os._exit(1)
