"""A function in the signature of each system, through a rubric, on the same two episodes."""

from pathlib import Path

import pytest

from outfox.core.errors import ConfigError
from outfox.core.results import NotApplicable, SignalError, Value
from outfox.core.types import Document
from outfox.rewards.score import score
from outfox.testing.rewards import group, task

GOLD = {"target": ["Rhine", "Rhein"]}
ROW = {
    "data_source": "nq",
    "reward_model": {"style": "rule", "ground_truth": GOLD},
    "extra_info": {"index": 7},
}
PAGE = Document(id="d1", text="Cologne lies on the Rhine.")
PROMPT = "Which river? For example, <answer> Beijing </answer>."


def played(**metadata):
    """A right answer after a search, and a wrong one at once."""
    return group(
        task("t", PROMPT, {"type": "text", "answer": "Rhine"}, **(metadata or ROW)),
        ["<search>river</search>", PAGE, "<answer>Rhine</answer>"],
        ["<answer>Elbe</answer>"],
    )


@pytest.fixture
def reward(tmp_path: Path):
    """Writes a module and scores by one of its functions: `reward(code, "verl", ...)`."""

    def scored(code: str, adapter: str, *, name: str = "compute_score", episodes=None, **settings):
        (tmp_path / "reward.py").write_text(code)
        signal = f"{tmp_path}/reward.py:{name}"
        tree = {
            "version": 1,
            "outcome": {"signal": signal, "graded": True},
            "settings": {signal: {"adapter": adapter, **settings}},
        }
        scores = score(episodes or played(), tree, step=3)
        return [(each.total, each.results[signal]) for each in scores]

    return scored


# -- veRL -----------------------------------------------------------------------------------------
VERL = """
def compute_score(data_source, solution_str, ground_truth, extra_info=None, bonus=0.0):
    assert data_source == "nq" and extra_info["index"] == 7
    answer = solution_str.split("<answer>")[-1].split("</answer>")[0]
    right = float(answer in ground_truth["target"])
    return {"score": right + bonus, "acc": right, "turns": extra_info["num_turns"], "pred": answer}
"""
EM = """
import re

def compute_score_em(solution_str, ground_truth, method="strict", format_score=0.0, score=1.0):
    answers = re.findall(r"<answer>(.*?)</answer>", solution_str, re.DOTALL)
    if len(answers) <= 1:
        return 0
    return score if answers[-1].strip() in ground_truth["target"] else format_score
"""
VERL_BATCH = """
def compute_score(data_sources, solution_strs, ground_truths, extra_infos):
    assert len(data_sources) == len(extra_infos) == 2
    return [float(g["target"][0] in s) for s, g in zip(solution_strs, ground_truths)]
"""


def test_a_function_of_verl(reward):
    (right, said), (wrong, _) = reward(VERL, "verl")
    assert (right, wrong) == (1.0, 0.0)
    assert said == Value(value=1.0, details={"acc": 1.0, "turns": 2.0}, why="pred: 'Rhine'")
    totals = [total for total, _ in reward(VERL, "verl", range=[-1, 1], arguments={"bonus": -0.5})]
    assert totals == [0.75, 0.25]


def test_a_function_of_search_r1_sees_the_whole_sequence(reward):
    asked = {"name": "compute_score_em", "arguments": {"format_score": 0.1}}
    assert [total for total, _ in reward(EM, "verl", sees="sequence", **asked)] == [1.0, 0.1]
    assert [total for total, _ in reward(EM, "verl", **asked)] == [0.0, 0.0]


def test_a_batch_function_of_verl(reward):
    assert [total for total, _ in reward(VERL_BATCH, "verl")] == [1.0, 0.0]


def test_an_async_function_of_verl(reward):
    code = "async def compute_score(solution_str, ground_truth):\n    return 0.5\n"
    assert [total for total, _ in reward(code, "verl")] == [0.5, 0.5]


def test_what_a_function_does_to_its_input_stays_with_it(reward):
    code = """
def compute_score(solution_str, ground_truth, extra_info):
    extra_info["seen"] = extra_info.get("seen", 0) + 1
    ground_truth["target"].append("Elbe")
    return extra_info["seen"] / 2
"""
    episodes = played()
    assert [total for total, _ in reward(code, "verl", episodes=episodes)] == [0.5, 0.5]
    assert episodes.trajectories[0].task.metadata["extra_info"] == {"index": 7}
    assert GOLD == {"target": ["Rhine", "Rhein"]}


# -- EasyR1 ---------------------------------------------------------------------------------------
EASYR1 = """
REWARD_NAME = "river"
REWARD_TYPE = "batch"

def compute_score(reward_inputs, format_weight=0.1):
    if not isinstance(reward_inputs, list):
        raise ValueError("batch only")
    scores = []
    for given in reward_inputs:
        right = float(f"<answer>{given['ground_truth']}</answer>" in given["response"])
        overall = (1 - format_weight) * right + format_weight
        scores.append({"overall": overall, "accuracy": right, "length": given["response_length"]})
    return scores
"""
SEQUENTIAL = """
REWARD_TYPE = "sequential"

def compute_score(reward_input):
    return {"overall": float(reward_input["ground_truth"] in reward_input["response"])}
"""


def test_functions_of_easyr1(reward):
    row = played(answer="Rhine", ground_truth="Rhine")
    (right, said), (wrong, _) = reward(EASYR1, "easyr1", episodes=row)
    assert (right, wrong) == (pytest.approx(1.0), pytest.approx(0.1))
    assert said.details == {"accuracy": 1.0, "length": 2.0}
    weighed = reward(EASYR1, "easyr1", episodes=row, arguments={"format_weight": 0.5})
    assert [total for total, _ in weighed] == [1.0, 0.5]
    assert [total for total, _ in reward(SEQUENTIAL, "easyr1", episodes=row)] == [1.0, 0.0]


def test_a_setting_wins_over_the_modules_reward_type(reward):
    row = played(ground_truth="Rhine")
    faults = reward(EASYR1, "easyr1", episodes=row, reward_type="sequential")
    assert all("raised ValueError: batch only" in result.why for _, result in faults)
    with pytest.raises(ConfigError, match="is batch or sequential, not 'both'"):
        reward(SEQUENTIAL.replace("sequential", "both"), "easyr1")


# -- TRL ------------------------------------------------------------------------------------------
TRL = """
def compute_score(prompts, completions, completion_ids, solution, log_extra=None, **kwargs):
    assert len(prompts) == len(completion_ids) == len(kwargs["level"]) == 2
    kwargs["log_metric"]("step", kwargs["trainer_state"].global_step)
    log_extra("seen", [type(each).__name__ for each in completions])
    texts = [c if isinstance(c, str) else c[-1]["content"] for c in completions]
    return [1.0 if s in t else None for t, s in zip(texts, solution)]
"""


@pytest.mark.parametrize("prompt", [PROMPT, [{"role": "user", "content": PROMPT}]])
def test_a_function_of_trl(reward, prompt):
    row = played(prompt=prompt, solution="Rhine", level=1)
    (right, said), (left_out, unsaid) = reward(TRL, "trl", episodes=row)
    assert (right, left_out) == (1.0, None)
    assert isinstance(unsaid, NotApplicable)
    assert said.details == {"step": 3.0}
    assert said.why == f"seen: {type(prompt).__name__!r}"


def test_an_async_function_and_a_callable_object_of_trl(reward):
    code = """
class Length:
    __name__ = "length"
    def __call__(self, completion_ids, **kwargs):
        return [len(ids) for ids in completion_ids]

compute_score = Length()

async def late(completions, **kwargs):
    return [0.5 for _ in completions]
"""
    assert [total for total, _ in reward(code, "trl", range=[0, 4])] == [0.5, 0.25]
    assert [total for total, _ in reward(code, "trl", name="late")] == [0.5, 0.5]


def test_a_column_that_the_row_lacks_is_told(reward):
    ((total, result), _) = reward(TRL, "trl")
    assert total is None
    assert isinstance(result, SignalError)
    assert "it takes solution, and the row has" in result.why
    assert "read the rows with tasks.format=trl" in result.why


def test_completions_with_tool_messages(reward):
    code = """
def compute_score(completions, **kwargs):
    return [float(any(m["role"] == "tool" for m in c)) for c in completions]
"""
    assert [total for total, _ in reward(code, "trl")] == [0.0, 0.0]
    assert [total for total, _ in reward(code, "trl", sees="transcript")] == [1.0, 0.0]


# -- plain ----------------------------------------------------------------------------------------
def test_a_plain_function_says_by_its_parameters_what_it_sees(reward):
    code = """
def compute_score(answer, ground_truth, question, documents, calls, messages, weight, text=""):
    assert question.startswith("Which river?") and messages[0]["role"] == "user"
    assert len(documents) == len(calls) == text.count("<search>")
    return weight * (answer in ground_truth["target"])
"""
    assert [total for total, _ in reward(code, "plain", arguments={"weight": 0.5})] == [0.5, 0.0]


def test_a_plain_function_is_told_of_no_answer_by_an_empty_text(reward):
    code = "def compute_score(answer):\n    return len(answer) / 10\n"
    silent = group(task("t", "q", "a"), ["I do not know."])
    assert [total for total, _ in reward(code, "plain", episodes=silent)] == [0.0]


# -- all of them ----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("code", "settings", "message"),
    [
        ("def compute_score(answer): ...", {"adapter": "verl"}, "takes `solution_str`"),
        (VERL, {"adapter": "verl", "arguments": {"bonsu": 1}}, "no such parameter. Did you mean"),
        (VERL, {"adapter": "verl", "arguments": {"extra_info": {}}}, "is given by the adapter"),
        (VERL, {"adapter": "verl", "sees": "all"}, r"\.sees: must be 'policy', 'transcript'"),
        (
            VERL,
            {"adapter": "verl", "rnage": [0, 1]},
            r"\.rnage: unknown key\. Did you mean 'range'",
        ),
        (VERL, {"adapter": "verll"}, "no adapter is called 'verll'. Did you mean 'verl'"),
        (VERL, {"adapter": "plain"}, "needs data_source, solution_str, and the adapter gives"),
        ("def compute_score(): ...", {"adapter": "easyr1"}, "takes reward inputs"),
        ("compute_score = 5", {"adapter": "trl"}, "a reward is a function, not 5"),
        ("def compute_score(x): ...", {}, "write @outfox.signal.*or say how it is called"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_scored(tmp_path, code, settings, message):
    (tmp_path / "reward.py").write_text(code)
    signal = f"{tmp_path}/reward.py:compute_score"
    tree = {"version": 1, "outcome": {"signal": signal}, "settings": {signal: settings}}
    with pytest.raises(ConfigError, match=message):
        score(played(), tree)


def test_a_failing_function_leaves_its_episode_without_a_total(reward):
    code = """
def compute_score(solution_str, ground_truth):
    return {"Rhine": 1.0, "Elbe": "high"}[solution_str.split(">")[-2].split("<")[0]]
"""
    (right, _), (nothing, result) = reward(code, "verl")
    assert (right, nothing) == (1.0, None)
    assert "on task t (sibling 1) returned str 'high'; return a number" in result.why


def test_what_is_missing_can_be_deducted(tmp_path: Path):
    (tmp_path / "reward.py").write_text(
        "def formatted(completions, **kwargs):\n"
        "    return [float('<search>' in c[0]['content']) for c in completions]\n"
    )
    signal = f"{tmp_path}/reward.py:formatted"
    deducted = {"cap": 1.0, "deduct": {signal: 0.25}}
    tree = {
        "version": 1,
        "outcome": {"wrong": 0},
        "if_right": deducted,
        "if_not_right": deducted,
        "settings": {signal: {"adapter": "trl", "lack": True}},
    }
    assert [each.total for each in score(played(), tree)] == [1.0, -0.25]
