"""`mmgibbs simulate`: records with known true values, simulated and written as files."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mmgibbs.config.schema import FILE as SCHEMA
from mmgibbs.errors import ConfigError, nearest, option, option_name
from mmgibbs.pedigree.tables import counted
from mmgibbs.simulation import arguments, calving, disease, files, genome_options, longevity, mastitis, trial
from mmgibbs.simulation.data_folder import KIND, check_directory
from mmgibbs.simulation.genome import FILES as OF_GENOTYPES
from mmgibbs.simulation.genome import Genome
from mmgibbs.simulation.simulate import FILES, YEARS, simulate_beef, write_beef

if TYPE_CHECKING:
    import polars as pl

WEIGHTS, TRIAL = "weights", "trial"
ANIMALS = 5000
# What may be simulated beside weights: its function, its years and the options that nothing else has.
KINDS: dict[str, tuple[Callable[..., files.Simulated], int, tuple[str, ...]]] = {
    "calving_ease": (calving.simulate_calving, calving.YEARS, ("categories", "shares")),
    "disease": (disease.simulate_disease, disease.YEARS, ("incidence",)),
    "longevity": (longevity.simulate_longevity, longevity.YEARS, ()),
    "mastitis": (mastitis.simulate_mastitis, mastitis.YEARS, ()),
}


@dataclass(frozen=True)
class Simulation:
    """Simulated data that were written to a folder.

    directory: the folder. files: paths of everything in it that was written. text: what was simulated, in a line.
    The tables are read when you use them.
    """

    directory: Path
    files: tuple[Path, ...]
    text: str

    def _repr_html_(self) -> str:
        from mmgibbs.report.notebook import lines_as_html

        return lines_as_html([self.text, *(f"wrote {file}" for file in self.files)])

    @property
    def analysis(self) -> Path:
        """Path of the analysis file, for `mmgibbs.run`."""
        return self.directory / "analysis.yaml"

    @cached_property
    def phenotypes(self) -> pl.DataFrame:
        """A row for each record; ids are text."""
        return self._read("phenotypes.csv")

    @cached_property
    def pedigree(self) -> pl.DataFrame:
        """A row for each animal: its sire, its dam, and its birth year; trials have none."""
        return self._read("pedigree.csv")

    @cached_property
    def true_values(self) -> pl.DataFrame:
        """The true values of each animal, or of each line at each site."""
        return self._read("true_values.csv")

    def _read(self, name: str) -> pl.DataFrame:
        import polars as pl

        ids = dict.fromkeys(("animal", "sire", "dam", "herd"), pl.String)
        header = pl.read_csv(self.directory / name, n_rows=0, glob=False).columns
        types = {column: kind for column, kind in ids.items() if column in header}
        return pl.read_csv(self.directory / name, schema_overrides=types, infer_schema_length=None, glob=False)


def simulate(
    directory: str | os.PathLike,
    *,
    traits: str = WEIGHTS,
    animals: int | None = None,
    years: int | None = None,
    seed: int = 1,
    lines: int | None = None,
    sites: int | None = None,
    categories: Sequence[str] | None = None,
    shares: Sequence[float] | None = None,
    incidence: float | None = None,
    selection: str | None = None,
    snps: int | Genome | None = None,
    overwrite: bool = False,
) -> Simulation:
    """Simulate records with known true values, and write them with an analysis file.

    The arguments, with those of `Genome`, are the options of `mmgibbs simulate`.

    Parameters
    ----------
    directory : str or path
        Folder to write.
    traits : {'weights', 'calving_ease', 'disease', 'longevity', 'mastitis', 'trial'}, default 'weights'
        Kind of records: weights of beef cattle, scores of calving ease, pneumonia (ill or well), productive life
        (right-censored), cases of mastitis (counts), or yields of variety trials.
    animals : int, optional
        Number of animals in the pedigree (default 5000); not of trials.
    years : int, optional
        Years of calving. The default depends on `traits`.
    seed : int, default 1
        The same seed gives the same data.
    lines : int, optional
        Trial: number of lines (default 60).
    sites : int, optional
        Trial: number of sites (default 4).
    categories : sequence of str, optional
        Calving ease: the categories, from low to high.
    shares : sequence of float, optional
        Calving ease: expected share of each category.
    incidence : float, optional
        Disease: expected share of ill calves.
    selection : {'true', 'phenotype'}, optional
        Weights: parents are the best young animals, by true breeding value or by a record. By default any young
        animal may become a parent.
    snps : int or Genome, optional
        Weights: simulate genotypes at this number of SNPs too, or `Genome(50_000, qtl=300)` with more about them.
    overwrite : bool, default False
        Replace data that an earlier simulation wrote; other files of the folder stay.

    Returns
    -------
    Simulation
        Paths of the folder, of its files and of the analysis; the tables as Polars frames (`phenotypes`,
        `pedigree`, `true_values`).

    Raises
    ------
    ConfigError
        If an argument cannot be used, does not belong to `traits`, or the folder holds files.

    See Also
    --------
    run : Run the analysis that was written.

    Examples
    --------
    >>> import mmgibbs
    >>> data = mmgibbs.simulate("data/beef", animals=400, seed=1)
    >>> data.analysis.name
    'analysis.yaml'
    >>> data.pedigree.height
    400
    >>> data.phenotypes.columns[:2]
    ['animal', 'contemporary_group']
    """
    if not isinstance(directory, (str, os.PathLike)):
        raise arguments.wrong("directory", directory, "the path of a folder")
    every_kind = (WEIGHTS, *KINDS, TRIAL)
    if traits not in every_kind:
        close = nearest(traits, every_kind) if isinstance(traits, str) else ""
        hint = f"; {close}" if close.startswith("did") else ""
        raise arguments.wrong("traits", traits, f"one of {', '.join(every_kind)}{hint}")
    of_herd = {"animals": animals, "years": years, "selection": selection, "snps": snps}
    of_trial = {"lines": lines, "sites": sites}
    for name, value in (of_herd if traits == TRIAL else of_trial).items():
        if value is not None:
            raise _not_for(option_name(name), traits, WEIGHTS if traits == TRIAL else TRIAL)
    animals = ANIMALS if animals is None else arguments.check_integer("animals", animals, 1)
    check_directory(Path(directory), overwrite)
    given = {"categories": categories, "shares": shares, "incidence": incidence}
    given = {name: value for name, value in given.items() if value is not None}
    for name in given:
        if traits not in KINDS or name not in KINDS[traits][2]:
            of = next(kind for kind, (_, _, options) in KINDS.items() if name in options)
            raise _not_for(option_name(name), traits, of)
    genome = snps if isinstance(snps, Genome) or snps is None else Genome(snps)
    if traits == TRIAL:
        target, text, names = _trial(directory, lines, sites, seed, overwrite)
    elif traits == WEIGHTS:
        target, text, names = _weights(directory, animals, years, seed, selection, genome, overwrite)
    else:
        for name, value in (("snps", snps), ("selection", selection)):
            if value is not None:
                raise _not_for(option_name(name), traits, WEIGHTS)
        target, text, names = _other_traits(directory, traits, animals, years, seed, given, overwrite)
    return Simulation(target, tuple(target / name for name in (*names, SCHEMA, KIND.record)), text)


def _not_for(name: str, traits: str, needed: str) -> ConfigError:
    return ConfigError(f"{name} cannot be combined with {option('traits', traits)}; needed {option('traits', needed)}")


def _weights(
    directory: str | os.PathLike,
    animals: int,
    years: int | None,
    seed: int,
    selection: str | None,
    genome: Genome | None,
    overwrite: bool,
) -> tuple[Path, str, tuple[str, ...]]:
    """(folder, what was simulated, names of the files)."""
    years = YEARS if years is None else years
    beef = simulate_beef(animals, seed, years, genome, selection)
    command = f"mmgibbs simulate DIRECTORY --animals {animals} --years {years} --seed {seed}"
    command += "" if selection is None else f" --selection {selection}"
    command += "" if genome is None else genome_options.describe_options(genome)
    target = write_beef(beef, Path(directory), command, overwrite)
    n_herds = int(beef.herd.max()) + 1
    text = f"{beef.n_animals:,} animals in {counted(n_herds, 'herd')}, {beef.n_records:,} of them with records"
    return target, text, FILES if genome is None else FILES + OF_GENOTYPES


def _trial(
    directory: str | os.PathLike, lines: int | None, sites: int | None, seed: int, overwrite: bool
) -> tuple[Path, str, tuple[str, ...]]:
    """(folder, what was simulated, names of the files)."""
    simulated = trial.simulate_trial(
        trial.LINES if lines is None else lines, trial.SITES if sites is None else sites, seed
    )
    n_lines, n_sites = len(simulated.lines), len(simulated.sites)
    command = f"mmgibbs simulate DIRECTORY --traits {TRIAL} --lines {n_lines} --sites {n_sites} --seed {seed}"
    target = trial.write(simulated, Path(directory), command, overwrite)
    text = f"{n_lines:,} lines at {counted(n_sites, 'site')}, {simulated.plots.height:,} plots"
    return target, text, trial.FILES


def _other_traits(
    directory: str | os.PathLike,
    traits: str,
    animals: int,
    years: int | None,
    seed: int,
    given: dict[str, Any],
    overwrite: bool,
) -> tuple[Path, str, tuple[str, ...]]:
    """(folder, what was simulated, names of the files)."""
    simulate_records, default_years, _ = KINDS[traits]
    years = default_years if years is None else years
    simulated = simulate_records(animals, seed, years, **given)
    command = f"mmgibbs simulate DIRECTORY --traits {traits} --animals {animals} --years {years} --seed {seed}"
    for name, value in given.items():
        command += f" --{name} {shlex.quote(_as_option(value))}"
    target = files.write(simulated, Path(directory), command, overwrite)
    n_herds = int(simulated.herd.herd.max()) + 1
    text = f"{simulated.herd.n_animals:,} animals in {counted(n_herds, 'herd')}, {simulated.animal.size:,} records"
    return target, text, files.FILES


def _as_option(value: float | Sequence) -> str:
    return str(value) if isinstance(value, (int, float)) else ",".join(map(str, value))
