"""The folder of simulated data: what a simulation may replace, and how its files take their places."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mmgibbs.config.schema import FILE as SCHEMA
from mmgibbs.config.schema import with_schema
from mmgibbs.errors import ConfigError, option
from mmgibbs.machine.output_places import OutputKind, check_output_folder, list_names
from mmgibbs.results.output_folder import new_files
from mmgibbs.simulation.genome import FILES as OF_GENOTYPES

FILES_OF_TRAITS = (  # of animals with records of any traits
    "pedigree.csv",
    "phenotypes.csv",
    "true_values.csv",
    "true_liabilities.csv",
    "true_parameters.csv",
    "analysis.yaml",
    "PROVENANCE.txt",
)
WRITTEN = (  # by any kind of simulation
    *FILES_OF_TRAITS,
    *OF_GENOTYPES,
    "one_site.yaml",
    SCHEMA,
    "simulation.json",
)
KIND = OutputKind("simulation.json", frozenset(WRITTEN), "simulated data", is_alone=False, place="simulate")


def check_directory(directory: str | Path, overwrite: bool = False) -> Path:
    """The path, once it is sure that data may be written there; ConfigError otherwise."""
    path = Path(directory)
    if list_names(path) and not overwrite:
        raise ConfigError(f"'{path}' exists and holds files; choose another directory, or give {option('overwrite')}")
    check_output_folder(KIND, path, overwrite)
    return path


@contextmanager
def new_data(directory: str | Path, how: str, overwrite: bool) -> Iterator[Path]:
    """Yields a folder for new files, which take their places in `directory` together, with schema and record.

    how: the command or call that made the data. Only files that an earlier simulation wrote are replaced.
    """
    target = check_directory(directory, overwrite).resolve()
    try:
        with new_files(KIND, target, {"made_by": how}) as work:
            yield work
            with_schema(work / "analysis.yaml")
    except OSError as error:
        raise ConfigError(f"'{directory}' cannot be written: {error.strerror or error}") from error
