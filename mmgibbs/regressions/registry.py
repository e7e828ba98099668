"""Plugins by name: the entry-point group `mmgibbs.models`, where a third party's package enters its own."""

from __future__ import annotations

from importlib.metadata import entry_points

from mmgibbs.errors import ConfigError, nearest
from mmgibbs.regressions.protocol import Plugin

GROUP = "mmgibbs.models"


def plugin_names() -> list[str]:
    """The names of all plugins that are installed, sorted."""
    return sorted({point.name for point in entry_points(group=GROUP)})


def find_plugin(name: str) -> Plugin:
    """The plugin class of that name. ConfigError with the nearest names where there is none, or it cannot be
    imported.
    """
    points = {point.name: point for point in entry_points(group=GROUP)}
    if name not in points:
        known = nearest(name, sorted(points), "installed are")
        raise ConfigError(f"model.plugin: found '{name}', needed one of the installed regressions; {known}")
    try:
        return points[name].load()
    except Exception as error:  # a third party's module may fail in any way
        raise ConfigError(
            f"model.plugin: '{name}' is installed but cannot be loaded: {type(error).__name__}: {error}"
        ) from error
