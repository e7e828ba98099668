"""What compiled functions ask of Numba stands in one place."""

import ast

import pytest
from helpers.compiled import SOURCES, decorator
from helpers.support import ROOT

from mmgibbs.machine.kernel_options import DRAW, DRAW_WITHIN, ENTRY, KERNEL, WITHIN
from pedigree import kernel_options as of_pedigree

ROOMS = ("mmgibbs/draws/", "mmgibbs/engines/", "mmgibbs/equations/", "mmgibbs/sampler/", "pedigree/")


def written_out(source: str) -> list[str]:
    """Functions whose decorator says itself what a set says."""
    functions = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef)]
    found = [(f, d) for f in functions for d in f.decorator_list if decorator(d) == "njit" and isinstance(d, ast.Call)]
    return [f.name for f, d in found if {"error_model", "no_cfunc_wrapper"} & {k.arg for k in d.keywords}]


def test_no_kernel_writes_the_shared_options_out():
    paths = [p for p in SOURCES if p.relative_to(ROOT).as_posix().startswith(ROOMS)]
    found = {str(p): written_out(p.read_text(encoding="utf-8")) for p in paths}
    assert len(found) > 60
    assert {name: functions for name, functions in found.items() if functions} == {}


def test_one_that_does_is_seen():
    source = '@njit(cache=True, error_model="numpy")\ndef f(x): ...\n@njit(cache=True, **KERNEL)\ndef g(x): ...'
    assert written_out(source) == ["f"]


@pytest.mark.parametrize("options", [WITHIN, DRAW_WITHIN, of_pedigree.WITHIN])
def test_what_kernels_alone_call_has_no_wrapper(options):
    assert options["no_cpython_wrapper"] and options["no_cfunc_wrapper"]


@pytest.mark.parametrize("options", [KERNEL, ENTRY, DRAW, of_pedigree.LOOP])
def test_what_python_calls_has_one(options):
    assert "no_cpython_wrapper" not in options


def test_draws_are_exact_and_other_sets_say_nothing_of_it():
    assert DRAW["fastmath"] is DRAW_WITHIN["fastmath"] is False
    assert not any("fastmath" in options for options in (KERNEL, ENTRY, WITHIN, of_pedigree.LOOP))
