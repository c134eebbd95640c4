"""What one call does is no other call's business, nor the run's."""

import gc
import logging
import math
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from outfox.core import waiting as module
from outfox.core.errors import ConfigError, CrashError, UserCodeError
from outfox.core.isolation.template import seeded
from outfox.core.isolation.workers import Home, Workers

HOSTILE: dict[str, tuple[Callable[..., Any], Any]] = {
    "an endless loop": (exec, "while True: pass"),
    "a catastrophic regex": (re.match, (r"(a+)+$", "a" * 64 + "b")),
    "a sleep": (time.sleep, 1e6),
    "its own end": (os._exit, 3),
    "ten gigabytes": (bytearray, 10 << 30),
    "a kill of itself": (exec, "import os; os.kill(os.getpid(), 9)"),
    "an end of the program": (sys.exit, "enough"),
    "a recursion without end": (exec, "global f\ndef f(): f()\nf()"),
    "memory, bit by bit": (exec, "a = []\nwhile True: a.append(bytes(1 << 20))"),
    "a thing that cannot be sent": (eval, "lambda: 1"),
    "a thing that cannot be read": (eval, "type('Own', (), {'__module__': 'nowhere'})"),
}
SAYS = {
    "an endless loop": (TimeoutError, r"within 0\.3 seconds"),
    "a catastrophic regex": (TimeoutError, r"within 0\.3 seconds"),
    "a sleep": (TimeoutError, r"within 0\.3 seconds"),
    "its own end": (CrashError, "exit code 3"),
    "ten gigabytes": (CrashError, "more memory than user_code.memory_gb"),
    "a kill of itself": (CrashError, "signal 9"),
    "an end of the program": (CrashError, "SystemExit: enough"),
    "a recursion without end": (UserCodeError, "RecursionError"),
    "memory, bit by bit": (CrashError, "more memory than user_code.memory_gb"),
    "a thing that cannot be sent": (UserCodeError, "pickle"),
    "a thing that cannot be read": (UserCodeError, "nowhere"),
}


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    made = Workers(seconds=60, memory_gb=0.5, most=2)
    yield made
    made.close()


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def soon(holds: Callable[[], bool]) -> bool:
    """Within a time that a busy machine needs."""
    end = time.monotonic() + 30
    while time.monotonic() < end and not holds():
        time.sleep(0.02)
    return holds()


@pytest.mark.parametrize("what", HOSTILE)
def test_a_call_that_fails_fails_alone(workers: Workers, what: str):
    function, argument = HOSTILE[what]
    arguments = argument if isinstance(argument, tuple) else (argument,)
    before = [workers.submit("root", math.sqrt, float(n)) for n in range(4)]
    kind, says = SAYS[what]
    hostile = workers.submit(
        what, function, *arguments, seconds=0.3 if kind is TimeoutError else 60
    )
    after = [workers.submit("root", math.sqrt, float(n)) for n in range(4)]
    with pytest.raises(kind, match=says):
        hostile.result(60)
    assert [each.result(60) for each in (*before, *after)] == [math.sqrt(n) for n in range(4)] * 2


def test_a_call_that_fails_is_tried_once_more(workers: Workers, tmp_path):
    flag = tmp_path / "tried"
    code = f"import os, time\nif not os.path.exists({str(flag)!r}):\n open({str(flag)!r}, 'w')\n "
    for failure in ("time.sleep(1e6)", "os._exit(1)"):
        workers.submit("flaky", exec, code + failure, seconds=2).result(60)
        flag.unlink()


@pytest.mark.parametrize(
    ("code", "kind"), [("time.sleep(1e6)", TimeoutError), ("os._exit(1)", CrashError)]
)
def test_it_is_tried_twice_and_no_more(workers: Workers, tmp_path, code: str, kind):
    file = tmp_path / "tries"
    job = f"import os, time\nopen({str(file)!r}, 'a').write('x')\n{code}"
    beside = [workers.submit("root", math.sqrt, float(n)) for n in range(3)]
    with pytest.raises(kind):
        workers.submit("tries", exec, job, seconds=0.3).result(60)
    assert file.read_text() == "xx"
    assert [each.result(60) for each in beside] == [math.sqrt(n) for n in range(3)]


def test_slow_calls_are_done_side_by_side(workers: Workers):
    pids = "__import__('time').sleep(.3) or __import__('os').getpid()"
    calls = [workers.submit("slow", eval, pids) for _ in range(4)]
    assert len({each.result(60) for each in calls}) == 2


def test_answers_belong_to_their_calls_whichever_comes_first(workers: Workers):
    naps = [0.2, 0.0, 0.1, 0.0, 0.05]
    calls = [
        workers.submit("naps", eval, f"__import__('time').sleep({nap}) or {index}")
        for index, nap in enumerate(naps)
    ]
    assert [each.result(60) for each in calls] == list(range(5))


def test_nothing_is_started_before_it_is_needed_and_nothing_stays(monkeypatch):
    started: list[int] = []
    popen = subprocess.Popen

    def watched(*arguments: Any, **settings: Any) -> subprocess.Popen[bytes]:
        process = popen(*arguments, **settings)
        started.append(process.pid)
        return process

    monkeypatch.setattr("outfox.core.isolation.process.subprocess.Popen", watched)
    workers = Workers()
    assert started == []
    worker = workers.submit("pid", os.getpid).result(60)
    child = workers.submit("child", eval, "__import__('subprocess').Popen(['sleep', '999']).pid")
    pids = [*started, worker, child.result(60)]
    assert len(started) == 1
    assert all(map(is_there, pids))
    workers.close()
    assert soon(lambda: not any(map(is_there, pids)))
    with pytest.raises(UserCodeError, match="closed"):
        workers.submit("late", math.sqrt, 4.0).result(60)


def test_they_end_when_nobody_holds_them():
    workers = Workers()
    pid = workers.submit("pid", os.getpid).result(60)
    del workers
    gc.collect()
    assert soon(lambda: not is_there(pid))


ORPHANS = """
import os, re, sys, time
from outfox.core.isolation.workers import Workers
workers = Workers(seconds=999, most=3)
workers.submit("regex", re.match, "(a+)+$", "a" * 64 + "b")
workers.submit("sleep", time.sleep, 999)
time.sleep(.3)
print(workers.submit("pids", eval, "__import__('os').getppid()").result(60), flush=True)
time.sleep(999)
"""


def test_they_end_with_the_run_however_it_ends(tmp_path):
    run = subprocess.Popen([sys.executable, "-c", ORPHANS], stdout=subprocess.PIPE, text=True)
    assert run.stdout is not None
    template = int(run.stdout.readline())
    listed = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(template)], capture_output=True, text=True, check=True
    )
    pids = [template, *map(int, listed.stdout.split())]
    assert len(pids) >= 3
    run.kill()
    run.wait()
    run.stdout.close()
    assert soon(lambda: not any(map(is_there, pids)))


def test_a_template_that_is_gone_is_replaced():
    workers = Workers(most=1)
    pid, template = workers.submit(
        "pids", eval, "[__import__('os').getpid(), __import__('os').getppid()]"
    ).result(60)
    os.kill(template, signal.SIGKILL)
    os.kill(pid, signal.SIGKILL)
    assert workers.submit("root", math.sqrt, 4.0).result(60) == 2.0
    workers.close()


def test_what_is_prepared_is_there_in_every_worker_and_must_not_fail():
    workers = Workers()
    workers.prepare(exec, "import this_is_nowhere")
    with pytest.raises(ConfigError, match="No module named 'this_is_nowhere'"):
        workers.ready()
    workers.close()
    workers = Workers()
    workers.prepare(os._exit, 4)
    with pytest.raises(ConfigError, match="the process ended"):
        workers.ready()
    workers.close()


def test_a_wait_is_told_of(caplog, monkeypatch, workers: Workers):
    monkeypatch.setattr(module, "TOLD_AFTER", 0.1)
    caplog.set_level(logging.WARNING, "outfox")
    with pytest.raises(TimeoutError):
        workers.submit("the signal slow", time.sleep, 1e6, seconds=0.3).result(60)
    assert "waiting for the signal slow, at most 0.3 s" in caplog.text


def test_what_a_worker_logs_is_logged_here(caplog, workers: Workers):
    code = "__import__('logging').getLogger('outfox.own').warning('%s is odd by %d', 'it', 3)"
    workers.submit("warn", eval, code).result(60)
    assert caplog.records[-1].getMessage() == "it is odd by 3"
    assert caplog.records[-1].msg == "%s is odd by %d"


def test_what_a_worker_prints_does_not_reach_the_output(capfd, workers: Workers):
    workers.submit("print", print, "hello").result(60)
    assert capfd.readouterr().out == ""


def draw(seed: int) -> float:
    seeded(seed)
    return random.random()


def test_a_seed_makes_the_global_generators_begin_anew():
    assert draw(1) == draw(1) != draw(2)


def test_calls_of_a_home_meet_the_same_process(workers: Workers):
    first, second = Home(), Home()
    for name, home in (("a", first), ("b", second)):
        code = f"__import__('os').home_{name} = {name!r}"
        workers.submit("set", exec, code, home=home).result(60)
    for _ in range(3):
        for name, home in (("a", first), ("b", second)):
            code = f"__import__('os').home_{name}"
            assert workers.submit("get", eval, code, home=home).result(60) == name
    with pytest.raises(CrashError):
        workers.submit("end", os._exit, 1, home=first).result(60)
    assert first.worker is None
    # Lost, so that what was called before is done again: it may take as long as all of that.
    assert first.calls == 4
    workers.submit("slow", time.sleep, 0.6, seconds=0.3, home=first).result(60)
    with pytest.raises(UserCodeError, match="AttributeError"):
        workers.submit("get", eval, "__import__('os').home_a", home=first).result(60)
