"""Failures of an OpenAI-compatible server as `EngineError`: what may be tried again, after how long, in which words."""

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from inference.engines.base import EngineError

_RETRYABLE = frozenset({408, 409, 429})
_UNSUPPORTED = re.compile(r"support|unknown|unrecogni[sz]ed|unexpected|not (?:permitted|allowed)|extra", re.IGNORECASE)


def as_engine_error(error: Exception, url: str, model: str, secret: str) -> EngineError:
    """`error` of the openai client as an EngineError whose text never holds `secret`, the key."""
    import openai

    if isinstance(error, openai.APIStatusError):
        return _status_error(error, url, model, secret)
    # The aiohttp transport calls a refused connection a ConnectTimeout.
    connected = type(error.__cause__).__name__ != "ConnectTimeout"
    if isinstance(error, TimeoutError | openai.APITimeoutError) and connected:
        return EngineError(f"{url} did not answer in time; raise `timeout` or lower `concurrency`", retryable=True)
    if isinstance(error, openai.APIConnectionError):
        cause = error.__cause__ or error
        reason = _clean(f"{type(cause).__name__}: {cause}", secret)
        return EngineError(f"{url} cannot be reached ({reason}); is the server running?", retryable=True)
    # The body was no answer of the protocol: a proxy's page, a cut-off text.
    reason = _clean(str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}", secret)
    return EngineError(
        f"{url} sent something that is not an answer of the OpenAI protocol ({reason}); check base_url, which usually "
        "ends in /v1",
        retryable=True,
    )


def _status_error(error: Any, url: str, model: str, secret: str) -> EngineError:
    status = int(error.status_code)
    said = _clean(_message(error), secret)
    if status == 401:
        # The official API repeats parts of the key in this message, so the message stays out.
        return EngineError(f"{url} refused the key (401): check the environment variable named by api_key_env")
    if status == 403:
        return EngineError(f"{url} forbids this call (403): the key has no right to model {model}")
    if status == 404:
        return EngineError(f"{url} has no model {model} (404): {said}")
    if status == 429 and getattr(error, "code", None) == "insufficient_quota":
        return EngineError(f"{url}: the account's quota is used up (429): {said}")
    if status in _RETRYABLE or status >= 500:
        return EngineError(
            f"{url} answered {status}: {said}", retryable=True, retry_after=retry_after(error.response.headers)
        )
    return EngineError(f"{url} refused the call ({status}): {said}")


def retry_after(headers: Any, now: datetime | None = None) -> float | None:
    """Seconds (at least 0) that a Retry-After header asks to wait, in seconds or as an HTTP date; else None."""
    value = headers.get("retry-after")
    if not value:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - (now or datetime.now(UTC))).total_seconds())


def refused_parameter(error: Any, parameters: tuple[str, ...]) -> str | None:
    """The one of `parameters` that a 400 answer says the server or model doesn't take, if any.

    Anything said against log-probabilities counts, because a score can be read without them; a seed or temperature
    that is merely out of range doesn't.
    """
    said = f"{getattr(error, 'param', None) or ''} {_message(error)}"
    named = (name for name in parameters if name in said)
    return next((name for name in named if "logprobs" in name or _UNSUPPORTED.search(said)), None)


def _message(error: Any) -> str:
    """The server's own words."""
    body = error.body
    if isinstance(body, dict):
        inner = body.get("error", body)
        if isinstance(inner, dict) and inner.get("message"):
            return str(inner["message"])
    return str(error.message)


def _clean(text: str, secret: str) -> str:
    text = " ".join(text.split())
    if secret:
        text = text.replace(secret, "***")
    return text if len(text) <= 300 else text[:297] + "..."
