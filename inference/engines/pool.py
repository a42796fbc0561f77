"""Engines that several judges share: loaded once, closed when nobody needs them any more."""

from collections.abc import Callable, Iterable

from inference.engines.base import Engine, EngineConfig

BuildEngine = Callable[[EngineConfig], Engine]


class EnginePool:
    """Engines by their settings."""

    def __init__(self, build: BuildEngine) -> None:
        self._build = build
        self._open: dict[str, Engine] = {}

    def get(self, config: EngineConfig) -> Engine:
        """The engine of these settings. Raises UserError where it cannot be built."""
        key = _key(config)
        if key not in self._open:
            self._open[key] = self._build(config)
        return self._open[key]

    async def keep(self, configs: Iterable[EngineConfig]) -> None:
        """Close all engines but those of `configs`."""
        kept = {_key(config) for config in configs}
        for key in [key for key in self._open if key not in kept]:
            await self._open.pop(key).close()


def _key(config: EngineConfig) -> str:
    return EngineConfig.model_validate(
        {name: getattr(config, name) for name in EngineConfig.model_fields}
    ).model_dump_json()
