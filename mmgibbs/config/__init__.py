"""The analysis file: YAML -> a validated, frozen model of the analysis. Every default lives here.

load_config("analysis.yaml", ["sampler.samples=100"]) -> Analysis
"""

from __future__ import annotations

from mmgibbs.config.analysis import Analysis
from mmgibbs.config.decisions import Decisions, criteria
from mmgibbs.config.effects import Fixed, Legendre, LegendreOfColumn, Model, Random, RandomEffect, component_names
from mmgibbs.config.fields import Interval
from mmgibbs.config.genotypes import Genotypes, Quality
from mmgibbs.config.load import load_config
from mmgibbs.config.sampling import Output, Sampler
from mmgibbs.config.tables import Data, Groups, PedigreeColumns
from mmgibbs.config.traits import Trait
from mmgibbs.config.variances import Variance, Variances

__all__ = [
    "Analysis",
    "Data",
    "Decisions",
    "Fixed",
    "Genotypes",
    "Groups",
    "Interval",
    "Legendre",
    "LegendreOfColumn",
    "Model",
    "Output",
    "PedigreeColumns",
    "Quality",
    "Random",
    "RandomEffect",
    "Sampler",
    "Trait",
    "Variance",
    "Variances",
    "component_names",
    "criteria",
    "load_config",
]
