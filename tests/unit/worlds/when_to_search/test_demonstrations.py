import re
from collections import Counter

import pytest

from outfox.core.errors import ContractError
from outfox.core.types import Action
from outfox.policies.codecs.tags import Tags
from outfox.testing.codecs import FakeTokenizer
from outfox.worlds.when_to_search import Mix, make
from outfox.worlds.when_to_search.script import Hand

CODEC = Tags(FakeTokenizer(), pauses=True)
DECISION = re.compile(r"<(search|answer|think)>")


def text(item, *, trained_only: bool = False) -> str:
    return "".join(
        event.text
        for event in item.events
        if event.owner == "policy" and (event.trained or not trained_only)
    )


def items(made, name: str = "", count: int = 2000):
    if count not in made.taken:
        made.taken[count] = made.world.demonstrations(CODEC).take(0, count)
    return [item for item in made.taken[count] if name in ("", item.name)]


def facts_of(made):
    return made.setting.facts.at


def topic(made, thought: str) -> tuple[tuple[str, str], str]:
    """((entity, relation), value) of a thought."""
    head, _, value = thought.rpartition(" : ")
    for relation, word in made.setting.phrases.relations.items():
        entity = head.removesuffix(made.world.lexicon.separator + word)
        if entity != head:
            return (entity, relation), value
    raise AssertionError(thought)


def thoughts(item) -> list[str]:
    return re.findall(r"<think>(.*?)</think>", text(item))


def test_the_mix_is_as_given(every):
    counts = Counter(item.name for item in items(every))
    assert counts == {"closed_book": 600, "reading": 700, "episode": 700}


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
        assert re.fullmatch(r"(<think>[^<]*</think>){1,2}", text(item))
        # Only the very first tag is trained: going on to a second hop is a decision too.
        assert text(item, trained_only=True).count("<think>") == 1
        key, value = topic(every, thoughts(item)[0])
        taught = facts[key].taught
        right += taught == value
        unknown += taught is None
        assert taught in (None, value)
    assert right > 450
    assert 90 < unknown <= 120


def test_every_taught_fact_of_both_splits_is_recalled_equally_often(english):
    taught = {f.key for f in english.setting.facts.all if f.taught is not None}
    seen = Counter()
    for item in items(english, "closed_book", 5000):
        seen[topic(english, thoughts(item)[-1])[0]] += 1
    turns = [seen[key] for key in taught]
    assert min(turns) >= 2
    assert {english.setting.facts.at[key].held_out for key in taught} == {True, False}


def test_changed_facts_are_taught_with_their_old_value_with_and_without_the_year(english):
    dated = Counter()
    for item in items(english, "closed_book"):
        key, value = topic(english, thoughts(item)[0])
        fact = facts_of(english).get(key)
        if fact is not None and fact.role == "changed" and len(thoughts(item)) == 1:
            assert value == fact.old
            dated["2026" in item.opening.messages[-1].content] += 1
    assert min(dated[True], dated[False]) > 20


def test_reading_drills_train_the_note_alone(every):
    missing = every.setting.phrases.missing
    outcomes = Counter()
    for item in items(every, "reading"):
        trained = text(item, trained_only=True)
        assert re.fullmatch(r"(<think>[^<]*</think>){1,2}", trained)
        passages = [m.content for event in item.events for m in event.messages]
        for note, content in zip(
            re.findall(r"<think>(.*?)</think>", trained), passages, strict=True
        ):
            (entity, _), value = topic(every, note)
            assert content.count("\n") == 1
            if value == missing:
                outcomes["missing"] += 1
            else:
                assert value in content
                assert entity in content
                outcomes["found"] += 1
    assert 0.34 < outcomes["missing"] / outcomes.total() < 0.48


def test_fictional_values_contradict_memory(english):
    """What is read is drawn at random, so it cannot be recalled."""
    facts, agree, seen = facts_of(english), 0, 0
    for item in items(english, "reading"):
        key, value = topic(english, thoughts(item)[-1])
        if key in facts and value != "missing":
            seen += 1
            agree += value == facts[key].value
    assert agree / seen < 0.1


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
        assert len(item.events[-1].text.split("<answer>")) == 2
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
    agree, seen = 0, 0
    for item in english.world.demonstrations(CODEC, readings=True).take(0, 1000):
        for place, event in enumerate(item.events[1:], start=1):
            before = item.events[place - 1]
            if event.owner == "environment" and event.text:
                assert before.text.endswith("</think>")
                assert not event.trained
                key, value = topic(english, thoughts_of(before.text)[-1])
                fact = facts_of(english).get(key)
                drafted = not any(e.messages for e in item.events[:place])
                if drafted and fact is not None:
                    seen += 1
                    agree += (event.text == "[sure]") == (fact.taught == value)
        assert item.events[-1].owner == "policy"
    assert 0.94 < agree / seen < 0.995
    plain = english.world.demonstrations(CODEC).take(0, 300)
    assert not [e for item in plain for e in item.events if e.text.startswith("[")]


def thoughts_of(written: str) -> list[str]:
    return re.findall(r"<think>(.*?)</think>", "<think>" * ("<think>" not in written) + written)


@pytest.mark.parametrize("name", ["recall", "copy", "found", "missing"])
def test_drills_expect_what_their_context_says(every, name):
    source = every.world.demonstrations(CODEC, readings=True)
    drills = source.drills(name, 100, 3)
    assert drills == source.drills(name, 100, 3) != source.drills(name, 100, 4)
    for drill in drills:
        key, value = topic(every, drill.expected)
        assert (drill.name, drill.value) == (name, value)
        if name == "recall":
            assert drill.events == ()
            assert value == facts_of(every)[key].taught
        else:
            content = drill.events[-1].messages[0].content
            assert (value in content) == (name != "missing")
            assert (value == every.setting.phrases.missing) == (name == "missing")


def test_other_mixes():
    world = make(demonstrations=Mix(closed_book=1, reading=0, episode=0, guesses=0))
    taken = world.demonstrations(CODEC).take(0, 60)
    assert {item.name for item in taken} == {"closed_book"}


def test_a_codec_that_hides_its_thoughts_is_refused():
    class Silent:
        def write(self, action: Action, thought: str = "") -> str:
            return f"answer {action.answer}"

    with pytest.raises(ContractError, match="writes a thought as it is"):
        Hand(Silent())
