"""Read the outputs that somebody expects of a model."""

from __future__ import annotations

import re
from pathlib import Path

from onnx import ModelProto

from onnxbench.core import feed_files
from onnxbench.core.data_set import read_data_set
from onnxbench.core.feed_check import check
from onnxbench.core.graph import GraphView
from onnxbench.core.values import Value
from onnxbench.errors import NameNotFound, UsageError


def read_expected(text: str, view: GraphView) -> dict[str, Value]:
    """A value for each output, from the kinds of files that inputs are read from, or the outputs of a test data set.

    Raises:
        ModelError, UsageError: what `feed_files.read` raises.
        UsageError: OB206 for values that are not those of the model's outputs.
    """
    outputs = ModelProto(ir_version=view.model.ir_version)
    outputs.graph.input.extend(view.graph.output)
    wanted = GraphView(outputs, outputs.graph)
    folder = Path(text)
    try:
        if folder.is_dir():
            return check(read_data_set(folder, wanted, "output"), wanted)
        return feed_files.read(text, wanted)
    except (UsageError, NameNotFound) as error:
        message = re.sub(r"\binput\b", "output", error.message)
        raise UsageError("OB206", message, hint="one value for each output of the model") from None
