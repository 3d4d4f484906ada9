"""Dropout: `is_test` before 7, the mask's type before 10, ratio and training as inputs since 12.

Sources: ai.onnx Dropout-1, 6, 7, 10, 12.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from onnxbench.converters.adapters import adapter
from onnxbench.converters.site import Site


def _from_6(site: Site) -> None:
    """Dropout-7 is inference; Dropout-6 draws unless `is_test` says otherwise, which only Dropout-12 can say again."""
    x = site.input(0)
    if site.attr("is_test", 0):
        site.same([x], drop=("is_test",))
        return
    if site.target < 12:
        site.refuse("it draws at random (is_test is 0), which Dropout-7 to 10 do not")
    if site.output(1):
        site.refuse("the mask of a Dropout that draws has another type in Dropout-12")
    ratio = site.const(site.attr("ratio"), "ratio", np.float32)
    site.same([x, ratio, site.const(True, "training", np.bool_)], drop=("is_test", "ratio"))
    site.valid_at = 12


def _to_6(site: Site) -> None:
    site.same(is_test=1)


def _mask_up(site: Site) -> None:
    """The mask becomes boolean; whoever reads it gets what it was."""
    used = site.output(1) and site.is_used(site.output(1))
    _with_mask(site, site.needed_element(site.input(0)) if used else 0)


def _mask_down(site: Site) -> None:
    """In inference everything is kept; what a Dropout-7 says of that is left to runtimes, so it is not asked."""
    site.same(outputs=[site.output(0)])
    _all_kept(site)


def _all_kept(site: Site) -> None:
    """The mask of a Dropout that drops nothing, made without it."""
    mask = site.output(1)
    if not mask or not site.is_used(mask):
        return
    site.node.name = ""
    zero = site.add("Cast", site.input(0), to=int(TensorProto.BOOL), wish="some")
    site.put("Or", [zero, site.add("Not", zero)], [mask])


def _with_mask(site: Site, element: int) -> None:
    if not site.output(1):
        site.same()
        return
    if not site.is_used(site.output(1)):
        site.same(outputs=[site.output(0)])
        return
    made = site.fresh("mask")
    mask = site.output(1)
    site.same(outputs=[site.output(0), made])
    site.node.name = ""
    site.put("Cast", [made], [mask], to=element)


def _up_to_12(site: Site) -> None:
    x = site.input(0)
    if site.has("ratio"):
        site.same([x, site.from_attribute("ratio", "ratio", np.float32)], drop=("ratio",))
    else:
        site.same([x])


def _from_12(site: Site) -> None:
    """Of the mask in inference Dropout-12 says that all is kept; runtimes give another of Dropout-10, so it is not asked."""
    if site.input(2):
        training = site.value(site.input(2))
        if training is None:
            site.refuse("whether it draws is only known at run time")
        if bool(training.reshape(-1)[0]):
            ratio = site.value(site.input(1)) if site.input(1) else np.asarray(0.5)
            if ratio is None or float(ratio.reshape(-1)[0]) != 0.0:
                site.refuse("it draws at random, which older forms do not")
    ratio = site.value(site.input(1)) if site.input(1) else None
    kept = None if ratio is None else float(ratio.reshape(-1)[0])
    site.same([site.input(0)], [site.output(0)], drop=("seed",), ratio=kept)
    _all_kept(site)


adapter("Dropout", 6, 7)(_from_6)
adapter("Dropout", 7, 6)(_to_6)
adapter("Dropout", 7, 10)(_mask_up)
adapter("Dropout", 10, 7)(_mask_down)
adapter("Dropout", 10, 12)(_up_to_12)
adapter("Dropout", 12, 10)(_from_12)
