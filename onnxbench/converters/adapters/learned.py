"""ai.onnx.ml: LabelEncoder's classes became keys and values; trees got another form.

Sources: ai.onnx.ml LabelEncoder-1 and 2, TreeEnsembleClassifier-3 and 5, TreeEnsembleRegressor-3 and 5.
"""

from __future__ import annotations

from onnx import TensorProto

from onnxbench.converters.adapters import adapter, impossible
from onnxbench.converters.site import Site

_DOMAIN = "ai.onnx.ml"


def _up(site: Site) -> None:
    """The classes are the strings of 0, 1, 2, …; which way they are read is a matter of the input's type."""
    classes = site.attr("classes_strings", [])
    numbers = list(range(len(classes)))
    drop = ("classes_strings",)
    if site.needed_element(site.input(0)) == TensorProto.STRING:
        site.same(drop=drop, keys_strings=classes, values_int64s=numbers, default_int64=site.attr("default_int64"))
    else:
        site.same(drop=drop, keys_int64s=numbers, values_strings=classes, default_string=site.attr("default_string"))


def _down(site: Site) -> None:
    strings, numbers = site.attr("keys_strings", []), site.attr("values_int64s", [])
    if not strings:
        strings, numbers = site.attr("values_strings", []), site.attr("keys_int64s", [])
    if not strings or numbers != list(range(len(strings))):
        site.refuse("LabelEncoder-1 maps strings to 0, 1, 2, … and back, and nothing else")
    if site.has("keys_floats") or site.has("values_floats"):
        site.refuse("LabelEncoder-1 maps no floats")
    kept = {name: site.attr(name) for name in ("default_int64", "default_string")}
    site.put("LabelEncoder", [site.input(0)], classes_strings=strings, **kept)


adapter("LabelEncoder", 1, 2, _DOMAIN)(_up)
adapter("LabelEncoder", 2, 1, _DOMAIN)(_down)
for _op in ("TreeEnsembleClassifier", "TreeEnsembleRegressor"):
    _reason = f"{_op} was withdrawn, and TreeEnsemble, which took its place, stores trees in another way: keep ai.onnx.ml below 5"
    impossible(_op, 3, 5, _reason, _DOMAIN)
