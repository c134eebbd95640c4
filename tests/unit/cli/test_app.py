import signal
import subprocess
import sys
from importlib.metadata import version

import pytest

from outfox import cli
from outfox.cli import VERBS, command, main, verb
from outfox.core.errors import ConfigError, DataError


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    return int(caught.value.code or 0)


def test_help_lists_every_verb(capsys: pytest.CaptureFixture[str]):
    assert run("--help") == 0
    told = capsys.readouterr().out
    for name, purpose in VERBS.items():
        assert name in told
        assert purpose in told
    assert "Example: outfox train" in told


def leaves(group: object, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Paths of all commands, groups included."""
    found = [path]
    for name, each in getattr(group, "commands", {}).items():
        found += leaves(each, (*path, name))
    return found


@pytest.mark.parametrize("name", VERBS)
def test_every_verb_has_a_purpose_and_an_example(name: str, capsys: pytest.CaptureFixture[str]):
    app = command().commands[name].make_context(name, [], resilient_parsing=True).command
    for path in leaves(app):
        assert run(name, *path, "--help") == 0
        told = capsys.readouterr().out
        assert f"Example: outfox {name}" in told
        assert told.count("\n") > 5
    assert VERBS[name] == app.get_short_help_str(80)


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]):
    assert run("--version") == 0
    assert capsys.readouterr().out == f"outfox {version('outfox')}\n"


def test_an_unknown_verb_or_option_is_bad_input(capsys: pytest.CaptureFixture[str]):
    assert run("trian") == 2
    assert "No such command 'trian'. Did you mean 'train'?" in capsys.readouterr().err
    assert run("doctor", "--jsn") == 2
    assert "--json" in capsys.readouterr().err


class Fails:
    """Stands for the whole command line."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __call__(self, **_: object) -> None:
        raise self.error


@pytest.mark.parametrize("kind", [ConfigError, DataError])
def test_our_errors_are_one_line_each_and_bad_input(
    kind: type[Exception], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(cli, "command", lambda: Fails(kind("steps: wrong\nseed: wrong too")))
    assert run() == 2
    told = capsys.readouterr()
    assert told.err == "outfox: steps: wrong\noutfox: seed: wrong too\n"
    assert told.out == ""


def test_a_fault_of_ours_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cli, "command", lambda: Fails(ZeroDivisionError("ours")))
    with pytest.raises(ZeroDivisionError):
        main([])


def test_ctrl_c_exits_with_130(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cli, "command", lambda: Fails(KeyboardInterrupt()))
    assert run() == 130


INTERRUPTED = """
import time
import typer
from outfox import cli

app = cli.verb("")

@app.command()
def wait() -> None:
    print("ready", flush=True)
    time.sleep(30)

cli.command = lambda: typer.main.get_command(app)
cli.main([])
"""


def test_ctrl_c_in_a_verb_shows_no_traceback():
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=20)
    assert process.returncode == 130
    assert told == ""


def test_a_verb_app_shows_its_example():
    assert verb("Example: x").info.epilog == "Example: x"
