"""What `inspect --node`, `--value`, `--find` and `--diff` say, for a terminal or a pipe."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnxbench.errors import escape
from onnxbench.render.inspection import amount, counted, print_made_up

if TYPE_CHECKING:
    from rich.console import Console

    from onnxbench.inspecting.diff import Change, Diff, WeightChange
    from onnxbench.inspecting.look import Look, NodeLook, ValueLook

_TOP = 40
_LONG = 200  # characters of one side of a change


def print_look(look: Look, out: Console, *, everything: bool = False) -> None:
    """One thing in full; of several, a line each."""
    top = 10**9 if everything else _TOP
    if len(look.nodes) + len(look.values) == 1:
        for node in look.nodes:
            _print_node(node, out)
        for value in look.values:
            _print_value(value, out)
        print_made_up(look.made_up, out)
        return
    for node in look.nodes[:top]:
        outputs = ", ".join(escape(value.type) for value in node.outputs)
        name = node.name or (node.outputs[0].name if node.outputs else "")
        out.print(f"{node.operator:<20} {escape(name)}  {outputs}{_place(node.where)}")
    for value in look.values[:top]:
        out.print(f"{value.kind:<20} {escape(value.name)}  {value.type}" + _place(value.where))
    if max(len(look.nodes), len(look.values)) > top:
        out.print(f"{len(look.nodes)} nodes and {len(look.values)} values in all (--all)")
    print_made_up(look.made_up, out)


def _place(where: str) -> str:
    return f"  in {where}" if where else ""


def _print_node(node: NodeLook, out: Console) -> None:
    version = f"-{node.since}" if node.since is not None else ""
    domain = f"{node.domain}::" if node.domain else ""
    out.print(
        f"{escape(node.name) or '(unnamed)'}: {domain}{node.operator}{version}, number {node.index} in {node.where or 'the file'}"
    )
    for title, values in (("reads", node.inputs), ("makes", node.outputs)):
        for value in values:
            readers = f", read by {len(value.consumers)}" if title == "makes" else f", {value.kind}"
            out.print(f"  {title} {escape(value.name) or '(omitted)'}  {value.type}{readers}")
    for name, text in node.attributes.items():
        out.print(f"  {escape(name)} = {escape(text)}")
    if node.macs:
        out.print(f"  {counted(node.macs)} multiply-accumulates")
    if node.scopes:
        out.print(f"  in {escape(' / '.join(node.scopes))}" + (f", {escape(node.line)}" if node.line else ""))
    for key, text in node.metadata.items():
        out.print(f"  {escape(key)}: {escape(text)[:300]}")
    for line in [*node.doc.splitlines(), *node.stack_trace.splitlines()]:
        out.print(f"  | {escape(line)}")


def _print_value(value: ValueLook, out: Console) -> None:
    size = f", {amount(value.bytes)}B" if value.bytes is not None else ""
    out.print(f"{escape(value.name) or '(unnamed)'}: {', '.join(filter(None, (value.kind, value.type)))}{size}")
    if value.where:
        out.print(f"  in {value.where}")
    out.print(f"  made by {escape(value.producer) if value.producer else 'no node'}")
    for reader in value.consumers:
        out.print(f"  read by {escape(reader)}")


def print_diff(diff: Diff, out: Console, *, everything: bool = False) -> None:
    """What differs, kind by kind."""
    from rich.text import Text

    top = 10**9 if everything else _TOP
    out.print(
        f"{escape(diff.before)} -> {escape(diff.after)}: {diff.matched} nodes match, {diff.renamed} of them renamed"
    )
    if diff.same:
        out.print(Text("no difference", "bold green"))
        return
    lines = [Text(f"  {_change(c)}") for c in diff.head]
    lines += [Text(f"  - {escape(name)}", "red") for name in diff.removed]
    lines += [Text(f"  + {escape(name)}", "green") for name in diff.added]
    lines += [Text(f"  ~ {_change(c)}", "yellow") for c in [*diff.changed, *diff.types]]
    lines += [Text(f"  ~ {_weight(w)}", "yellow") for w in diff.weights]
    for line in lines[:top]:
        out.print(line)
    if len(lines) > top:
        out.print(f"  and {len(lines) - top} more (--all)")


def _change(change: Change) -> str:
    before, after = ("nothing" if text is None else _clipped(text) or "''" for text in (change.before, change.after))
    return f"{escape(change.where)} {escape(change.what)}: {before} -> {after}"


def _clipped(text: str) -> str:
    more = f"... ({len(text)} characters, see --json)" if len(text) > _LONG else ""
    return escape(text[:_LONG]) + more


def _weight(weight: WeightChange) -> str:
    size = f", by up to {weight.max_abs:.4g}" if weight.max_abs is not None else ""
    return f"initializer {escape(weight.before or weight.after)}: {weight.what}{size}"
