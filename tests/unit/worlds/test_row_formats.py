"""Rows of other systems, read as their own tools write them."""

import datetime
import decimal
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from outfox.core.config import Part
from outfox.core.errors import ConfigError, DataError
from outfox.core.parts import Parts
from outfox.core.types import Message
from outfox.worlds.tasks.formats import make_format
from outfox.worlds.tasks.formats.auto import whose
from outfox.worlds.tasks.rows import load_tasks, tasks_from_rows

PREFIX = "Answer the given question. For example, <answer> Beijing </answer>. Question: "
SEARCH_R1 = [
    {
        "id": f"train_{n}",
        "question": f"{asked}?",
        "golden_answers": golds,
        "data_source": "nq",
        "prompt": [{"role": "user", "content": f"{PREFIX}{asked}?\n"}],
        "ability": "fact-reasoning",
        "reward_model": {"style": "rule", "ground_truth": {"target": golds}},
        "extra_info": {"split": "train", "index": n},
    }
    for n, (asked, golds) in enumerate(
        [("which river flows through cologne", ["Rhine", "Rhein"]), ("who wrote faust", ["Goethe"])]
    )
]
VERL = [
    {
        "data_source": "openai/gsm8k",
        "prompt": [{"role": "user", "content": "2 + 3? Answer after ####."}],
        "ability": "math",
        "reward_model": {"style": "rule", "ground_truth": "5"},
        "extra_info": {"index": 0, "question": "2 + 3?", "tools_kwargs": {"calc": {"seed": 1}}},
    },
    {
        "data_source": "countdown",
        "prompt": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Make 24 of 4, 6, 1."},
        ],
        "ability": "math",
        "reward_model": {"style": "rule", "ground_truth": "24"},
        "extra_info": {"index": 0, "question": None, "tools_kwargs": None},
    },
]
EASYR1 = [
    {"problem": "2 + 3?", "answer": "5", "level": 1},
    {"problem": "3 + 4?", "answer": "7", "level": 2},
]
TRL_TEXT = [{"prompt": "The capital of France is", "solution": "Paris", "level": 1}] * 2
TRL_CHAT = [{"prompt": [{"role": "user", "content": "2 + 3?"}], "solution": "5", "level": 1}] * 2


def made(**settings):
    name = settings.pop("type")
    return make_format(Part(type=name, settings=settings), Parts())


def both(folder: Path, rows: list[dict]) -> list[Path]:
    """The rows as JSON lines and as Parquet."""
    lines, table = folder / "train.jsonl", folder / "train.parquet"
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows))
    pq.write_table(pa.Table.from_pylist(rows), table)
    return [lines, table]


@pytest.mark.parametrize("rows", [SEARCH_R1, VERL, TRL_TEXT, TRL_CHAT])
def test_json_lines_and_parquet_of_other_systems_give_the_same_tasks(tmp_path: Path, rows):
    lines, table = (load_tasks(path) for path in both(tmp_path, rows))
    assert len(lines) == 2
    assert [task.task_id for task in lines] == ["train-1", "train-2"]
    assert lines == table


def test_search_r1_rows(tmp_path: Path):
    for path in both(tmp_path, SEARCH_R1):
        river, faust = load_tasks(path)
        asked = f"{PREFIX}which river flows through cologne?\n"
        assert river.prompt == (Message(role="user", content=asked),)
        assert river.reference == {"type": "text", "answer": "Rhine", "aliases": ["Rhein"]}
        assert faust.reference == {"type": "text", "answer": "Goethe", "aliases": []}
        kept = {key: value for key, value in SEARCH_R1[0].items() if key != "prompt"}
        assert river.metadata == kept


def test_verl_rows_of_several_sources(tmp_path: Path):
    for path in both(tmp_path, VERL):
        sum_of_two, countdown = load_tasks(path, made(type="verl"))
        assert sum_of_two.reference == "5"
        assert sum_of_two.metadata["question"] == "2 + 3?"
        assert sum_of_two.metadata["extra_info"]["tools_kwargs"] == {"calc": {"seed": 1}}
        assert [message.role for message in countdown.prompt] == ["system", "user"]
        assert "question" not in countdown.metadata


def test_a_gold_of_the_users_own_shape_is_kept_for_his_own_function():
    gold = {"target": 24, "numbers": [4, 6, 1]}
    row = VERL[0] | {"reward_model": {"style": "rule", "ground_truth": gold}}
    [task] = tasks_from_rows([row])
    assert task.reference == gold


def test_a_prompt_under_another_key():
    row = {"source_prompt": "2 + 3?", "reward_model": {"ground_truth": "5"}}
    [task] = tasks_from_rows([row], read=made(type="verl", prompt_key="source_prompt"))
    assert task.prompt == (Message(role="user", content="2 + 3?"),)
    with pytest.raises(DataError, match=r"'prompt' is missing; .*: set tasks\.format\.prompt_key"):
        tasks_from_rows([row])


def test_easyr1_rows_by_key_and_template(tmp_path: Path):
    (tmp_path / "math.jinja").write_text("{{ content | trim }} Put it in \\boxed{}.\n\n")
    parts = Parts(folders=(tmp_path,))
    settings = {"prompt_key": "problem", "format_prompt": "math.jinja"}
    read = make_format(Part(type="easyr1", settings=settings), parts)
    for path in both(tmp_path, EASYR1):
        first, second = load_tasks(path, read)
        asked = "2 + 3? Put it in \\boxed{}."
        assert first.prompt == (Message(role="user", content=asked),)
        assert (first.reference, second.reference) == ("5", "7")
        kept = {"question": "2 + 3?", "answer": "5", "ground_truth": "5", "level": 1}
        assert first.metadata == kept
    plainly = made(type="easyr1", prompt_key="problem")
    assert load_tasks(path, plainly)[0].prompt == (Message(role="user", content="2 + 3?"),)


def test_a_template_is_refused_with_the_reason(tmp_path: Path):
    def template(text: str):
        (tmp_path / "t.jinja").write_text(text)
        return made(type="easyr1", prompt_key="problem", format_prompt=str(tmp_path / "t.jinja"))

    with pytest.raises(DataError, match=r"row 1: .* is given `content` and nothing else; 'name'"):
        tasks_from_rows(EASYR1, read=template("{{ content }} {{ name }}"))
    with pytest.raises(DataError, match=r"row 1: .*format_prompt"):
        tasks_from_rows(EASYR1, read=template("{{ content.__class__.__mro__ }}"))
    with pytest.raises(ConfigError, match="is no jinja"):
        template("{{ content")
    with pytest.raises(ConfigError, match="cannot be read: check the path"):
        made(type="easyr1", format_prompt=str(tmp_path / "none.jinja"))


def test_trl_rows_keep_their_prompt_and_columns(tmp_path: Path):
    for rows, path in [(TRL_TEXT, tmp_path / "a"), (TRL_CHAT, tmp_path / "b")]:
        path.mkdir()
        for file in both(path, rows):
            task = load_tasks(file)[0]
            assert task.reference == rows[0]["solution"]
            assert task.metadata == rows[0]
            assert task.prompt[-1].role == "user"


def test_a_trl_row_may_be_without_a_gold():
    [task] = tasks_from_rows([{"prompt": "Tell a story."}], read=made(type="trl"))
    assert task.reference is None
    assert task.metadata == {"prompt": "Tell a story.", "answerable": True}
    row = {"prompt": "2 + 3?", "label": 5}
    [task] = tasks_from_rows([row], read=made(type="trl", answer_key="label"))
    assert task.reference == {"type": "number", "answer": "5"}
    with pytest.raises(DataError, match=r"'gold' is missing; .*set tasks\.format\.answer_key"):
        tasks_from_rows([row], read=made(type="trl", answer_key="gold"))


@pytest.mark.parametrize(
    ("columns", "name"),
    [
        (("data_source", "prompt", "reward_model", "answer"), "verl"),
        (("prompt", "answer"), "rows"),
        (("question", "reference"), "rows"),
        (("prompt", "solution"), "trl"),
        (("prompt", "ground_truth"), "trl"),
        (("prompt",), None),
        (("problem", "answer"), None),
    ],
)
def test_columns_say_whose_rows_they_are(columns, name):
    assert whose(columns) == name


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"problem": "2 + 3?", "answer": "5"}, r"row 2: .*'prompt' or 'question'.*type: easyr1"),
        ({"prompt": "2 + 3?"}, r"row 2: .*'reference' or 'answer'.*set tasks\.format to verl, trl"),
    ],
)
def test_nothing_is_guessed(row, message):
    with pytest.raises(DataError, match=message):
        tasks_from_rows([SEARCH_R1[0], row])


WRONG = [
    ("verl", {"reward_model": None}, "'reward_model' is an object with a 'ground_truth'"),
    ("verl", {"reward_model": {"style": "model"}}, "only a reward model scores have none"),
    ("verl", {"reward_model": {"ground_truth": {"target": []}}}, "the gold is a text"),
    ("verl", {"reward_model": {"ground_truth": float("nan")}}, "the gold is a text"),
    ("verl", {"prompt": [{"role": "user", "content": [{"type": "image"}]}]}, "text 'content'"),
    ("verl", {"prompt": []}, "'prompt' is a text or a list of chat messages"),
    ("verl", {"images": [{"bytes": "x"}]}, "the column 'images' holds media"),
    ("verl", {"extra_info": {"picture": b"x"}}, "the column 'extra_info' holds bytes"),
    ("easyr1", {"prompt": ["2 + 3?"]}, "'prompt' is a text"),
    ("easyr1", {"answer": [["5"]]}, "the gold is a text"),
    ("trl", {"image": "x.png"}, "the column 'image' holds media"),
    ("trl", {"prompt": 5}, "'prompt' is a text or a list"),
    ("trl", {"solution": ""}, "the gold is a text"),
]


@pytest.mark.parametrize(("name", "change", "message"), WRONG)
def test_a_wrong_row_of_another_system_is_named(name, change, message):
    good = {
        "verl": VERL[0],
        "easyr1": {"prompt": "2 + 3?", "answer": "5"},
        "trl": TRL_TEXT[0],
    }[name]
    with pytest.raises(DataError, match=f"train row 2: .*{message}"):
        tasks_from_rows([good, good | change], name="train", read=made(type=name))


def test_a_missing_column_names_what_is_there():
    with pytest.raises(DataError, match=r"'problem' is missing; found: prompt, answer: set"):
        tasks_from_rows(
            [{"prompt": "q", "answer": "a"}], read=made(type="easyr1", prompt_key="problem")
        )


def test_values_that_json_lacks_become_text_and_numbers(tmp_path: Path):
    rows = [
        {
            "question": "q",
            "answer": "a",
            "day": datetime.date(2024, 1, 2),
            "price": decimal.Decimal("1.50"),
            "pair": (1, 2),
        }
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "t.parquet")
    [task] = load_tasks(tmp_path / "t.parquet")
    assert task.metadata["day"] == "2024-01-02"
    assert task.metadata["price"] == 1.5
    assert task.metadata["pair"] == [1, 2]
    assert json.loads(json.dumps(dict(task.metadata))) == dict(task.metadata)


def test_files_that_cannot_be_read(tmp_path: Path):
    (tmp_path / "t.parquet").write_bytes(b"PAR0")
    with pytest.raises(DataError, match="is no Parquet file that can be read"):
        load_tasks(tmp_path / "t.parquet")
    (tmp_path / "t.jsonl").write_bytes(b'{"question": "q", "answer": "\xff"}\n')
    with pytest.raises(DataError, match="t row 1: JSON lines are UTF-8"):
        load_tasks(tmp_path / "t.jsonl")


def test_a_wrong_format_is_refused_with_a_hint():
    with pytest.raises(ConfigError, match=r"tasks\.format: no format is called 'easyr'"):
        made(type="easyr")
    with pytest.raises(ConfigError, match=r"tasks\.format\.prompt_kye: unknown key"):
        made(type="verl", prompt_kye="x")


def test_columns_of_other_names_are_given_ours():
    names = {"answer": "answers", "gold_evidence": "gold", "relevant_ids": "gold", "kind": "from"}
    read = made(type="rows", columns=names)
    row = {"question": "q", "answers": ["a", "b"], "gold": ["p1"], "from": "nq", "hops": 2}
    [task] = tasks_from_rows([row], read=read)
    assert task.reference == {"type": "text", "answer": "a", "aliases": ["b"]}
    shown = {"gold_evidence": ["p1"], "relevant_ids": ["p1"], "kind": "nq", "hops": 2}
    assert dict(task.metadata) == {"question": "q", **shown}
    ours = {"question": "q", "answer": "a", "kind": "own"}
    [plain] = tasks_from_rows([ours], read=read)
    assert plain == tasks_from_rows([ours])[0]
    with pytest.raises(DataError, match="row 1: the column 'reference' or 'answer' is missing"):
        tasks_from_rows([{"question": "q", "answer_text": "a"}], read=read)
