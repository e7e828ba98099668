"""Lists the counter and the key of every block of random numbers that a sampler draws.

`record(sources)` runs Python text in a process of its own, in which Philox tells a C function of each block it makes,
and the makers of NumPy's generators tell of each generator. Kernels are compiled with that call, and kept in a folder
apart from those of the program.

Two draws may share a block only if they are the two normals of a pair (`normal` of an even and of an odd number).
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

WORDS = ("sweep", "level", "stream", "draw", "seed", "chain")
WHOLE = 0  # tag of a block of which a draw takes everything; 1 and 2: an even or an odd normal alone
GENERATOR = 3  # of a generator of NumPy
CODE = """
#include <stdint.h>
#include <stdlib.h>
static uint32_t *entries, tag;
static uint64_t n, room;
#ifdef __cplusplus
extern "C" {
#endif
int32_t mmgibbs_tag_key(uint64_t value) { tag = 1 + (uint32_t)value; return 0; }
int32_t mmgibbs_record_key(uint64_t c0, uint64_t c1, uint64_t c2, uint64_t c3, uint64_t k0, uint64_t k1) {
    if (n == room) entries = (uint32_t *)realloc(entries, 28 * (room = 2 * room + 1024));
    uint32_t *at = entries + 7 * n++;
    at[0] = (uint32_t)c0; at[1] = (uint32_t)c1; at[2] = (uint32_t)c2; at[3] = (uint32_t)c3;
    at[4] = (uint32_t)k0; at[5] = (uint32_t)k1; at[6] = tag;
    tag = 0;
    return 0;
}
uint64_t mmgibbs_take_keys(const uint32_t **out) { uint64_t taken = n; *out = entries; n = 0; return taken; }
#ifdef __cplusplus
}
#endif
"""


def cache_folder() -> Path:
    """Where the C library and the kernels that call it are kept."""
    digest = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:12]
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "mmgibbs" / f"recorded-keys-{digest}"


def build_library(compiler: str) -> Path:
    """Compile the C functions, unless that was done before."""
    folder = cache_folder()
    library = folder / "record.so"
    if not library.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            code, made = Path(scratch) / "record.cpp", Path(scratch) / "record.so"
            code.write_text(CODE, encoding="utf-8")
            subprocess.run([compiler, "-O1", "-shared", "-fPIC", str(code), "-o", str(made)], check=True)
            made.replace(library)
    return library


def record(sources: dict[str, str], compiler: str, timeout: float = 600.0) -> dict[str, np.ndarray]:
    """(draws, 7) WORDS and tag of each of the named Python texts, run one after another in one process."""
    environment = os.environ | {
        "NUMBA_CACHE_DIR": str(cache_folder()),
        "NUMBA_OPT": "0",  # compiles several times faster
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "MMGIBBS_KEY_LIBRARY": str(build_library(compiler)),
    }
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-W", "ignore", __file__, folder]
        options = dict(input=json.dumps(sources), env=environment, capture_output=True, text=True, timeout=timeout)
        done = subprocess.run(command, check=False, **options)
        assert done.returncode == 0, done.stderr[-4000:]
        return {name: np.load(Path(folder) / f"{i}.npy") for i, name in enumerate(sources)}


def find_overlaps(entries: np.ndarray) -> np.ndarray:
    """The rows of counters that two draws share, each once."""
    order = np.lexsort(entries.T[::-1])
    rows = entries[order]
    same_block = np.all(rows[1:, :6] == rows[:-1, :6], axis=1)
    tags = rows[:, 6]
    is_generator = (tags[1:] == GENERATOR) == (tags[:-1] == GENERATOR)
    is_pair = (tags[:-1] == 1) & (tags[1:] == 2)
    return np.unique(rows[1:][same_block & is_generator & ~is_pair][:, :6], axis=0)


def _record_everything(library: str):
    """Replace Philox, the normals and the generators before any module that imports them; a function that takes what
    was recorded so far."""
    from llvmlite import binding
    from numba import types

    binding.load_library_permanently(library)
    functions = ctypes.CDLL(library)
    functions.mmgibbs_take_keys.restype = ctypes.c_uint64
    from mmgibbs.draws import generator, normal, philox
    from mmgibbs.pedigree.kernels import kernel

    tell = types.ExternalFunction("mmgibbs_record_key", types.int32(*[types.uint64] * 6))
    tag = types.ExternalFunction("mmgibbs_tag_key", types.int32(types.uint64))
    plain_philox, plain_normal, plain_generator = philox.philox, normal.normal, generator.make_generator
    word = philox.WORD

    @kernel(fastmath=False)
    def recorded_philox(c0, c1, c2, c3, k0, k1):
        tell(
            np.uint64(c0) & word, np.uint64(c1) & word, np.uint64(c2) & word, np.uint64(c3) & word,
            np.uint64(k0) & word, np.uint64(k1) & word,
        )  # fmt: skip
        return plain_philox(c0, c1, c2, c3, k0, k1)

    @kernel(fastmath=False)
    def recorded_normal(c0, c1, c2, j, k0, k1):
        tag(np.uint64(j) & np.uint64(1))
        return plain_normal(c0, c1, c2, j, k0, k1)

    generators = []

    def recorded_generator(number, level, stream, key):
        generators.append((number, level, stream, 0, *key, GENERATOR))
        return plain_generator(number, level, stream, key)

    philox.philox, normal.normal, generator.make_generator = recorded_philox, recorded_normal, recorded_generator

    def take() -> np.ndarray:
        address = ctypes.POINTER(ctypes.c_uint32)()
        n = functions.mmgibbs_take_keys(ctypes.byref(address))
        blocks = np.ctypeslib.as_array(address, (n, 7)).copy() if n else np.empty((0, 7), np.uint32)
        made, generators[:] = np.array(generators, np.int64).reshape(-1, 7), []
        return np.concatenate([blocks.astype(np.int64), made])

    return take


def main(folder: str) -> None:
    """Run the texts of standard input, and write what each has drawn."""
    take = _record_everything(os.environ["MMGIBBS_KEY_LIBRARY"])
    for i, (name, text) in enumerate(json.load(sys.stdin).items()):
        exec(compile(text, name, "exec"), {"__name__": f"recorded_{i}"})
        np.save(Path(folder) / f"{i}.npy", take())


if __name__ == "__main__":
    main(sys.argv[1])
