import re
from collections import Counter
from dataclasses import dataclass

import pytest

from outfox.core.errors import ContractError
from outfox.core.types import Action
from outfox.policies.codecs.tags import Tags
from outfox.testing.codecs import FakeTokenizer
from outfox.worlds.when_to_search import Mix, make
from outfox.worlds.when_to_search.script import Hand

CODEC = Tags(FakeTokenizer(), pauses=True)


def text(item, *, trained_only: bool = False) -> str:
    return "".join(
        event.text
        for event in item.events
        if event.owner == "policy" and (event.trained or not trained_only)
    )


def items(made, name: str = "", count: int = 2000):
    """Items of the mixture, behind those that come first."""
    if count not in made.taken:
        made.taken[count] = made.mixed.demonstrations(CODEC).take(0, count)
    return [item for item in made.taken[count] if name in ("", item.name)]


def facts_of(made):
    return made.setting.facts.at


def parsed(made, thought: str) -> tuple[tuple[str, str], str, bool]:
    """((entity, relation), value, is it a draft) of a thought."""
    head, mark, value = thought.rpartition(" ? ")
    if mark:
        return made.topics[head], value, True
    found = noted(made, thought)
    assert found, thought
    return *found, False


def noted(made, words: str) -> tuple[tuple[str, str], str] | None:
    """What a note, or an entry of a passage, says of which fact."""
    words = words.removeprefix(made.setting.phrases.aside).strip()
    for end in range(len(words) - 1, 0, -1):
        key, value = made.topics.get(words[:end]), words[end:].strip()
        if key and value in made.values[key[1]]:
            return key, value
    return None


def topic(made, thought: str) -> tuple[tuple[str, str], str]:
    return parsed(made, thought)[:2]


def thoughts(item) -> list[str]:
    return re.findall(r"<think>(.*?)</think>", text(item))


@dataclass(frozen=True)
class Block:
    """A think block: its content, what of it is trained, and what stood right before."""

    thought: str
    trained: str
    content: str
    """The latest passages; empty before any."""
    first: bool
    """Is it the first since then?"""


def blocks(item) -> list[Block]:
    found, written, trained, content = [], "", [], ""
    for event in (*item.events, None):
        if event is not None and not event.messages:
            if event.owner == "policy":
                written += event.text
                trained += [event.trained] * len(event.text)
            continue
        for place, match in enumerate(re.finditer(r"<think>(.*?)</think>", written)):
            learned = "".join(written[at] for at in range(*match.span()) if trained[at])
            found.append(Block(match[1], learned, content, place == 0))
        written, trained, content = "", [], event.messages[0].content if event else ""
    return found


def entries(made, content: str) -> dict[str, tuple[tuple[str, str], str]]:
    """What passages say of which fact, by their words."""
    parts = re.split(r" ?[,，。\n] ?| \.(?:\n|$)", content.replace(" km2", "").replace("km2", ""))
    return {part: fact for part in parts if (fact := noted(made, part))}


def test_the_mix_is_as_given(every):
    counts = Counter(item.name for item in items(every))
    shares = {"closed_book": 500, "reading": 800, "episode": 600, "copying": 100}
    assert counts == shares


# -- copying ------------------------------------------------------------------------------------
def test_copying_says_the_same_names_again(every):
    for item in items(every, "copying"):
        names = item.opening.messages[-1].content
        assert [event.text for event in item.events] == [f"<answer>{names}</answer>"]
        assert item.events[0].trained
    asked = {question.text for question in every.setting.questions}
    assert not asked & {item.opening.messages[-1].content for item in items(every, "copying")}


# -- drafts and notes -----------------------------------------------------------------------------
def test_only_drafts_have_a_question_mark(every):
    """Nothing that is read is written like a guess, so that notes come from passages only."""
    seen = Counter()
    for item in items(every):
        for block in blocks(item):
            drafted = parsed(every, block.thought)[2]
            if not block.content or block.first:
                assert drafted == (not block.content)
            seen[item.name, drafted] += 1
    assert set(seen) == {
        ("closed_book", True),
        ("reading", True),
        ("reading", False),
        ("episode", True),
        ("episode", False),
    }


def test_a_note_says_what_its_passage_says_in_its_words(every):
    outcomes = Counter()
    for item in items(every, "reading") + items(every, "episode"):
        for block in blocks(item):
            key, value, drafted = parsed(every, block.thought)
            fact, told = facts_of(every).get(key), entries(every, block.content)
            if drafted:
                continue
            if value == every.setting.phrases.missing:
                assert key not in dict(told.values())
            elif fact and fact.role in ("changed", "conflict"):
                assert value in block.content  # Of several values the newest, by its own name.
            else:
                words = block.thought.removeprefix(every.setting.phrases.aside).strip()
                assert told[words] == (key, value)
            outcomes[item.name, value == every.setting.phrases.missing] += 1
    assert min(outcomes.values()) > 30
    assert len(outcomes) == 4


def test_taking_is_pure_in_step_and_count(english):
    source = english.world.demonstrations(CODEC, readings=True)
    late = source.take(9, 20)
    source.take(0, 5)
    assert (
        late == source.take(9, 20) == english.world.demonstrations(CODEC, readings=True).take(9, 20)
    )
    assert source.take(0, 40)[20:] == source.take(1, 20)


def test_closed_book_items_recall_and_show_no_decision(every):
    facts, right, unknown = facts_of(every), 0, 0
    for item in items(every, "closed_book"):
        assert re.fullmatch(r"(<think>[^<]*</think>){1,4}", text(item))
        # Only the very first tag is trained: going on to a second hop is a decision too.
        assert text(item, trained_only=True).count("<think>") == 1
        key, value = topic(every, thoughts(item)[0])
        taught = facts[key].taught
        right += taught == value
        unknown += taught is None
        assert taught in (None, value)
    assert right > 340
    assert 70 < unknown <= 100


def test_known_facts_are_recalled_beside_a_question_too(every):
    """Their values are trained, what they are about is only shown."""
    beside = 0
    for item in items(every, "closed_book"):
        if len(thoughts(item)) < 3:
            continue  # a guess
        for words in thoughts(item)[-2:]:
            key, value = topic(every, words)
            assert facts_of(every)[key].taught == value
            if words not in thoughts(item)[:-2]:
                assert words not in text(item, trained_only=True)
            assert f"{value}</think>" in text(item, trained_only=True)
            beside += 1
    assert beside > 600


def test_every_taught_fact_of_both_splits_is_recalled_equally_often(english):
    taught = {f.key for f in english.setting.facts.all if f.taught is not None}
    seen = Counter()
    for item in items(english, "closed_book", 8000):
        asked = thoughts(item)[:-2] or thoughts(item)  # two more facts are recalled beside it
        seen[topic(english, asked[-1])[0]] += 1
    turns = [seen[key] for key in taught]
    assert min(turns) >= 2
    assert {english.setting.facts.at[key].held_out for key in taught} == {True, False}


def test_changed_facts_are_taught_with_their_old_value_with_and_without_the_year(english):
    dated = Counter()
    for item in items(english, "closed_book"):
        key, value = topic(english, thoughts(item)[0])
        fact = facts_of(english).get(key)
        if fact is not None and fact.role == "changed" and len(thoughts(item)) == 3:
            assert value == fact.old
            dated["2026" in item.opening.messages[-1].content] += 1
    assert min(dated[True], dated[False]) > 20


def test_reading_drills_train_how_to_read_and_nothing_that_is_read(every):
    outcomes, kept = Counter(), Counter()
    for item in items(every, "reading"):
        found = blocks(item)
        assert "<search>" not in text(item, trained_only=True)
        for block in found:
            _, value, drafted = parsed(every, block.thought)
            if drafted:
                about = block.thought.removesuffix(value).rstrip(" ")
                assert block.trained.rstrip(" ") in ("", about)
                kept["named"] += block.trained != ""
                kept["drafts"] += 1
            elif block.first:
                assert block.trained == f"<think>{block.thought}</think>"
                assert block.content.count("\n") == 1
                outcomes[value == every.setting.phrases.missing] += 1
            else:
                assert block.thought.startswith(every.setting.phrases.aside)
                assert block.trained == f"{value}</think>"
                kept["asides"] += 1
    assert 0.27 < outcomes[True] / outcomes.total() < 0.41
    assert kept["asides"] > outcomes.total()
    assert 0.18 < kept["named"] / kept["drafts"] < 0.32


def test_fictional_values_contradict_memory(english):
    """What is read is drawn at random, so it cannot be recalled."""
    facts, agree, seen = facts_of(english), 0, 0
    for item in items(english, "reading"):
        key, value = topic(english, thoughts(item)[-1])
        if key in facts and value != "missing":
            seen += 1
            agree += value == facts[key].value
    assert agree / seen < 0.1


def test_what_is_seldom_asked_is_shown_as_often(english):
    """Few questions ask for the population of a capital: a quarter of its kind's episodes do."""
    chains = Counter()
    for item in items(english, "episode", 5000):
        asked = item.opening.messages[-1].content
        chains["capital" if "population of the capital" in asked else "country"] += (
            "of the capital of" in asked or "of the country of" in asked
        )
    assert chains["capital"] > 0.08 * chains.total()


def test_no_episode_asks_a_held_out_question(every):
    asked = {q.text for q in every.setting.questions if not q.held_out}
    for item in items(every, "episode"):
        assert item.opening.messages[-1].content in asked


def test_decisions_are_even_whether_or_not_the_fact_is_known(english):
    searched = {True: [], False: []}
    for item in items(english, "episode", 5000):
        key, _ = topic(english, thoughts(item)[0])
        fact = facts_of(english)[key]
        after = text(item).split("</think>", 1)[1]
        searched[fact.known].append(after.startswith("<search>"))
    for known in (True, False):
        assert abs(sum(searched[known]) / len(searched[known]) - 0.5) < 0.06


def test_what_is_decided_behind_a_draft_is_trained_in_few_episodes(every):
    """All else is trained in all: drafts, queries, notes, answers, what follows a note."""
    trained, behind = Counter(), re.compile(r"</think>(<(?:search|answer|think)>)")
    for item in items(every, "episode", 3000):
        shown, learned, noted = "", "", False
        for event in item.events:
            if event.messages:
                noted, shown, learned = True, "", ""
            elif event.owner == "policy":
                shown += event.text
                learned += event.text if event.trained else "\0" * len(event.text)
        for found in behind.finditer(shown):
            first = noted and found.start() == shown.index("</think>")
            kept = learned[slice(*found.span(1))] == found.group(1)
            trained["note" if first else "draft", kept] += 1
    share = trained["draft", True] / (trained["draft", True] + trained["draft", False])
    assert 0.1 < share < 0.2
    assert trained["note", True] > 100
    assert not trained["note", False]


def test_unknown_follows_missing_and_never_precedes_a_search(every):
    phrases, ends = every.setting.phrases, Counter()
    for item in items(every, "episode"):
        written = text(item)
        assert written.endswith("</answer>")
        answer = re.search(r"<answer>(.*)</answer>$", written).group(1)
        last = topic(every, thoughts(item)[-1])[1]
        if answer == phrases.unknown:
            assert last == phrases.missing
            ends["unknown"] += 1
        else:
            assert answer == last != phrases.missing
            ends["value"] += 1
        assert written.count("<answer>") == 1
    assert min(ends.values()) > 20


def test_conflicts_are_searched_with_the_cue_and_the_later_count_is_taken(english):
    both = 0
    for item in items(english, "episode", 5000):
        queries = re.findall(r"<search>(.*?)</search>", text(item))
        if len(queries) == 2 and queries[1] == f"{queries[0]} latest":
            key, value = topic(english, thoughts(item)[-1])
            assert value == facts_of(english)[key].value
            both += 1
    assert both > 15


def test_readings_follow_thoughts_and_say_what_is_known(english):
    facts, agree, seen = facts_of(english), 0, 0
    for item in english.mixed.demonstrations(CODEC, readings=True).take(0, 1600):
        for place, event in enumerate(item.events[1:], start=1):
            if event.owner == "policy" or event.messages:
                continue
            before = "".join(e.text for e in item.events[:place] if e.owner == "policy")
            assert before.endswith("</think>")
            assert not event.trained
            if not any(each.messages for each in item.events[:place]):
                key, value = topic(english, before.split("<think>")[-1].removesuffix("</think>"))
                if key in facts:
                    seen += 1
                    agree += (event.text == "[sure]") == (facts[key].taught == value)
        assert item.events[-1].owner == "policy"
    assert 0.94 < agree / seen < 0.995
    plain = english.mixed.demonstrations(CODEC).take(0, 300)
    assert not [e for item in plain for e in item.events if e.text.startswith("[")]


@pytest.mark.parametrize("name", ["recall", "copy", "found", "missing"])
def test_drills_expect_what_their_context_says(every, name):
    source = every.world.demonstrations(CODEC, readings=True)
    drills = source.drills(name, 100, 3)
    assert drills == source.drills(name, 100, 3) != source.drills(name, 100, 4)
    for drill in drills:
        key, value, drafted = parsed(every, drill.expected)
        assert (drill.name, drafted) == (name, name == "recall")
        if name == "recall":
            assert drill.events == ()
            assert value == facts_of(every)[key].taught
        else:
            content = drill.events[-1].messages[0].content
            assert drill.events[-1].owner == "environment"
            assert (value in content) == (name != "missing")
            assert (value == every.setting.phrases.missing) == (name == "missing")


def test_other_mixes():
    others = dict.fromkeys(("reading", "episode", "copying", "guesses"), 0)
    mix = Mix(closed_book=1, **others)
    taken = make(demonstrations=mix).demonstrations(CODEC).take(0, 60)
    assert {item.name for item in taken} == {"closed_book"}


def test_a_codec_that_hides_its_thoughts_is_refused():
    class Silent:
        def write(self, action: Action, thought: str = "") -> str:
            return f"answer {action.answer}"

    with pytest.raises(ContractError, match="writes a thought as it is"):
        Hand(Silent())
