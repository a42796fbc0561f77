"""Where facts come from: a local store of N-Triples, or a SPARQL endpoint. Both answer the same queries."""

import http.client
import json
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any, Protocol

from tenacity import Retrying, retry_if_exception, stop_after_attempt

from inference.asking import seconds_to_wait
from inference.engines.base import EngineError
from inference.errors import UserError, quoted

TIMEOUT = 60.0
"""Seconds an endpoint has for an answer."""
TRIES = 4
MOST_BYTES = 50_000_000
"""Of an endpoint's answer."""
USER_AGENT = "creajudge (building of benchmark queries)"
PASSING = (408, 429, 500, 502, 503, 504)
"""HTTP statuses after which the same request may succeed."""
Row = dict[str, str]
"""Variable → IRI, or text of a literal."""


class Graph(Protocol):
    """Anything that answers SPARQL."""

    name: str
    """For messages."""

    def select(self, query: str) -> list[Row]:
        """The rows of a SELECT query. Raises UserError where there is no answer."""
        ...


class LocalGraph:
    """A store in memory, loaded from an N-Triples file."""

    def __init__(self, path: Path) -> None:
        """Raises UserError for a file that cannot be read, and where pyoxigraph is missing."""
        self.name = str(path)
        try:
            import pyoxigraph
        except ImportError:
            raise UserError(
                "a local store needs the package pyoxigraph, which is missing: pip install -e '.[create]' installs it; "
                "or build from an endpoint with --endpoint"
            ) from None
        if not path.is_file():
            raise UserError(f"{path}: no such file; --store needs an N-Triples file (relative to {Path.cwd()})")
        self._store: Any = pyoxigraph.Store()
        try:
            self._store.load(path=str(path), format=pyoxigraph.RdfFormat.N_TRIPLES)
        except (SyntaxError, OSError, ValueError) as error:
            reason = error.msg if isinstance(error, SyntaxError) else error
            raise UserError(f"{path}: not a readable N-Triples file ({reason})") from None

    def select(self, query: str) -> list[Row]:
        found = self._store.query(query)
        names = [variable.value for variable in found.variables]
        return [
            {name: value.value for name in names if (value := solution[name]) is not None and hasattr(value, "value")}
            for solution in found
        ]


def _is_address(url: str) -> bool:
    try:
        parts = urllib.parse.urlsplit(url)
        _ = parts.port  # raises for what is none
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and url.isprintable() and " " not in url


class Endpoint:
    """A SPARQL endpoint over HTTP, asked one query at a time."""

    def __init__(self, url: str, *, timeout: float = TIMEOUT, tries: int = TRIES) -> None:
        """`timeout`: seconds per try. Raises UserError for what is no http(s) address."""
        if not _is_address(url):
            raise UserError(f"--endpoint {quoted(url)}: needs an http or https address of a SPARQL endpoint")
        self.name, self._timeout, self._tries = url, timeout, tries

    def select(self, query: str) -> list[Row]:
        attempts = Retrying(
            retry=retry_if_exception(lambda error: isinstance(error, EngineError) and error.retryable),
            stop=stop_after_attempt(self._tries),
            wait=seconds_to_wait,
            reraise=True,
        )
        try:
            return _rows(attempts(self._ask, query))
        except EngineError as error:
            tried = f" after {self._tries} tries" if error.retryable else ""
            raise UserError(
                f"the SPARQL endpoint {self.name} gave no answer{tried} ({error}); check the address and the network, "
                "ask for less (name `classes`, lower the limits), or build from a local store with --store"
            ) from None

    def _ask(self, query: str) -> bytes:
        # GET, so that caches between can answer; the queries here are short enough for an address.
        address = f"{self.name}{'&' if '?' in self.name else '?'}{urllib.parse.urlencode({'query': query})}"
        headers = {"Accept": "application/sparql-results+json", "User-Agent": USER_AGENT}
        request = urllib.request.Request(address, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=self._timeout) as answer:
                content: bytes = answer.read(MOST_BYTES + 1)
        except urllib.error.HTTPError as error:
            with error:
                wait = error.headers.get("Retry-After") or ""
            after = float(wait) if wait.isdecimal() else None
            raise EngineError(f"HTTP {error.code}", retryable=error.code in PASSING, retry_after=after) from None
        except (OSError, ValueError, http.client.HTTPException) as error:
            # URLError wraps the reason; a time-out while reading, and what is no HTTP, come bare.
            raise EngineError(str(getattr(error, "reason", error)) or type(error).__name__, retryable=True) from None
        if len(content) > MOST_BYTES:
            raise EngineError(f"more than {MOST_BYTES:,} bytes")
        return content


def _rows(content: bytes) -> list[Row]:
    """SPARQL results in JSON. Raises EngineError for anything else."""
    try:
        bindings = json.loads(content)["results"]["bindings"]
        return [{name: str(term["value"]) for name, term in row.items()} for row in bindings]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise EngineError(f"no SPARQL results in JSON: {quoted(content[:80].decode('utf-8', 'replace'))}") from None
