"""The first run after an install or an upgrade says that it compiles kernels; other first runs wait for them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mmgibbs.machine.compiling import compiling_message
from mmgibbs.pedigree.kernel_store import kernel_store
from mmgibbs.runs.progress import Console

SAMPLED_ONLY = "draw_inverse_wishart"  # a kernel that sampling has and `mmgibbs check` has not


@contextmanager
def first_run(console: Console, is_sampled: bool) -> Iterator[None]:
    """Announce compiling where the kernels of such a run are not kept yet, and let other first runs wait for it."""
    store = kernel_store()
    name = SAMPLED_ONLY if is_sampled else ""
    if store.has_kernel(name):
        try:
            yield
        finally:
            store.save()
        return
    console.say(compiling_message())
    with store.first_run():
        yield
