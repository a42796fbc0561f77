"""Engines turn a `Call` into a `Completion`. All are interchangeable behind one small protocol."""

from inference.engines.base import Engine, EngineConfig, build_engine

__all__ = ["Engine", "EngineConfig", "build_engine"]
