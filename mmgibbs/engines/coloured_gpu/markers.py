"""SNP effects on a device: genotypes stay there as they are stored, effects, s and g are brought over for each sweep.

A sweep is one cooperative kernel (kernels/markers.cu), bit for bit that of the CPU. What the prior of the effects
depends on is drawn by the host, so that every prior has its sweep here.
"""

from __future__ import annotations

import weakref
from functools import partial

import numpy as np

from mmgibbs.draws.source import cuda_source
from mmgibbs.engines.coloured_gpu.device_state import DeviceState
from mmgibbs.engines.coloured_gpu.source import FOLDER, REAL
from mmgibbs.engines.device_sweep import ClassDraws, SiteDraws, StateDraws
from mmgibbs.engines.markers import weights_of_animals
from mmgibbs.machine.device import Argument, DeviceArray, make_struct
from mmgibbs.machine.gpu_queue import GpuQueue
from mmgibbs.machine.intrinsics import CHUNK
from mmgibbs.models.design import Design

DRAWS = ("OneTrait", "StatesOfTraits", "SitesOfTraits")
BLOCK, THREADS = 64, 512  # SNPs of a block, and threads of a sweep, as in markers.cu
UPLOADED_BYTES = 1 << 26  # of genotypes at once
GENOTYPES = {np.uint32: "Packed", np.uint8: "Fixed", np.float32: "Real"}
PASSES = ("sum_by_animal", "move_records_of_animals", "subtract_offsets")


def marker_source(real: np.dtype, pattern: np.dtype) -> str:
    """The text of the kernels of SNP effects: types as in source.source."""
    small = np.dtype(pattern) == np.uint8
    types = f"typedef {REAL[np.dtype(real)]} REAL;\ntypedef unsigned {'char' if small else 'int'} PATTERN;\n"
    return cuda_source("rounds", "elementary") + types + (FOLDER / "markers.cu").read_text(encoding="utf-8")


def sweep_name(genotypes: np.dtype, draws: str) -> str:
    """C++ name of the sweep over genotypes that are stored so."""
    return f"mmgibbs::all_rounds<mmgibbs::EffectSweep<mmgibbs::{GENOTYPES[genotypes.type]}, mmgibbs::{draws}>>"


def marker_bytes(design: Design, real: np.dtype) -> int:
    """Device memory that the SNP effects of a design take."""
    patterns, total = len(design.patterns), 0
    for m in design.markers:
        p, n = m.n_snps, -(-m.n_recorded // CHUNK) * CHUNK
        T = 1 if m.joint is None else len(m.joint.traits)
        n_classes = max(2, len(m.prior.options.get("classes", ())) if m.joint is None else len(m.joint.pi))
        total += 8 * n + design.n_records * (real.itemsize + 8)
        if m.first:
            genotypes = p * (n // CHUNK) * m.genotypes.array[:1, :1].nbytes
            total += genotypes + 4 * patterns * (p + BLOCK) * BLOCK + T * (T + 1) * n * real.itemsize + 8 * T * n
            total += p * (8 * (5 * T + n_classes) + 4 * n_classes + 17) + 8 * n_classes * T * (3 * T + 4)
    return total


class RecordsOfAnimals:
    """The records of the animals of SNP effects on one trait, `number` of the design, on the device of the engine."""

    def __init__(self, engine: DeviceState, number: int):
        self.engine: DeviceState = weakref.proxy(engine)  # which keeps this object
        self.queue, records = engine.queue, engine.equations.records
        markers = engine.equations.design.markers[number]
        animal = markers.animal[records.record].astype(np.int32)
        n, n_animals = len(animal), -(-markers.n_recorded // CHUNK) * CHUNK
        order = np.flatnonzero(animal >= 0)
        order = order[np.argsort(animal[order], kind="stable")]
        first = np.searchsorted(animal[order], np.arange(n_animals + 1))
        self.offset = self.queue.empty(n, engine.real)
        self._values = self.queue.empty(n_animals, np.float64)
        lists = {"animal": animal, "ptr": first.astype(np.uint32), "record": order.astype(np.uint32)}
        fields = {
            name: self.queue.address(engine.shared.find(("animals", number, name), partial(self.queue.upload, array)))
            for name, array in lists.items()
        }
        of_records = {name: int(engine.resident.records[name][0]) for name in ("e", "pattern", "weight", "Rinv")}
        self.struct = make_struct(
            **of_records,
            **fields,
            offset=self.queue.address(self.offset),
            n=np.uint32(n),
            animals=np.uint32(n_animals),
            trait=np.int32(markers.trait),
            T=np.int32(engine.equations.design.n_traits),
        )
        self.n_blocks, self.n_animal_blocks = -(-n // 128), -(-n_animals // 128)

    def sum(self) -> np.ndarray:
        """Wait for the sums of the animals, (animals,): see state.MarkerPasses."""
        self.engine.launch_blocks("mmgibbs::sum_by_animal", self.n_animal_blocks, self.struct, self._values)
        return self.queue.read(self._values)

    def move(self, g: np.ndarray) -> None:
        """Move the breeding values to g: see state.MarkerPasses."""
        self.queue.write(self._values, g)
        self.engine.launch_blocks("mmgibbs::move_records_of_animals", self.n_blocks, self.struct, self._values)

    def subtract(self) -> None:
        """Take the breeding values off the residuals, which were made without them."""
        self.engine.launch_blocks("mmgibbs::subtract_offsets", self.n_blocks, self.struct)


class ResidentMarkerPasses:
    """Passes over the records for every term of SNP effects, on the device of the engine: see state.MarkerPasses."""

    def __init__(self, engine: DeviceState):
        self.equations, self.queue = engine.equations, engine.queue
        self.records = [RecordsOfAnimals(engine, m) for m in range(len(self.equations.design.markers))]

    def sum_by_animal(self, markers: int, n: int) -> np.ndarray:
        """Sum residuals by animal: see state.MarkerPasses."""
        return self.records[markers].sum()

    def weigh_animals(self, markers: int, n: int) -> np.ndarray:
        """Sum the weights of animals: see state.MarkerPasses."""
        return weights_of_animals(self.equations.design, self.equations.records, markers, n)

    def move_breeding_values(self, markers: int, g: np.ndarray) -> None:
        """Move the breeding values to g: see state.MarkerPasses."""
        self.records[markers].move(g)

    def subtract_offsets(self) -> None:
        """Take the breeding values off the residuals, which were made without them."""
        for records in self.records:
            records.subtract()

    def state_arrays(self) -> dict[str, np.ndarray]:
        """The offsets, by name: waits."""
        return {f"offset.{i}": self.queue.read(records.offset) for i, records in enumerate(self.records)}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        for i, records in enumerate(self.records):
            self.queue.write(records.offset, state[f"offset.{i}"])


class ResidentEffects:
    """The effects of SNPs on T traits with one prior on a device, between the arrays of the sampler.

    number: of these effects among those of the model; genotypes (p, chunks, ..) of a store with `values` (p, 4); grams
    (patterns, blocks, BLOCK, BLOCK); n_classes: of the SNPs.
    """

    def __init__(
        self,
        engine: DeviceState,
        number: int,
        genotypes: np.ndarray,
        values: np.ndarray,
        grams: np.ndarray,
        n_traits: int,
        n_classes: int,
    ):
        assert grams.shape[2] == BLOCK, "as in markers.cu"
        self.queue: GpuQueue = engine.queue
        self.p, self.chunks, self.T, self.n_classes = len(genotypes), genotypes.shape[1], n_traits, n_classes
        self.n = self.chunks * CHUNK
        self._type, self._text = genotypes.dtype, marker_source(engine.real, engine.equations.records.pattern.dtype)
        share = lambda name, upload: engine.shared.find((name, number), upload)
        self._genotypes = share("genotypes", lambda: self._upload_genotypes(genotypes))
        self._grams = share("grams", lambda: self.queue.upload(grams))
        self._numbers = share("values", lambda: self.queue.upload(np.ascontiguousarray(values)))
        self._classes = self.queue.empty(self.p, np.int8)
        self._chances = self.queue.empty((self.p, n_classes), np.float32)
        self._sums = self.queue.empty((1 + self.T) * self.T * self.n, engine.real)  # s, then d
        self._right = self.queue.empty(2 * self.T * BLOCK, np.float64)  # and changes
        self._arrived = self.queue.empty(1, np.uint32)
        self._doubles: DeviceArray | None = None
        self._inside: DeviceArray | None = None
        self._traits_of_states: list[DeviceArray] = []
        self._n_patterns, self._n_blocks = grams.shape[:2]
        self._kernels: dict = {}

    def _upload_genotypes(self, genotypes: np.ndarray) -> DeviceArray:
        """Upload the genotypes some SNPs at a time: the file that they are mapped from may be longer than memory."""
        buffer = self.queue.empty(genotypes.shape, genotypes.dtype)
        step = max(1, UPLOADED_BYTES // max(1, genotypes[:1].nbytes))
        for first in range(0, self.p, step):
            self.queue.write(buffer[first : first + step], np.ascontiguousarray(genotypes[first : first + step]))
        return buffer

    def draw(
        self,
        Q: np.ndarray,
        animals: tuple[np.ndarray, np.ndarray, np.ndarray],
        a: np.ndarray,
        draws: ClassDraws | StateDraws | SiteDraws,
        is_backward: bool = False,
    ) -> float:
        """The sweep of sampler/markers/sweep.py; log ratio of the prior and the one that is compared."""
        given = {"a": a, "g": animals[2], "log_ratio": np.zeros(1), "Q": Q, "z": draws.z, "u": draws.u}
        match draws:
            case ClassDraws():
                name, (fields, struct) = "OneTrait", self._draws_on_one_trait(draws, given)
            case StateDraws():
                name, (fields, struct) = "StatesOfTraits", self._draws_of_states(draws, given)
            case SiteDraws():
                name, (fields, struct) = "SitesOfTraits", self._draws_of_sites(draws, given)
        self._sweep(name, struct, fields["g"], animals, is_backward)
        log_ratio = self._read(a, animals)
        is_of_normals = isinstance(draws, ClassDraws) and not draws.prior[1].size
        is_compared = isinstance(draws, ClassDraws) and draws.compared[1].size
        if not is_of_normals:
            draws.classes[:] = self.queue.read(self._classes)
        if not is_of_normals and not is_compared:
            draws.chances[:] = self.queue.read(self._chances)
        if isinstance(draws, SiteDraws):
            assert self._inside is not None
            draws.inside[:] = self.queue.read(self._inside)
        return log_ratio

    def _draws_on_one_trait(self, draws: ClassDraws, given: dict) -> tuple[dict[str, int], np.ndarray]:
        """Write the arrays of the host and return their addresses, with struct OneTrait of markers.cu."""
        (variance, log_share), (other_variance, other_log_share) = draws.prior, draws.compared
        fields = self._write(
            **given, variance=variance, log_share=log_share, others=other_variance, shares=other_log_share
        )
        classes, chances = map(self.queue.address, (self._classes, self._chances))
        return fields, make_struct(
            grams=self._gram_struct(fields["Q"]),
            prior=_prior(fields["variance"], fields["log_share"], draws.prior),
            compared=_prior(fields["others"], fields["shares"], draws.compared),
            a=fields["a"],
            of_class=classes,
            chances=0 if other_log_share.size else chances,
            z=fields["z"],
            u=fields["u"],
            log_ratio=fields["log_ratio"],
        )

    def _draws_of_states(self, draws: StateDraws, given: dict) -> tuple[dict[str, int], np.ndarray]:
        """Write the arrays of the host and return their addresses, with struct StatesOfTraits."""
        T, K = self.T, self.n_classes
        traits, n_traits, precision, log_weight = draws.states
        work = {"weight": np.empty(2 * K), "L": np.empty(K * T * T), "half": np.empty(K * T)}
        fields = self._write(**given, **self._work(), precision=precision, log_weight=log_weight, **work)
        if not self._traits_of_states:
            self._traits_of_states = [self.queue.upload(lists.astype(np.int32)) for lists in (traits, n_traits)]
        lists = dict(zip(("traits", "n_traits"), map(self.queue.address, self._traits_of_states), strict=True))
        addresses = {name: fields[name] for name in ("precision", "log_weight", "u", *work)}
        return fields, make_struct(of=self._several_traits(fields), **lists, **addresses)

    def _draws_of_sites(self, draws: SiteDraws, given: dict) -> tuple[dict[str, int], np.ndarray]:
        """Write the arrays of the host and return their addresses, with struct SitesOfTraits."""
        arrays = dict(zip(("inverse", "given", "noise", "log_pi"), draws.sites, strict=True))
        arrays |= {"z_outside": draws.z_outside}
        fields = self._write(**given, **self._work(), b=np.empty(self.T), **arrays)
        self.queue.write(self._classes, draws.classes)
        if self._inside is None:
            self._inside = self.queue.empty(draws.inside.shape, np.float32)
        addresses = {name: fields[name] for name in (*arrays, "u")} | {"inside": self.queue.address(self._inside)}
        return fields, make_struct(of=self._several_traits(fields), **addresses, b=fields["b"])

    def _work(self) -> dict[str, np.ndarray]:
        """Space for draws of a SNP on several traits."""
        return {"C": np.empty(self.T * self.T), "q": np.empty(self.T), "drawn": np.empty(self.T)}

    def _several_traits(self, fields: dict[str, int]) -> np.void:
        """struct SeveralTraits of markers.cu."""
        state, chances = map(self.queue.address, (self._classes, self._chances))
        addresses = {name: fields[name] for name in ("z", "C", "q", "drawn")}
        held = {"a": fields["a"], "state": state, "chances": chances}
        sizes = {"T": np.int32(self.T), "K": np.int32(self.n_classes)}
        return make_struct(grams=self._gram_struct(fields["Q"]), **held, **addresses, **sizes)[0]

    def _gram_struct(self, Q: int) -> np.void:
        sizes = {"patterns": np.int32(self._n_patterns), "blocks": np.int32(self._n_blocks)}
        return make_struct(G=self.queue.address(self._grams), Q=Q, **sizes)[0]

    def _write(self, **arrays: np.ndarray) -> dict[str, int]:
        """Bring arrays of float64 over, one after another; where each lies. a, g and log_ratio are the first."""
        parts = [np.asarray(array, np.float64).ravel() for array in arrays.values()]
        values = np.concatenate(parts)
        if self._doubles is None or self._doubles.size < values.size:
            self._doubles = self.queue.empty(values.size, np.float64)
        self.queue.write(self._doubles[: values.size], values)
        first = self.queue.address(self._doubles) + 8 * np.cumsum([0, *map(len, parts[:-1])])
        return dict(zip(arrays, first.tolist(), strict=True))

    def _sweep(self, draws_name: str, draws: np.ndarray, g: int, animals: tuple, is_backward: bool) -> None:
        """Launch the kernel: one cooperative launch."""
        d, s, _ = animals
        self.queue.write(self._sums, np.concatenate([s.ravel(), d.ravel()]))
        self.queue.fill(self._arrived, 0)
        sums, right = self.queue.address(self._sums), self.queue.address(self._right)
        work = make_struct(
            genotypes=self.queue.address(self._genotypes),
            values=self.queue.address(self._numbers),
            d=sums + s.nbytes,
            s=sums,
            g=g,
            right=right,
            changes=right + 8 * self.T * BLOCK,
            draws=draws[0],
            p=np.int32(self.p),
            chunks=np.int32(self.chunks),
            T=np.int32(self.T),
            is_backward=np.int32(is_backward),
        )
        name = sweep_name(self._type, draws_name)
        if name not in self._kernels:
            self._kernels |= self.queue.kernels(self._text, [name], cooperative=True)
        given: tuple[Argument, Argument] = work, self._arrived
        self._kernels[name](self.queue.device.multiprocessors, THREADS, *given)  # all blocks are there at once

    def _read(self, a: np.ndarray, animals: tuple) -> float:
        """Take what has moved: waits."""
        _, s, g = animals
        assert self._doubles is not None
        values = self.queue.read(self._doubles[: a.size + g.size + 1])
        a[:] = values[: a.size].reshape(a.shape)
        g[:] = values[a.size : -1].reshape(g.shape)
        s[:] = self.queue.read(self._sums[: s.size]).reshape(s.shape)
        return float(values[-1])


def _prior(variance: int, log_share: int, classes: tuple[np.ndarray, np.ndarray]) -> np.void:
    """struct Prior of markers.cu."""
    sizes = {"classes": np.int32(len(classes[1])), "n": np.int32(classes[0].shape[1])}
    return make_struct(variance=variance, log_share=log_share, **sizes)[0]
