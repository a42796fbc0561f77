"""Engine for every OpenAI-compatible endpoint: the official API, other providers, and a vLLM server of your own.

Choices made here, once: the official API gets ``max_completion_tokens`` (its newer models demand it), servers named by
`base_url` get ``max_tokens`` (older ones know only that). Log-probabilities, seed and temperature are sent unless the
server has refused them: such a parameter is then left out for the rest of the engine's life, with one warning.
"""

import asyncio
import logging
import os
import time
from typing import Any

from inference import prompts
from inference.adapters import read_adapter
from inference.engines.base import EngineConfig, EngineError
from inference.engines.openai_answers import json_object, read_chat, read_text
from inference.engines.openai_errors import as_engine_error, refused_parameter
from inference.engines.vllm_server import ExactGrid
from inference.errors import UserError
from inference.records import Call, Completion

OFFICIAL_URL = "https://api.openai.com/v1"
CHAT_ALTERNATIVES = 20
TEXT_ALTERNATIVES = 5  # the most that the official completions endpoint gives
_OPTIONAL = ("top_logprobs", "logprobs", "seed", "temperature")

log = logging.getLogger(__name__)


class OpenAIEngine:
    """Answers calls over HTTP; retries belong to the runner."""

    def __init__(self, config: EngineConfig) -> None:
        self._config = config
        self._url = (config.base_url or OFFICIAL_URL).rstrip("/")
        self._official = config.base_url is None
        self._secret = _key(config)
        self._refused: set[str] = set()
        self._client: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None
        # The name holds the hash of the local adapter, so a server with another version of it knows no such model.
        self._model = read_adapter(config.adapter).served_name(config.model) if config.adapter else config.model
        self._exact = ExactGrid(self._url, self._model) if config.exact_grid else None

    @property
    def identity(self) -> dict[str, str]:
        """See `Engine`. A served adapter's name holds the hash of its content."""
        identity = {"engine": "openai", "base_url": self._url, "model": self._model}
        if self._config.reasoning_effort:
            identity["reasoning_effort"] = self._config.reasoning_effort
        return {**identity, "grid": "exact"} if self._exact else identity

    async def complete(self, call: Call) -> Completion:
        """See `Engine`."""
        started = time.monotonic()
        try:
            async with asyncio.timeout(self._config.timeout):
                completion = await self._answer(call)
        except EngineError:
            raise
        except UserError as error:
            raise EngineError(str(error)) from None
        except Exception as error:
            raise as_engine_error(error, self._url, self._model, self._secret) from None
        return completion.model_copy(update={"seconds": time.monotonic() - started})

    async def close(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None and self._loop is asyncio.get_running_loop():
            await client.close()

    async def _answer(self, call: Call) -> Completion:
        client = self._connected()
        if self._exact:
            call = await self._exact.defused(client, call)
            if call.grid:
                return await self._exact.complete(client, call)
        if call.prompt is not None:
            return read_text(call, await self._create(client, "/completions", self._text_request(call)))
        return read_chat(call, await self._create(client, "/chat/completions", self._chat_request(call)))

    def _connected(self) -> Any:
        """The client of the running event loop; connections can't move to another one."""
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            from openai import AsyncOpenAI, DefaultAioHttpClient

            self._loop = loop
            self._client = AsyncOpenAI(
                api_key=self._secret or "none",
                base_url=self._url,
                max_retries=0,
                timeout=self._config.timeout,
                http_client=DefaultAioHttpClient(timeout=self._config.timeout),
            )
        return self._client

    async def _create(self, client: Any, path: str, request: dict[str, Any]) -> dict[str, Any]:
        """The answer as a dict; asks again without a parameter that the server refuses."""
        # `post` in place of the client's typed methods, which take a quarter of a call's CPU time to look through the
        # request for files and aliases, and bound the calls per second.
        import openai

        while True:
            sent = {name: value for name, value in request.items() if name not in self._refused}
            try:
                answer = await client.post(path, cast_to=object, body=sent)
            except openai.BadRequestError as error:
                name = refused_parameter(error, tuple(name for name in _OPTIONAL if name in sent))
                if name is None:
                    raise
                self._refuse(name)
            else:
                return json_object(answer)

    def _refuse(self, name: str) -> None:
        names = {"logprobs", "top_logprobs"} if "logprobs" in name else {name}
        if not names <= self._refused:
            lost = "; scores have no distribution" if "logprobs" in name else ""
            log.warning("%s refuses %s for %s: left out from now on%s", self._url, name, self._model, lost)
        self._refused |= names

    def _request(self, call: Call) -> dict[str, Any]:
        limit = "max_completion_tokens" if self._official and call.messages is not None else "max_tokens"
        return {
            "model": self._model,
            "temperature": call.temperature,
            # The same content asked for again is another sample, so it needs another seed.
            "seed": call.seed + call.repeat,
            limit: call.max_tokens,
        }

    def _text_request(self, call: Call) -> dict[str, Any]:
        request = {**self._request(call), "prompt": prompts.defuse(call.prompt or "")}
        return {**request, "logprobs": TEXT_ALTERNATIVES} if call.grid else request

    def _chat_request(self, call: Call) -> dict[str, Any]:
        request = {**self._request(call), "messages": [message.model_dump() for message in call.messages or ()]}
        if call.json_schema is not None:
            schema = {"name": "answer", "strict": True, "schema": call.json_schema}
            request["response_format"] = {"type": "json_schema", "json_schema": schema}
        if self._config.reasoning_effort:
            request["reasoning_effort"] = self._config.reasoning_effort
        if self._exact:
            request.update(self._exact.chat_options(call))
        elif call.grid or call.json_schema is not None:
            request.update(logprobs=True, top_logprobs=CHAT_ALTERNATIVES)
        return request


def _key(config: EngineConfig) -> str:
    """The API key, or "" for a server that needs none.

    A server named by `base_url` gets a key only where `api_key_env` was set for it, so that the key of the official
    API never goes elsewhere by default.
    """
    key = os.environ.get(config.api_key_env, "")
    if config.base_url is None and not key:
        raise UserError(
            f"model {config.model}: the environment variable {config.api_key_env} is not set; export your key in it, "
            "or give base_url for a server that needs none"
        )
    if config.base_url is not None and "api_key_env" not in config.model_fields_set:
        return ""
    return key
