"""Export a small transformer with PyTorch's old and new exporter, with random weights.

usage: export_transformers.py FOLDER

Writes transformer_old.onnx and transformer_new.onnx. Needs torch and onnxscript. Attention is written out, as in older code, with a
causal mask made from the length of the input, so that the old exporter leaves the arithmetic of shapes that simplifiers are for.
"""

import os
import sys

# `inspect.py` in this folder must not stand for the standard module.
sys.path[:] = [place for place in sys.path if place != os.path.dirname(os.path.abspath(__file__))]

import math
from pathlib import Path

import torch
from torch import nn

WIDTH, HEADS, LAYERS, WORDS, LONGEST = 64, 4, 4, 500, 128


class Attention(nn.Module):
    """Causal attention with several heads."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.register_buffer("mask", torch.tril(torch.ones(1, 1, LONGEST, LONGEST)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape
        query, key, value = (
            part(x).view(batch, length, HEADS, WIDTH // HEADS).transpose(1, 2)
            for part in (self.query, self.key, self.value)
        )
        scores = query @ key.transpose(-2, -1) / math.sqrt(key.size(-1))
        scores = scores.masked_fill(self.mask[:, :, :length, :length] == 0, float("-inf"))
        mixed = torch.softmax(scores, dim=-1) @ value
        return self.out(mixed.transpose(1, 2).contiguous().view(batch, length, WIDTH))


class Block(nn.Module):
    """Attention, then two linear layers, each around a sum."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = Attention()
        self.widen, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.dropout(self.attention(self.first(x)))
        return x + self.dropout(self.narrow(nn.functional.gelu(self.widen(self.second(x)))))


class Transformer(nn.Module):
    """Words to logits."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LONGEST, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.words(ids) + self.places(torch.arange(ids.size(1), device=ids.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    model, ids = Transformer().eval(), torch.randint(0, WORDS, (2, 16))
    axes = {"ids": {0: "batch", 1: "length"}}
    torch.onnx.export(
        model,
        (ids,),
        str(folder / "transformer_old.onnx"),
        input_names=["ids"],
        output_names=["logits"],
        dynamic_axes={**axes, "logits": {0: "batch", 1: "length"}},
        opset_version=17,
        do_constant_folding=False,
        dynamo=False,
    )
    batch, length = torch.export.Dim("batch"), torch.export.Dim("length", max=LONGEST)
    torch.onnx.export(
        model,
        (ids,),
        str(folder / "transformer_new.onnx"),
        input_names=["ids"],
        output_names=["logits"],
        dynamic_shapes=({0: batch, 1: length},),
        opset_version=18,
        dynamo=True,
        optimize=False,
        external_data=False,
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
