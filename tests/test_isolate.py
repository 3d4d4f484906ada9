"""A function can do no harm in a worker: whatever happens to it comes back as data, and nothing stays behind."""

import ctypes
import os
import pickle
import resource
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from onnxbench import isolate
from onnxbench.errors import MachineError
from onnxbench.isolate import Crash, Error, Interpreter, Memory, Ok, Timeout, call, nursery
from onnxbench.isolate.command import run_command

PACKAGE = Path(isolate.__file__).parent.parent.parent


def add(a, b):
    return a + b


def own_pid():
    return os.getpid()


def fail():
    raise KeyError("no such thing")


def die(number):
    print("last words", flush=True)
    os.write(2, b"and a native one\n")
    os.kill(os.getpid(), number)
    time.sleep(60)


def leave(code):
    os._exit(code)


def leave_politely():
    sys.exit(3)


def interrupt():
    raise KeyboardInterrupt


def speak(text):
    print(text)
    print(text, file=sys.stderr)
    return len(text)


def hang(*_):
    time.sleep(600)


def hang_noting(path):
    Path(path).write_text(str(os.getpid()))
    time.sleep(600)


def hang_with_child(path):
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    Path(path).write_text(str(child.pid))
    time.sleep(600)


def die_with_child(path):
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    Path(path).write_text(str(child.pid))
    os._exit(9)


def allocate(size):
    held = bytearray(size)
    held[::4096] = b"x" * len(held[::4096])
    time.sleep(60)
    return len(held)


def out_of_memory():
    raise MemoryError


def unpicklable():
    return lambda: None


class Stubborn:
    def __reduce__(self):
        raise ValueError("I stay here")


class OneWay:
    """Pickles, and breaks where it is read."""

    def __init__(self, where):
        self.where = where

    def __reduce__(self):
        return explode_in, (self.where,)


def explode_in(where):
    if os.getpid() != where:
        raise RuntimeError("not at home")
    return where


def stubborn():
    return Stubborn()


def one_way():
    return OneWay(os.getpid())


class Mute(Exception):
    def __str__(self):
        raise ValueError


def raise_mute():
    raise Mute


def echo(data):
    return data


def close_stdout():
    sys.stdout.close()
    sys.stderr.close()
    return "closed"


def hang_up():
    os.closerange(3, 64)
    time.sleep(600)


def environment(name):
    return os.environ.get(name)


def is_alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def wait_for(condition, seconds=10.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


def read_pid(path):
    assert wait_for(lambda: path.exists() and path.read_text())
    return int(path.read_text())


# --- what comes back


def test_a_value_comes_back():
    result = call(add, (2, 3))
    assert isinstance(result, Ok)
    assert result.value == 5


def test_a_function_may_be_given_by_name():
    assert call("operator:add", (2, 3)).value == 5
    assert call("os:path.basename", ("a/b",)).value == "b"


def test_an_exception_comes_back_with_its_class_and_trace():
    result = call(fail)
    assert isinstance(result, Error)
    assert (result.kind, result.message) == ("KeyError", "'no such thing'")
    assert "in fail" in result.trace


@pytest.mark.parametrize(
    "function, kind", [(leave_politely, "SystemExit"), (interrupt, "KeyboardInterrupt"), (raise_mute, "Mute")]
)
def test_exceptions_of_every_sort_leave_the_worker_alive(function, kind):
    pid = call(own_pid).value
    assert call(function).kind == kind
    assert call(own_pid).value == pid


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGABRT", "SIGFPE", "SIGILL", "SIGTERM"])
def test_a_signal_is_a_crash_with_what_was_printed(name):
    result = call(die, (getattr(signal, name),))
    assert result == Crash(name, "last words\nand a native one\n")


@pytest.mark.parametrize("code", [0, 1, 3, 134])
def test_an_exit_is_a_crash(code):
    assert call(leave, (code,)) == Crash(f"exit {code}")


def test_a_real_segmentation_fault_is_a_crash():
    assert call(ctypes_read_null).signal == "SIGSEGV"


def ctypes_read_null():
    ctypes.string_at(0)


def test_a_kill_that_is_not_ours_is_out_of_memory():
    assert call(die, (signal.SIGKILL,)) == Memory(0, "last words\nand a native one\n")


def test_a_hang_is_stopped():
    result = call(hang, timeout=0.3)
    assert isinstance(result, Timeout)
    assert result.seconds == 0.3


def test_no_timeout_waits():
    assert call("time:sleep", (0.2,), timeout=None) == Ok(None, pytest.approx(0.2, abs=30))


def test_a_worker_over_its_cap_is_stopped():
    result = call(allocate, (600 << 20,), memory=400 << 20)
    assert isinstance(result, Memory)
    assert result.used > 400 << 20


def test_a_memory_error_is_out_of_memory():
    assert isinstance(call(out_of_memory), Memory)


def test_output_belongs_to_the_call_that_made_it():
    assert call(speak, ("one",)).output == "one\none\n"
    assert call(speak, ("two",)).output == "two\ntwo\n"
    assert call(add, (1, 2)).output == ""


def test_only_the_end_of_a_long_output_is_kept():
    output = call(speak, ("x" * 300_000,)).output
    assert 0 < len(output) <= 64 * 1024


# --- what does not travel


@pytest.mark.parametrize(
    "function, kind", [(unpicklable, ("AttributeError", "PicklingError")), (stubborn, ("ValueError",))]
)
def test_a_result_that_cannot_be_sent_is_an_error(function, kind):
    pid = call(own_pid).value
    result = call(function)
    assert isinstance(result, Error)
    assert result.kind in kind
    assert "cannot be sent" in result.message
    assert call(own_pid).value == pid


def test_a_result_that_cannot_be_read_is_an_error():
    result = call(one_way)
    assert isinstance(result, Error)
    assert "not at home" in result.message
    assert call(add, (1, 1)).value == 2


def test_an_argument_that_cannot_be_read_is_an_error():
    result = call(echo, (OneWay(os.getpid()),))
    assert isinstance(result, Error)
    assert (result.kind, result.message) == ("RuntimeError", "not at home")


def test_an_argument_that_cannot_be_sent_raises_here_and_harms_nothing():
    with pytest.raises((AttributeError, TypeError, pickle.PicklingError)):
        call(echo, (lambda: None,))
    assert call(add, (1, 1)).value == 2


def test_a_function_that_is_not_there_is_an_error():
    assert call("onnxbench.isolate:nothing_of_that_name").kind == "AttributeError"
    assert call("no_such_module:f").kind == "ModuleNotFoundError"
    assert call(lambda: None).kind == "AttributeError"


def test_large_payloads_travel_both_ways():
    data = os.urandom(1 << 20) * 50
    assert call(echo, (data,)).value == data


def test_a_function_may_close_its_standard_streams():
    assert call(close_stdout).value == "closed"
    assert call(speak, ("still here",)).output == "still here\nstill here\n"


def test_a_worker_that_hangs_up_but_lives_on_is_ended():
    result = call(hang_up, timeout=60)
    assert result == Crash("no answer")


# --- workers


def test_a_worker_serves_again_and_is_replaced_when_it_dies():
    first = call(own_pid).value
    assert call(own_pid).value == first
    call("os:_exit", (1,))
    assert call(own_pid).value != first


def test_a_worker_that_dies_idle_is_not_the_fault_of_the_next_call():
    pid = call(own_pid).value
    os.kill(pid, signal.SIGKILL)
    assert wait_for(lambda: not is_alive(pid))
    assert isinstance(call(own_pid), Ok)


def test_a_worker_that_holds_much_memory_is_replaced():
    first = call(own_pid).value
    call(own_pid, memory=isolate.resident(first))
    assert call(own_pid).value != first


def test_calls_from_several_threads_have_a_worker_each():
    results = {}
    barrier = threading.Barrier(6)

    def work(i):
        barrier.wait()
        mine = []
        for n in range(20):
            mine.append(call(add, (i * 1000, n)) if n % 5 else call("os:_exit", (i,)))
        results[i] = mine

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    for i in range(6):
        assert [r.value for r in results[i] if isinstance(r, Ok)] == [i * 1000 + n for n in range(20) if n % 5]
        assert [r for r in results[i] if not isinstance(r, Ok)] == [Crash(f"exit {i}")] * 4


def test_a_hang_does_not_hold_up_other_threads():
    hanging = threading.Thread(target=call, args=(hang,), kwargs={"timeout": 3})
    hanging.start()
    time.sleep(0.2)
    assert call(add, (1, 2)).value == 3
    assert hanging.is_alive()
    hanging.join()


def test_crashes_leak_no_handles():
    call("os:_exit", (1,))
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(500):
        assert call("os:_exit", (1,)) == Crash("exit 1")
    assert len(list(Path("/proc/self/fd").iterdir())) <= before + 2


def test_many_open_files_are_no_obstacle(tmp_path):
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 1200:
        pytest.skip("the system allows too few open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 1200) if soft != resource.RLIM_INFINITY else soft, hard))
    opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    try:
        isolate.shut_down()
        assert call(add, (1, 2)).value == 3
    finally:
        for handle in opened:
            os.close(handle)
        isolate.shut_down()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


# --- nothing stays behind


def test_what_a_function_started_ends_with_a_timeout(tmp_path):
    assert isinstance(call(hang_with_child, (str(tmp_path / "pid"),), timeout=1.5), Timeout)
    child = read_pid(tmp_path / "pid")
    assert wait_for(lambda: not is_alive(child))


def test_what_a_function_started_ends_with_a_crash(tmp_path):
    assert call(die_with_child, (str(tmp_path / "pid"),)) == Crash("exit 9")
    child = read_pid(tmp_path / "pid")
    assert wait_for(lambda: not is_alive(child))


def test_shut_down_ends_workers_and_the_next_call_starts_them():
    pid = call(own_pid).value
    isolate.shut_down()
    assert wait_for(lambda: not is_alive(pid))
    assert call(add, (1, 2)).value == 3


def zygote_of(worker):
    return int(Path(f"/proc/{worker}/stat").read_text().rpartition(")")[2].split()[1])


def test_a_zygote_killed_from_outside_is_started_again():
    zygote = zygote_of(call(own_pid).value)
    os.kill(zygote, signal.SIGKILL)
    for _ in range(3):
        assert call("os:_exit", (4,)).signal in ("exit 4", "no answer")
    assert call("os:_exit", (4,)) == Crash("exit 4")
    assert zygote_of(call(own_pid).value) != zygote


def test_a_zygote_killed_during_a_call_does_not_spoil_the_next(tmp_path):
    results = []
    thread = threading.Thread(target=lambda: results.append(call(hang_noting, (str(tmp_path / "pid"),), timeout=3)))
    thread.start()
    worker = read_pid(tmp_path / "pid")
    os.kill(zygote_of(worker), signal.SIGKILL)
    assert call(add, (1, 2)).value == 3
    thread.join(30)
    assert isinstance(results[0], Timeout)
    assert wait_for(lambda: not is_alive(worker))
    assert call("os:_exit", (4,)) == Crash("exit 4")


def parent_script(tmp_path, body):
    tmp_path.joinpath("hanging.py").write_text(
        "import os, time, pathlib\n"
        "def hang(path):\n"
        "    pathlib.Path(path).write_text(str(os.getpid()))\n"
        "    time.sleep(600)\n"
    )
    script = tmp_path / "parent.py"
    script.write_text(textwrap.dedent(body))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(PACKAGE), str(tmp_path)])}
    return subprocess.Popen(
        [sys.executable, str(script), str(tmp_path / "pid")], env=environment, stdout=subprocess.PIPE, text=True
    )


def test_a_killed_parent_leaves_no_orphan(tmp_path):
    parent = parent_script(
        tmp_path, "import sys; from onnxbench import isolate; isolate.call('hanging:hang', (sys.argv[1],))"
    )
    worker = read_pid(tmp_path / "pid")
    zygote = zygote_of(worker)
    assert is_alive(worker)
    parent.kill()
    parent.communicate()
    assert wait_for(lambda: not is_alive(worker) and not is_alive(zygote))


def test_ctrl_c_leaves_no_orphan_and_the_next_call_works(tmp_path):
    parent = parent_script(
        tmp_path,
        """
        import sys
        from onnxbench import isolate
        try:
            isolate.call("hanging:hang", (sys.argv[1],))
        except KeyboardInterrupt:
            print(isolate.call("operator:add", (2, 3)).value)
        """,
    )
    worker = read_pid(tmp_path / "pid")
    parent.send_signal(signal.SIGINT)
    assert parent.communicate(timeout=60)[0] == "5\n"
    assert parent.returncode == 0
    assert wait_for(lambda: not is_alive(worker))


def test_an_interrupt_in_another_thread_ends_its_worker(tmp_path):
    seen = []

    def work():
        try:
            call(hang_noting, (str(tmp_path / "pid"),))
        except KeyboardInterrupt:
            seen.append("interrupted")

    thread = threading.Thread(target=work)
    thread.start()
    worker = read_pid(tmp_path / "pid")
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(KeyboardInterrupt))
    thread.join(30)
    assert seen == ["interrupted"]
    assert wait_for(lambda: not is_alive(worker))
    assert call("os:_exit", (4,)) == Crash("exit 4")


def test_an_interrupt_while_a_worker_is_asked_for_does_not_mix_up_answers(monkeypatch):
    """The answer that nobody read must not be taken for the answer to the next request."""
    receive, strike = nursery.worker.receive, [True]

    def interrupted(channel):
        if strike and isolate._nurseries[isolate.HERE].control is channel:
            strike.clear()
            raise KeyboardInterrupt
        return receive(channel)

    call("os:_exit", (1,))  # no idle worker is left
    isolate.shut_down()
    call("os:_exit", (1,))
    monkeypatch.setattr(nursery.worker, "receive", interrupted)
    with pytest.raises(KeyboardInterrupt):
        call("os:_exit", (4,))
    assert not strike
    assert call("os:_exit", (4,)) == Crash("exit 4")
    assert call("os:_exit", (5,)) == Crash("exit 5")


# --- interpreters


def bare_interpreter(folder):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, stdin=subprocess.DEVNULL)
    return str(folder / "bin" / "python")


@pytest.fixture(scope="module")
def foreign(tmp_path_factory):
    return Interpreter(bare_interpreter(tmp_path_factory.mktemp("bare") / "venv"), foreign=True, warm=())


def test_a_foreign_interpreter_sees_this_package_and_nothing_else_of_ours(foreign):
    assert call("onnxbench.errors:escape", ("a\nb",), interpreter=foreign).value == "a\\nb"
    for ours in ("numpy", "onnx", "pytest", "test_isolate"):
        assert call("importlib:import_module", (ours,), interpreter=foreign).kind == "ModuleNotFoundError"


def test_a_foreign_interpreter_is_not_told_our_python_path(foreign, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(PACKAGE))
    isolate.shut_down()
    assert call("os:getenv", ("PYTHONPATH",), interpreter=foreign).value is None
    assert call("os:getenv", ("PYTHONPATH",)).value == str(PACKAGE)


def test_a_foreign_interpreter_crashes_as_safely(foreign):
    assert call("os:_exit", (7,), interpreter=foreign) == Crash("exit 7")
    assert call("os:abort", (), interpreter=foreign).signal == "SIGABRT"
    assert isinstance(call("time:sleep", (60,), interpreter=foreign, timeout=0.3), Timeout)


def test_an_interpreter_may_have_variables_of_its_own():
    with_variable = Interpreter(warm=(), environment=(("OB_TEST", "yes"),))
    assert call(environment, ("OB_TEST",), interpreter=with_variable).value == "yes"
    assert call(environment, ("OB_TEST",)).value is None


def test_what_an_import_prints_is_not_output_of_a_call(tmp_path, monkeypatch):
    (tmp_path / "noisy_module.py").write_text("print('hello from import')")
    monkeypatch.syspath_prepend(tmp_path)
    noisy = Interpreter(warm=("noisy_module",), environment=(("PYTHONUNBUFFERED", ""),))
    assert call("operator:add", (1, 2), interpreter=noisy).output == ""


def test_a_module_that_cannot_be_imported_early_does_not_prevent_a_start():
    assert call("operator:add", (1, 2), interpreter=Interpreter(warm=("no_such_module_at_all",))).value == 3


@pytest.mark.parametrize("kind", ["absent", "folder", "no program", "ends at once", "complains"])
def test_what_is_no_interpreter_is_said(tmp_path, kind):
    place = tmp_path / "python"
    if kind == "folder":
        place.mkdir()
    elif kind == "no program":
        place.write_text("hello")
    elif kind == "ends at once":
        place.write_text("#!/bin/sh\nexit 0\n")
    elif kind == "complains":
        place.write_text("#!/bin/sh\necho this is not the snake you seek >&2\nexit 1\n")
    if place.is_file():
        place.chmod(0o755)
    with pytest.raises(MachineError, match="snake you seek" if kind == "complains" else "cannot start") as caught:
        call(add, (1, 2), interpreter=Interpreter(str(place)))
    assert caught.value.code == "OB403"
    assert call(add, (1, 2)).value == 3


# --- what outlives


DETACHED = """import subprocess
quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
print(subprocess.Popen(["sleep", "600"], **quiet).pid, flush=True)"""
#: Forks twice, as daemons do, so that nobody is left who knows it.
DAEMON = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {DETACHED!r}])"


def start_daemon():
    done = subprocess.run([sys.executable, "-c", DAEMON], capture_output=True, text=True, check=True)
    return int(done.stdout)


def start_daemon_and_die(path):
    Path(path).write_text(str(start_daemon()))
    os._exit(9)


@pytest.mark.parametrize("tail", ["", "; import time; time.sleep(600)", "; import os; os.abort()"])
def test_what_a_command_starts_ends_with_it_in_any_session(tail):
    ending = run_command([sys.executable, "-c", DAEMON + tail], timeout=2.0)
    assert (ending.code, ending.stopped) == {"": (0, None), "; import os; os.abort()": (-signal.SIGABRT, None)}.get(
        tail, (None, "timeout")
    )
    assert not is_alive(int(ending.output.split()[0]))


def test_a_daemon_lives_as_long_as_its_worker_and_no_longer(tmp_path):
    daemon = call(start_daemon).value
    assert call(add, (1, 2)).value == 3
    assert is_alive(daemon)
    isolate.shut_down()
    assert wait_for(lambda: not is_alive(daemon))
    assert call(start_daemon_and_die, (str(tmp_path / "pid"),)) == Crash("exit 9")
    assert not is_alive(read_pid(tmp_path / "pid"))


def test_a_command_is_started_as_we_were(monkeypatch):
    monkeypatch.setenv("OB_TEST", "set after the worker was warm")
    code = (
        "import os, resource, signal as s; print(os.environ['OB_TEST'], os.environ.get('OPENBLAS_NUM_THREADS'), "
        "resource.getrlimit(resource.RLIMIT_CORE), s.getsignal(s.SIGINT) == s.default_int_handler)"
    )
    ending = run_command([sys.executable, "-c", code], timeout=20.0)
    cores = resource.getrlimit(resource.RLIMIT_CORE)
    threads = os.environ.get("OPENBLAS_NUM_THREADS")
    assert ending.output == f"set after the worker was warm {threads} {cores} True\n"


@pytest.mark.parametrize("victims", ["ours", "ours and the warm one"])
def test_nothing_outlives_us_when_we_are_killed(tmp_path, victims):
    script = (
        "import sys, threading, tests.test_isolate as t\n"
        "from onnxbench.isolate.command import run_command\n"
        "busy = threading.Thread(target=t.call, args=(t.hang_noting, (sys.argv[1] + '/worker',)))\n"
        "busy.start()\n"
        "t.wait_for(lambda: (t.Path(sys.argv[1]) / 'worker').exists())\n"
        "print(t.isolate._nurseries[t.isolate.HERE].process.pid, flush=True)\n"
        "notes = f'echo $$ > {sys.argv[1]}/command; echo $! > {sys.argv[1]}/orphan'\n"
        "run_command(['sh', '-c', f'setsid sleep 600 & {notes}; exec sleep 600'], timeout=None)\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=PACKAGE) as process:
        assert process.stdout is not None
        warm = int(process.stdout.readline())
        worker, orphan = read_pid(tmp_path / "worker"), read_pid(tmp_path / "orphan")
        assert is_alive(worker)
        assert is_alive(orphan)
        process.kill()
        if victims != "ours":
            os.kill(warm, signal.SIGKILL)
    assert wait_for(lambda: not is_alive(worker))
    if victims == "ours":
        assert wait_for(lambda: not is_alive(orphan))
    else:  # nobody is left who could end what a command had started
        for pid in (orphan, read_pid(tmp_path / "command")):
            os.kill(pid, signal.SIGKILL)
