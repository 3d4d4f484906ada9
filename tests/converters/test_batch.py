"""Many conversions: what becomes of each model, what is done again, what is copied. The engine is played by a function."""

import dataclasses
import json
import shutil

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

from onnxbench.converters import workers
from onnxbench.converters.asked import Asked
from onnxbench.converters.batch import Batch
from onnxbench.converters.journal import Journal
from onnxbench.converters.one import Answer, Job
from onnxbench.converters.options import ConvertOptions
from onnxbench.converters.tree import JOURNAL, in_place, plan_tree
from onnxbench.errors import MachineError, UsageError
from onnxbench.isolate import Crash, Error, Memory, Timeout

MODEL = '<ir_version: 4, opset_import: ["": {}]> g (float[3] x) => (float[3] y) {{ [a] y = Relu(x) }}'


def write(path, opset=9, data=None):
    path.parent.mkdir(parents=True, exist_ok=True)
    model = parser.parse_model(MODEL.format(opset))
    if data is not None:
        model.graph.initializer.append(numpy_helper.from_array(np.arange(400, dtype=np.float32), "w"))
        onnx.save(model, path, save_as_external_data=True, location=data, size_threshold=100)
    else:
        onnx.save(model, path)
    return path


def report(state, **more):
    refusals = [{"node": "a", "op": "Relu", "where": "", "step": "Relu 9 to 13", "reason": "it is tired"}]
    return {
        "before": {"ai.onnx": 9},
        "after": {"ai.onnx": 13},
        "by_step": {},
        "rewrites": [],
        "refusals": refusals if state == "refused" else [],
        "verification": {"state": state, "reason": "", "certificates": []},
        **more,
    }


class Engine:
    """Stamps models as asked, unless their file name says what should happen."""

    def __init__(self):
        self.asked = []

    def __call__(self, job: Job) -> Answer:
        self.asked.append(job)
        name = job.source.rpartition("/")[2]
        for state, code, error in (("refused", 1, "OB107"), ("mismatch", 5, "OB501"), ("crash", 1, "OB108")):
            if name.startswith(state):
                said = {"code": error, "message": "no", "hint": ""}
                failed = state == "crash"
                return Answer("failed" if failed else state, {} if failed else report(state), said, code)
        model = onnx.load(job.source, load_external_data=False)
        model.opset_import[0].version = job.options.targets[""]
        onnx.save(model, job.output)
        return Answer("verified", report("verified"), wrote=(job.output,))


@pytest.fixture
def engine():
    return Engine()


@pytest.fixture
def run(tmp_path, engine):
    """Convert folders of the temporary folder to opset 13, into `out`."""

    def convert(*named, job=None, **asked):
        job = job or Job("", "", ConvertOptions({"": 13}))
        tree = plan_tree([str(tmp_path / name) for name in named], tmp_path / "out")
        journal = Journal(tree.output)
        journal.open()
        try:
            return Batch(tree, Asked(job, **asked), journal, convert=engine).run()
        finally:
            journal.close()

    return convert


def states(summary):
    return {row.place: row.state for row in summary.rows}


def written(folder):
    found = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return sorted(name for name in found if name != JOURNAL)


def test_one_bad_model_stops_no_other_and_the_worst_gives_the_code(run, tmp_path):
    for name in ("a", "refused", "mismatch", "crash"):
        write(tmp_path / f"zoo/{name}.onnx")
    (tmp_path / "zoo/junk.onnx").write_bytes(b"\xff\x00junk" * 20)
    summary = run("zoo", jobs=2)
    assert states(summary) == {
        "a.onnx": "verified",
        "crash.onnx": "failed",
        "junk.onnx": "failed",
        "mismatch.onnx": "mismatch",
        "refused.onnx": "refused",
    }
    assert summary.exit_code == 5
    assert written(tmp_path / "out") == ["a.onnx", "refused.onnx"]
    assert (tmp_path / "out/refused.onnx").read_bytes() == (tmp_path / "zoo/refused.onnx").read_bytes()
    assert summary.by_error() == {"OB108": 1, "OB302": 1, "OB501": 1, "OB107": 1}
    assert [(entry["op"], entry["nodes"]) for entry in summary.by_refusal()] == [("Relu", 1)]
    json.dumps(summary.to_dict(), allow_nan=False)


def test_folders_are_raised_only_unless_exact_and_named_files_always(run, engine, tmp_path):
    write(tmp_path / "zoo/old.onnx", 9)
    write(tmp_path / "zoo/new.onnx", 17)
    named = write(tmp_path / "named.onnx", 17)
    summary = run("zoo", "named.onnx")
    assert states(summary) == {"new.onnx": "other", "old.onnx": "verified", "named.onnx": "verified"}
    assert [job.options.at_least for job in engine.asked] == [True, False]
    assert onnx.load(tmp_path / "out/new.onnx").opset_import[0].version == 17
    assert states(run("zoo", named.name, exact=True))["new.onnx"] == "verified"
    assert onnx.load(tmp_path / "out/new.onnx").opset_import[0].version == 13


def test_functions_below_the_target_count(run, tmp_path):
    path = write(tmp_path / "zoo/m.onnx", 13)
    model = onnx.load(path)
    imports = [onnx.helper.make_opsetid("", 9)]
    node = onnx.helper.make_node("Relu", ["u"], ["v"])
    model.functions.append(onnx.helper.make_function("loc", "F", ["u"], ["v"], [node], imports))
    onnx.save(model, path)
    assert states(run("zoo")) == {"m.onnx": "verified"}


def test_only_models_at_an_opset_are_taken(run, tmp_path):
    write(tmp_path / "zoo/a.onnx", 9)
    write(tmp_path / "zoo/b.onnx", 8)
    summary = run("zoo", from_=9)
    assert states(summary) == {"a.onnx": "verified", "b.onnx": "other"}
    assert summary.rows[1].reason == "it is at opset 8, not 9"


def test_other_files_are_carried_along_but_not_the_data_of_converted_models(run, tmp_path):
    write(tmp_path / "zoo/deep/old.onnx", 9, data="old.bin")
    write(tmp_path / "zoo/deep/new.onnx", 17, data="new.bin")
    (tmp_path / "zoo/labels.txt").write_text("cat")
    (tmp_path / "zoo/.git").mkdir()
    (tmp_path / "zoo/.git/config").write_text("")
    summary = run("zoo")
    assert written(tmp_path / "out") == ["deep/new.bin", "deep/new.onnx", "deep/old.onnx", "labels.txt"]
    assert {file.place: file.state for file in summary.files} == {"labels.txt": "copied", "deep/new.bin": "copied"}


def test_other_files_may_be_left_out(run, tmp_path):
    write(tmp_path / "zoo/old.onnx", 9)
    write(tmp_path / "zoo/new.onnx", 17)
    write(tmp_path / "zoo/refused.onnx", 9)
    (tmp_path / "zoo/labels.txt").write_text("cat")
    summary = run("zoo", others="skip")
    assert written(tmp_path / "out") == ["old.onnx"]
    assert summary.exit_code == 1
    assert states(run("zoo"))["refused.onnx"] == "refused"  # asked otherwise: done again
    assert written(tmp_path / "out") == ["labels.txt", "new.onnx", "old.onnx", "refused.onnx"]


def test_the_data_of_a_refused_model_is_copied_with_it(run, tmp_path):
    write(tmp_path / "zoo/refused.onnx", 9, data="weights.bin")
    run("zoo/*.onnx")
    assert written(tmp_path / "out") == ["refused.onnx", "weights.bin"]


def test_a_pattern_keeps_the_tree_below_its_first_star(run, tmp_path):
    write(tmp_path / "zoo/a/model.onnx")
    write(tmp_path / "zoo/b/model.onnx")
    assert sorted(states(run("zoo/*/model.onnx"))) == ["a/model.onnx", "b/model.onnx"]


def test_two_models_in_one_place_are_refused(run, tmp_path):
    write(tmp_path / "one/m.onnx")
    write(tmp_path / "two/m.onnx")
    with pytest.raises(UsageError, match="both be written"):
        run("one", "two")


def test_what_is_done_is_not_done_again(run, engine, tmp_path):
    for name in ("a", "b", "refused"):
        write(tmp_path / f"zoo/{name}.onnx")
    run("zoo")
    assert len(engine.asked) == 3
    again = run("zoo")
    assert len(engine.asked) == 3
    assert (again.earlier, again.exit_code) == (3, 1)
    assert states(again) == {"a.onnx": "verified", "b.onnx": "verified", "refused.onnx": "refused"}


def test_a_moved_time_is_no_change_and_other_content_is(run, engine, tmp_path):
    a, b = write(tmp_path / "zoo/a.onnx"), write(tmp_path / "zoo/b.onnx", data="b.bin")
    run("zoo")
    shutil.copy(a, tmp_path / "kept")
    shutil.copy(tmp_path / "kept", a)
    assert run("zoo").earlier == 2
    bytes_ = bytearray((tmp_path / "zoo/b.bin").read_bytes())
    bytes_[-1] ^= 1
    (tmp_path / "zoo/b.bin").write_bytes(bytes_)
    assert run("zoo").earlier == 1
    assert engine.asked[-1].source == str(b)


def test_other_options_and_lost_results_are_done_again(run, engine, tmp_path):
    write(tmp_path / "zoo/a.onnx")
    run("zoo")
    assert run("zoo", job=Job("", "", ConvertOptions({"": 17}))).earlier == 0
    assert onnx.load(tmp_path / "out/a.onnx").opset_import[0].version == 17
    (tmp_path / "out/a.onnx").unlink()
    assert run("zoo", job=Job("", "", ConvertOptions({"": 17}))).earlier == 0
    assert (tmp_path / "out/a.onnx").exists()


def test_what_failed_is_tried_again(run, engine, tmp_path):
    write(tmp_path / "zoo/crash.onnx")
    run("zoo")
    run("zoo")
    assert len(engine.asked) == 2


def test_what_others_wrote_is_not_replaced(run, tmp_path):
    write(tmp_path / "zoo/a.onnx")
    (tmp_path / "out").mkdir()
    (tmp_path / "out/a.onnx").write_text("mine")
    summary = run("zoo")
    assert summary.rows[0].error["code"] == "OB202"
    assert (summary.exit_code, (tmp_path / "out/a.onnx").read_text()) == (2, "mine")
    assert run("zoo", job=Job("", "", ConvertOptions({"": 13}), force=True)).exit_code == 0


def test_a_result_that_somebody_changed_is_theirs(run, tmp_path):
    write(tmp_path / "zoo/a.onnx")
    run("zoo")
    (tmp_path / "out/a.onnx").write_text("mine")
    assert run("zoo").exit_code == 2
    assert (tmp_path / "out/a.onnx").read_text() == "mine"


def test_a_result_of_what_the_model_was_does_not_stay(run, tmp_path):
    write(tmp_path / "zoo/a.onnx")
    run("zoo")
    (tmp_path / "zoo/a.onnx").write_bytes(b"\xff\x00junk" * 20)
    assert states(run("zoo")) == {"a.onnx": "failed"}
    assert not (tmp_path / "out/a.onnx").exists()


def test_a_run_that_died_between_writing_and_noting_goes_on(run, engine, tmp_path):
    write(tmp_path / "zoo/a.onnx")
    run("zoo")
    journal = tmp_path / "out" / JOURNAL
    begun, done = journal.read_text().splitlines()
    journal.write_text(f"{begun}\n{done[:50]}")
    (tmp_path / "out/.onnxbench-0123456789ab.part").write_text("half")
    summary = run("zoo")
    assert (summary.earlier, states(summary)) == (0, {"a.onnx": "verified"})
    assert run("zoo").earlier == 1
    assert written(tmp_path / "out") == ["a.onnx"]


def test_two_runs_in_one_folder_keep_apart(tmp_path):
    first = Journal(tmp_path)
    first.open()
    with pytest.raises(UsageError, match="at work"):
        Journal(tmp_path).open()
    first.close()
    second = Journal(tmp_path)
    second.open()
    second.close()


def test_an_output_within_the_source_is_no_source(run, engine, tmp_path):
    write(tmp_path / "a.onnx")
    tree = plan_tree([str(tmp_path)], tmp_path / "out")
    assert [item.place for item in tree.items] == ["a.onnx"]
    write(tmp_path / "out/b.onnx")
    assert [item.place for item in plan_tree([str(tmp_path)], tmp_path / "out").items] == ["a.onnx"]


def test_an_output_is_a_source_without_its_reports(run, tmp_path):
    write(tmp_path / "zoo/a.onnx")
    run("zoo")
    (tmp_path / "out/report.md").write_text("")
    assert plan_tree([str(tmp_path / "out")], tmp_path / "next").files == {}


def test_a_disk_without_room_is_noticed_first(run, engine, tmp_path):
    write(tmp_path / "zoo/a.onnx")
    with (tmp_path / "zoo/huge.bin").open("wb") as file:
        file.truncate(shutil.disk_usage(tmp_path).total + 1)
    with pytest.raises(MachineError, match="are free there") as caught:
        run("zoo")
    assert caught.value.code == "OB402"
    assert engine.asked == []
    assert run("zoo", others="skip").exit_code == 0


def test_models_are_written_over_themselves(engine, tmp_path):
    path = write(tmp_path / "zoo/a.onnx")
    refused = write(tmp_path / "zoo/refused.onnx")
    before = refused.read_bytes()
    asked = Asked(Job("", "", ConvertOptions({"": 13})))
    summary = Batch(in_place([str(tmp_path / "zoo")]), asked, Journal(None), convert=engine).run()
    assert sorted(states(summary).values()) == ["refused", "verified"]
    assert onnx.load(path).opset_import[0].version == 13
    assert refused.read_bytes() == before
    assert written(tmp_path / "zoo") == ["a.onnx", "refused.onnx"]


@pytest.mark.parametrize(
    "result, code, exit_code",
    [
        (Timeout(5), "OB108", 1),
        (Memory(0), "OB108", 1),
        (Crash("SIGSEGV"), "OB108", 1),
        (Error("KeyError", "what"), "OB701", 70),
    ],
)
def test_whatever_happens_to_a_worker_has_a_code(monkeypatch, result, code, exit_code):
    monkeypatch.setattr(workers.isolate, "call", lambda *_, **__: result)
    answer = workers.convert(Job("m.onnx", "o.onnx", ConvertOptions()))
    assert (answer.state, answer.error["code"], answer.code) == ("failed", code, exit_code)
    assert workers.look("m.onnx", ConvertOptions().limits).error["code"] == code


def test_sizes_of_other_models_do_not_disturb(tmp_path):
    from onnxbench.converters.feeding import Feeding
    from onnxbench.core.model import load

    model = load(write(tmp_path / "m.onnx"))
    feeding = Feeding(None, {"x": (3,), "z": (1,)}, {"batch": (1,)}, {"q": (0, 1)})
    assert dataclasses.asdict(feeding.among(model)) == dataclasses.asdict(Feeding(None, {"x": (3,)}))
