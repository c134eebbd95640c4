"""Every wait has a deadline: a call that blocks without one is listed here, with what bounds it."""

import ast
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "outfox"
BLOCKS = {
    "acquire",
    "communicate",
    "get",
    "join",
    "recv",
    "recv_bytes",
    "result",
    "select",
    "wait",
}
BOUNDED = {
    "cli/processes.py worker.there.recv()": "polled before, with a deadline",
    "core/isolation/process.py self._control.recv()": "polled before, with a deadline",
    "core/isolation/template.py control.recv()": "in the template: for orders, as long as it lives",
    "core/isolation/template.py run.recv_bytes()": "in a worker: for calls, as long as it lives",
    "core/isolation/workers.py worker.inbox.get()": "a thread that is idle",
    "rewards/isolated.py future.result()": "the workers keep the deadline of each call",
    "rewards/adapters/foreign.py pool.submit(asyncio.run, _gathered(waiting)).result()": (
        "code of the user's own: the deadline of its worker"
    ),
    "rollout/group.py task.result()": "it is done",
    "worlds/rows/demonstrations.py pool.submit(asyncio.run, self._ask()).result()": (
        "the environment keeps the deadline of each call"
    ),
    "worlds/tools/own.py PLAYING.get()": "a context variable",
}


def test_what_blocks_has_a_deadline():
    found = {
        f"{path.relative_to(SOURCE)} {ast.unparse(node)}"
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if node.func.attr in BLOCKS and not node.args and not node.keywords
    }
    assert found == set(BOUNDED)
