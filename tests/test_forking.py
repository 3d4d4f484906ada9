"""The warm process of the command line is a copy of it, of which nobody notices more than of a new one."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from onnxbench import isolate, process
from onnxbench.isolate import HERE, LIGHT, forking

linux = pytest.mark.skipif(sys.platform != "linux", reason="copies are made on Linux only")
PACKAGE = Path(isolate.__file__).parent.parent.parent
START = """\
import os, sys, time
from onnxbench import isolate, process
process.is_own = True
"""


def program(body, **more):
    """A program of its own that may be copied."""
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE)}
    command = [sys.executable, "-c", START + textwrap.dedent(body)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)


def said(body):
    out, err = program(body).communicate(timeout=60)
    return out, err


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def wait_for(condition, seconds=10.0):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


@linux
def test_a_worker_is_forked_from_a_copy_that_was_no_new_interpreter():
    out, err = said("""
        isolate.warm_up(isolate.LIGHT)
        worker = isolate.call("os:getpid", interpreter=isolate.LIGHT).value
        zygote = isolate.call("os:getppid", interpreter=isolate.LIGHT).value
        assert worker != os.getpid() != zygote
        print(open(f"/proc/{zygote}/cmdline").read() == open("/proc/self/cmdline").read())
    """)
    assert (out, err) == ("True\n", "")


@linux
def test_what_the_process_has_not_printed_yet_is_printed_once():
    out, _ = said("""
        sys.stdout.write("once ")
        isolate.warm_up(isolate.LIGHT)
        sys.stdout.write("and only once ")
        assert isolate.call("builtins:print", ("from the worker",), interpreter=isolate.LIGHT).output == "from the worker\\n"
    """)
    assert out == "once and only once "


@linux
def test_a_copy_keeps_nothing_open_and_ends_with_the_process():
    running = program("""
        held = open("/dev/null")
        isolate.warm_up(isolate.LIGHT)
        zygote = isolate.call("os:getppid", interpreter=isolate.LIGHT).value
        worker = isolate.call("os:getpid", interpreter=isolate.LIGHT).value
        handles = sorted(os.readlink(f"/proc/{zygote}/fd/{n}").split(":")[0] for n in os.listdir(f"/proc/{zygote}/fd"))
        print(zygote, worker, *[name for name in handles if name not in ("socket", "/dev/null")], sep="|", flush=True)
        time.sleep(60)
    """)
    zygote, worker, *files = running.stdout.readline().strip().split("|")
    assert all("deleted" in name for name in files), "only the file that takes what it prints"
    running.kill()
    assert running.stdout.read() == ""  # nobody holds the pipe
    assert wait_for(lambda: not is_alive(zygote) and not is_alive(worker))


@linux
def test_an_interrupt_strikes_the_process_and_not_its_copy():
    running = program(
        """
        try:
            isolate.warm_up(isolate.LIGHT)
            print(isolate.call("os:getppid", interpreter=isolate.LIGHT).value, flush=True)
            time.sleep(60)
        except KeyboardInterrupt:
            print(isolate.call("operator:add", (1, 2), interpreter=isolate.LIGHT).value)
        """,
        start_new_session=True,
    )
    int(running.stdout.readline())
    os.killpg(running.pid, signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert (out, err) == ("3\n", "")


@linux
def test_interrupts_at_any_moment_leave_one_process():
    for delay in (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3):
        running = program(
            """
            try:
                print("ready", flush=True)
                isolate.warm_up(isolate.HERE)
                isolate.call("time:sleep", (3,))
            except BaseException:  # an import that is interrupted raises anything
                print("stopped")
            """,
            start_new_session=True,
        )
        running.stdout.readline()
        time.sleep(delay)
        os.killpg(running.pid, signal.SIGINT)
        out, err = running.communicate(timeout=60)
        # Python drops one that strikes a callback of its import system, and says so.
        assert out == "stopped\n" or "Exception ignored" in err, delay


@linux
def test_an_interrupt_waits_while_native_modules_are_imported():
    out, err = said("""
        import importlib, signal
        real = importlib.import_module
        def strike(name, *rest):
            os.kill(os.getpid(), signal.SIGINT)
            eval("0")
            return real(name, *rest)
        importlib.import_module = strike
        try:
            isolate.warm_up(isolate.HERE)
        except KeyboardInterrupt as stop:
            print({"numpy", "onnx"} <= set(sys.modules), stop.args)
    """)
    assert (out, err) == ("True (2,)\n", "")


@linux
@pytest.mark.parametrize("forks", [0, 1])
def test_no_more_processes(forks):
    """Neither a copy nor, of a copy, a worker: then one is started afresh, or it is said."""
    out, err = said(f"""
        real, made = os.fork, []
        def fork():
            made.append(1)
            if len(made) > {forks}:
                raise BlockingIOError(11, "Resource temporarily unavailable")
            return real()
        os.fork = fork
        isolate.warm_up(isolate.HERE)
        try:
            print(isolate.call("operator:add", (1, 2)).value)
        except Exception as error:
            print(type(error).__name__, error)
    """)
    assert out == ("3\n", "MachineError cannot start a worker process: Resource temporarily unavailable\n")[forks]
    assert not err


@linux
def test_the_folders_of_the_process_outlive_its_copy():
    out, err = said("""
        import tempfile
        folder = tempfile.TemporaryDirectory()
        isolate.warm_up(isolate.LIGHT)
        isolate.call("os:getpid", interpreter=isolate.LIGHT)
        isolate.shut_down()
        print(os.path.isdir(folder.name))
    """)
    assert (out, err) == ("True\n", "")


@linux
def test_the_environment_is_that_of_a_new_warm_process_and_ours_stays():
    out, _ = said("""
        os.environ.pop("OPENBLAS_NUM_THREADS", None)
        before = dict(os.environ)
        isolate.warm_up(isolate.HERE)
        names = ("ORT_DISABLE_TELEMETRY", "OPENBLAS_NUM_THREADS")
        print([isolate.call("os:getenv", (name,)).value for name in names], dict(os.environ) == before)
    """)
    assert out == "['1', '1'] True\n"


@linux
def test_a_copy_that_was_killed_is_replaced():
    out, _ = said("""
        import signal
        isolate.warm_up(isolate.HERE)
        os.kill(isolate.call("os:getppid").value, signal.SIGKILL)
        time.sleep(0.2)
        print(isolate.call("operator:add", (1, 2)))
    """)
    assert "value=3" in out


def test_only_a_process_that_is_our_own_and_has_no_other_thread_is_copied(monkeypatch):
    assert not process.is_own
    assert not forking.is_possible(HERE)
    monkeypatch.setattr(process, "is_own", True)
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    assert forking.is_possible(LIGHT) == (sys.platform == "linux")
    assert not forking.is_possible(isolate.Interpreter(executable="/usr/bin/python3"))
    assert not forking.is_possible(isolate.Interpreter(warm=()))
    monkeypatch.setattr(threading, "active_count", lambda: 2)
    assert not forking.is_possible(LIGHT)
