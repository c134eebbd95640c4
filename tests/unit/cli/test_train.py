"""Wrong input is one clear line, exit code 2, and nothing written."""

from pathlib import Path

import pytest

from outfox.cli import main
from outfox.cli.train import split_words

RECIPE = Path(__file__).parents[2] / "integration" / "recipes" / "small.yaml"

WRONG = [
    ("no such recipe", ["when-to-serch"], "Did you mean 'when-to-search'?"),
    ("no such file", ["mine/recipe.yaml"], "no recipe file at"),
    ("no value", ["steps"], "no shipped recipe is called 'steps'"),
    ("bad override", ["@", "steps"], "an override is written key.path=value, not 'steps'"),
    ("bad YAML", ["@", "world.shares={known: 1"], "world.shares: "),
    ("unknown key", ["@", "rollout.group_sise=4"], "Did you mean 'group_size'?"),
    ("unknown top key", ["@", "stepps=4"], "stepps: unknown key. Did you mean 'steps'?"),
    ("wrong type", ["@", "steps=many"], 'steps: must be a valid integer, not "many"'),
    ("a float for a count", ["@", "steps=2.0"], "steps: must be a valid integer, not 2.0; write 2"),
    ("negative steps", ["@", "steps=-1"], "steps: must be greater than or equal to 0, not -1"),
    ("no process", ["@", "processes=0"], "processes: must be greater than 0, not 0"),
    ("no thread", ["@", "threads=0"], "threads: must be greater than 0, not 0"),
    ("no task", ["@", "rollout.tasks=0"], "rollout.tasks: must be greater than 0, not 0"),
    ("no sample", ["@", "eval.samples=0"], "eval.samples: must be greater than 0, not 0"),
    ("no checkpoint", ["@", "save.keep=0"], "save.keep: must be greater than 0, not 0"),
    ("temperature", ["@", "sampling.temperature=0"], "must be greater than 0, not 0"),
    ("sampling", ["@", "sampling.top_p=0.5"], "sampling.top_p: unknown key"),
    ("width", ["@", "model.hidden=63"], "heads must divide hidden"),
    ("rubric", ["@", "rubric=defualt"], "Did you mean 'default'?"),
    ("rubric file", ["@", "rubric=mine.yaml"], "no rubric file at mine.yaml"),
    ("signal", ["@", "rubric={version: 1, gates: [leek]}"], "Did you mean 'leak'?"),
    ("signal file", ["@", "rubric={version: 1, gates: [mine.py:late]}"], "no file 'mine.py'"),
    ("algorithm", ["@", "algorithm=grop"], "Did you mean 'grpo'?"),
    ("world", ["@", "world=when-to-serch"], "Did you mean 'when-to-search'?"),
    ("codec", ["@", "codec=tag"], "Did you mean 'tags'?"),
    ("reading", ["@", "readings.draft=confident"], "Did you mean 'confidence'?"),
    ("tool", ["@", "tools=[mine.py:lookup]"], "no file 'mine.py'"),
    ("a function's settings", ["@", "tools=[{type: 'shlex:quote', x: 1}]"], "no settings; got x"),
    ("world's setting", ["@", "world.langage=zh"], "Did you mean 'language'?"),
    ("cold start's trainer", ["@", "cold_start.trainer.warmap=3"], "Did you mean 'warmup'?"),
    ("model", ["@", "model.path=./nowhere"], "'./nowhere' does not"),
    ("tasks of one's own", ["@", "tasks.path=mine.jsonl"], "makes its own tasks and corpus"),
    ("questions", ["@", "eval.questions=100000"], "lower eval.questions"),
    ("rows without tasks", ["@", "world=rows"], "set tasks.path"),
    ("no run", ["--resume", "nowhere"], "nowhere is no folder"),
    (
        "resume with settings",
        ["--resume", "nowhere", "steps=3"],
        "a resumed run keeps its settings",
    ),
]


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as caught:
        main(["train", *words])
    return int(caught.value.code or 0)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder, and nothing in the cache."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return here


@pytest.mark.parametrize(("words", "told"), [each[1:] for each in WRONG], ids=[w[0] for w in WRONG])
def test_wrong_input(words: list[str], told: str, folder: Path, capsys: pytest.CaptureFixture[str]):
    assert run(*(str(RECIPE) if word == "@" else word for word in words)) == 2
    said = capsys.readouterr()
    (line,) = said.err.splitlines()
    assert line.startswith("outfox: ")
    assert told in line
    assert said.out == ""
    assert list(folder.iterdir()) == []
    assert not (folder.parent / "cache").exists()


def test_a_model_folder_that_is_none(folder: Path, capsys: pytest.CaptureFixture[str]):
    (folder / "model").mkdir()
    (folder / "model" / "config.json").write_text("{}")
    assert run(str(RECIPE), "model.path=./model") == 2
    assert "A model folder holds its weights" in capsys.readouterr().err
    assert [path.name for path in folder.iterdir()] == ["model"]


def test_a_run_folder_that_holds_something_else(folder: Path, capsys: pytest.CaptureFixture[str]):
    (folder / "mine").mkdir()
    (folder / "mine" / "notes.txt").write_text("mine")
    assert run(str(RECIPE), "run.dir=mine") == 2
    assert "choose another run.dir" in capsys.readouterr().err
    assert [path.name for path in (folder / "mine").iterdir()] == ["notes.txt"]


def test_a_folder_without_a_run_cannot_be_resumed(folder: Path, capsys: pytest.CaptureFixture[str]):
    (folder / "mine").mkdir()
    assert run("--resume", "mine") == 2
    assert "a run folder has a run.yaml; mine has none" in capsys.readouterr().err


def test_code_of_ones_own_is_refused_when_asked_to(
    folder: Path, capsys: pytest.CaptureFixture[str]
):
    (folder / "mine.py").write_text("raise SystemExit('this file was run')\n")
    for words in ("rubric={version: 1, gates: [mine.py:late]}", "tools=[mine.py:lookup]"):
        assert run("--no-user-code", str(RECIPE), words) == 2
        assert "which --no-user-code refuses" in capsys.readouterr().err
    (folder / "mine.yaml").write_text(
        "{version: 1, gates: [mine.py:late], settings: {'mine.py:late': {adapter: my.py:other}}}"
    )
    tools = "tools=[mine.py:lookup, {type: my_module:search, seconds: 3}]"
    assert run("--no-user-code", str(RECIPE), "rubric=mine.yaml", tools, "world=mine.py:World") == 2
    named = "mine.py:World, mine.py:lookup, my_module:search, mine.py:late, my.py:other"
    assert (
        capsys.readouterr()
        .err.strip()
        .endswith(
            f"{named}: code of your own, which --no-user-code refuses; run without it, or name "
            "built-ins"
        )
    )
    assert {path.name for path in folder.iterdir()} == {"mine.py", "mine.yaml"}


def test_a_plain_function_is_no_signal(folder: Path, capsys: pytest.CaptureFixture[str]):
    (folder / "mine.py").write_text("def late(trajectory):\n    return 0.0\n")
    assert run(str(RECIPE), "rubric={version: 1, gates: [mine.py:late]}") == 2
    assert "write @outfox.signal(range=(0, 1), family=...)" in capsys.readouterr().err


def test_the_first_word_is_the_recipe_unless_it_is_an_override():
    assert split_words([]) == ("when-to-search", [])
    assert split_words(["steps=1"]) == ("when-to-search", ["steps=1"])
    assert split_words(["mine", "steps=1"]) == ("mine", ["steps=1"])
    assert split_words(["a=b/mine.yaml", "x=1"]) == ("a=b/mine.yaml", ["x=1"])
