"""How many nodes a model has, as it stands and with its functions written out."""

from hypothesis import given
from hypothesis import strategies as st
from onnx import inliner, parser

from onnxbench.core.counts import count_inlined, count_nodes

HEADER = '<ir_version: 8, opset_import: ["": 17, "local": 1]>'


def calling(calls):
    """A model whose function i calls the functions `calls[i]`, all of later places, one after the other; 0 is called."""
    text = f"{HEADER} agraph (float[2] x) => (float[2] y) {{ y = local.f0 (x) }}"
    for place, callees in enumerate(calls):
        steps = [f"t{i + 1} = local.f{callee} (t{i})" for i, callee in enumerate(callees)]
        body = "; ".join(["t0 = Neg (a)", *steps, f"b = Abs (t{len(callees)})"]).replace("; ", " ")
        text += f' <domain: "local", opset_import: ["": 17, "local": 1]> f{place} (a) => (b) {{ {body} }}'
    return parser.parse_model(text)


@given(st.data())
def test_as_many_nodes_are_counted_as_the_inliner_writes(data):
    count = data.draw(st.integers(1, 5))
    later = [
        st.lists(st.integers(i + 1, count - 1), max_size=3) if i + 1 < count else st.just([]) for i in range(count)
    ]
    model = calling([data.draw(choice) for choice in later])
    assert count_inlined(model) == count_nodes(inliner.inline_local_functions(model))[1]


def test_calls_that_nobody_could_write_out_are_counted():
    doubling = calling([[i + 1, i + 1] for i in range(59)] + [[]])
    assert count_inlined(doubling) == 2 * (2**60 - 1)


def test_a_chain_longer_than_the_stack_is_counted():
    assert count_inlined(calling([[i + 1] for i in range(2999)] + [[]])) == 6000


def test_a_function_that_calls_itself_ends():
    assert count_inlined(calling([[0]])) == 3


def test_calls_in_bodies_count():
    model = parser.parse_model(
        f"""{HEADER} agraph (float[2] x, bool c) => (float[2] y) {{
          y = If (c) <then_branch = g1 () => (float[2] u) {{ u = local.f (x) }},
                      else_branch = g2 () => (float[2] v) {{ w = local.f (x) v = local.f (w) }}> }}
        <domain: "local", opset_import: ["": 17]> f (a) => (b) {{ c = Neg (a) b = Abs (c) }}"""
    )
    assert count_inlined(model) == 1 + 2 + 4
