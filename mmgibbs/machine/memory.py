"""How much memory is free and was used, and a refusal before it runs out."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from mmgibbs.errors import DeviceError

resource: ModuleType | None
try:
    import resource
except ImportError:  # Windows
    resource = None

# (mount point, limit, use, use that the system gives back when asked) of a group's memory, versions 2 and 1
_GROUPS = (
    ("/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"),
    ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


def free_bytes() -> int | None:
    """Memory free on the machine and within a container's limit, without swapping; None where nothing says."""
    known = [b for b in (_free_on_machine(), *_free_in_groups()) if b is not None]
    return max(0, min(known)) if known else None


def peak_bytes() -> int:
    """The most memory that this process has held so far (resident size), in bytes; 0 where nothing says.

    Linux's own figure counts from the start of the program. `getrusage` begins with that of the process that started
    this one.
    """
    known = _numbers(Path("/proc/self/status"), 1024).get("VmHWM")
    if known is not None:
        return known
    if resource is not None:
        peak: int = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
    try:
        import psutil
    except ImportError:
        return 0
    return int(getattr(psutil.Process().memory_info(), "peak_wset", 0))


def fits_into_free(needed: int) -> bool:
    """Check whether so many bytes are free; true where this is unknown."""
    free = free_bytes()
    return free is None or needed <= free


def refuse_beyond_free(needed: int, what: str, advice: str) -> None:
    """A DeviceError with the numbers where `what` needs more bytes than are free."""
    free = free_bytes()
    if free is not None and needed > free:
        raise DeviceError(f"memory: {what} needs about {_shown(needed)}, found {_shown(free)} free; needed {advice}")


def _shown(n: int) -> str:
    return f"{n / 1e9:,.1f} GB" if n >= 1e9 else f"{n / 1e6:,.1f} MB"


def _free_on_machine() -> int | None:
    """Return the free memory by Linux; elsewhere by psutil, where it is installed."""
    known = _numbers(Path("/proc/meminfo"), 1024).get("MemAvailable")
    if known is not None:
        return known
    try:
        import psutil
    except ImportError:
        return None
    return int(psutil.virtual_memory().available)


def _free_in_groups() -> Iterator[int]:
    """Yield the free memory within the limits of this process's groups.

    Those are the limits that can be seen: a container may show its group at its root.
    """
    try:
        lines = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    paths = {"", *(line.split(":", 2)[2] for line in lines if line.count(":") >= 2)}
    for mount, limit, use, reclaimable in _GROUPS:
        for path in paths:
            folder = Path(mount + path.rstrip("/"))
            try:
                limited, used = (int((folder / name).read_text(encoding="utf-8")) for name in (limit, use))
            except (OSError, ValueError):  # no such group, or no limit ('max')
                continue
            yield limited - used + _numbers(folder / "memory.stat", 1).get(reclaimable, 0)


def _numbers(path: Path, unit: int) -> dict[str, int]:
    """'name: 12 kB' or 'name 12' lines -> name -> bytes."""
    try:
        fields = [line.replace(":", " ").split() for line in path.read_text(encoding="utf-8").splitlines()]
    except OSError:
        return {}
    return {f[0]: int(f[1]) * unit for f in fields if len(f) > 1 and f[1].isdigit()}
