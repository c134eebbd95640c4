"""Every fault that users of other systems hit, and the tests that hold its right value.

Of each line: what triggers it, where it was seen, and tests by file and name. A test that is
renamed or removed is missed here.
"""

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
TOKENS, ACTIONS = "golden/test_faults_tokens.py", "golden/test_faults_actions.py"
ADVANTAGES, REWARDS = "golden/test_faults_advantages.py", "golden/test_faults_rewards.py"
WORLDS, RUNS = "golden/test_faults_worlds.py", "golden/test_faults_runs.py"
ISOLATED = "unit/rewards/test_isolated.py"
RUN, GROUP = "integration/test_run.py", "unit/rollout/test_group.py"

FAULTS = {
    # -- tokens, masks, text ----------------------------------------------------------------------
    "sampled ids that are no canonical tokenisation (verl#1668, verl#3720, trl#5144)": [
        (TOKENS, "ids_that_are_not_the_canonical_tokenisation_are_trained_as_sampled"),
        ("property/test_ledger_ids.py", "trained_ids_are_the_sampled_ids"),
        ("property/test_ledger.py", "trained_are_the_sampled_ids_and_no_others"),
    ],
    "pad is eos, an eos inside (trl#4974, Search-R1#19)": [
        (TOKENS, "an_eos_that_is_also_the_pad_id_is_trained"),
        ("unit/learning/test_samples.py", "an_eos_that_is_also_the_pad_id_is_trained"),
    ],
    "3 policy, 2 observation, 2 policy tokens (RAGEN#71)": [
        (TOKENS, "three_policy_two_observation_two_policy_tokens_give_mask_1110011"),
        ("unit/learning/test_local.py", "the_gradient_through_observation_tokens_is_exactly_zero"),
    ],
    "few-shot assistant turns in the prompt (NeMo-RL#2176)": [
        (TOKENS, "few_shot_assistant_turns_in_the_prompt_are_not_trained"),
    ],
    "control tokens in tool text (Agent-R1#30)": [
        (TOKENS, "control_tokens_in_tool_text_are_neither_control_tokens_nor_trained"),
        ("unit/learning/test_samples.py", "ids_put_into_tool_text_by_hand_are_masked"),
    ],
    "an observation of the limit, one more, multi-byte text (verl#4918)": [
        (TOKENS, "an_observation_is_cut_in_tokens_with_its_tag_closed"),
        (TOKENS, "a_cut_observation_is_recorded_as_truncated"),
    ],
    "the prompt grows past the window (verl#3948)": [
        (TOKENS, "the_head_is_never_dropped_the_episode_stops_with_max_tokens"),
        (TOKENS, "the_engines_context_length_is_a_limit_too"),
    ],
    "two tool messages in a row (slime#2263)": [
        (TOKENS, "two_tool_messages_in_a_row_are_rendered_alike_in_one_go_and_turn_by_turn"),
        (TOKENS, "a_codec_whose_history_is_no_prefix_is_refused_at_start_up"),
    ],
    "history rewritten by the environment (rLLM#352)": [
        (TOKENS, "a_history_rewritten_by_the_environment_goes_on_in_a_second_ledger"),
    ],
    "messages shared by siblings (AReaL#432)": [
        (TOKENS, "messages_shared_by_siblings_are_not_polluted_by_one_of_them"),
        (WORLDS, "siblings_share_nothing_that_can_be_appended_to"),
    ],
    # -- actions ----------------------------------------------------------------------------------
    "a tag in thinking before the real one (Search-R1)": [
        (ACTIONS, "tags_in_thinking_are_ignored"),
        (ACTIONS, "a_stop_string_in_thinking_does_not_end_the_turn"),
    ],
    "an answer, then a search (Search-R1)": [
        (ACTIONS, "the_first_complete_action_ends_the_turn_and_the_tail_is_not_there"),
    ],
    "an empty query (Search-R1)": [
        (ACTIONS, "an_empty_query_is_no_request_but_a_typed_observation_and_counted"),
    ],
    "the policy writes its own observation (DeepResearch#96)": [
        (ACTIONS, "an_observation_that_the_policy_forges_is_never_environment_text_and_flagged"),
        (ACTIONS, "what_only_an_environment_writes_is_flagged"),
    ],
    "a document holds tags (SkyRL, Search-R1)": [
        (ACTIONS, "a_document_that_holds_tags_cannot_act"),
        (REWARDS, "a_document_is_never_read_as_the_policy"),
        ("property/test_tags_text.py", "tool_text_keeps_its_limit_and_cannot_act"),
    ],
    "calls in another format than the parser's (verl#3008, rLLM#768)": [
        (ACTIONS, "a_parser_for_another_format_is_refused_at_start_up"),
        (ACTIONS, "turns_of_which_none_parses_are_reported"),
    ],
    "malformed JSON arguments (verl#3960)": [
        (ACTIONS, "malformed_json_arguments_are_told_to_the_policy_and_counted"),
        (WORLDS, "malformed_arguments_are_an_error_for_the_policy_and_counted_as_failure"),
        ("fuzz/test_fuzz_rows.py", "any_body_of_a_chat_server_is_a_message_or_a_parse_error"),
    ],
    "an async and a sync call in one turn (trl)": [
        (ACTIONS, "results_of_one_turn_stand_in_call_order_with_their_ids"),
        (WORLDS, "async_and_sync_calls_of_one_turn_keep_order_and_ids"),
    ],
    "a malformed call counted as a success (gem#39)": [
        (ACTIONS, "a_malformed_call_is_a_failure_and_ends_the_episode_when_it_goes_on"),
    ],
    # -- advantages and losses --------------------------------------------------------------------
    "a group of one (verl)": [
        (ADVANTAGES, "a_group_of_one_with_reward_1_gets_0_and_is_counted"),
    ],
    "all rewards equal up to rounding (trl#5777)": [
        (ADVANTAGES, "all_rewards_equal_up_to_rounding_give_exactly_0_and_are_counted"),
    ],
    "the same row number in two data sets (Search-R1)": [
        (ADVANTAGES, "row_7_of_a_and_row_7_of_b_are_two_groups_and_the_size_is_asserted"),
    ],
    "GAE over observation tokens (verl#2337, miles#1827)": [
        (ADVANTAGES, "gae_equals_the_result_with_observation_tokens_deleted"),
        ("property/test_credit.py", "gae_never_sees_observation_tokens"),
    ],
    "a reward of None among others (trl#5902, trl#6427)": [
        (ADVANTAGES, "rewards_none_and_three_times_minus_1_leave_none_out"),
    ],
    "signals that cancel (trl#3857)": [
        (ADVANTAGES, "signals_1_0_and_0_1_warn_and_normalize_then_sum_gives_a_signal"),
    ],
    "KL of tool tokens (slime#1370)": [(ADVANTAGES, "kl_of_tool_tokens_is_not_counted")],
    "10 policy and 500 tool tokens (OpenRLHF#1243)": [
        (ADVANTAGES, "10_policy_and_500_tool_tokens_are_10_tokens"),
    ],
    "a group with different problems in it (tinker-cookbook#771)": [
        (ADVANTAGES, "a_group_with_different_problems_in_it_is_refused"),
    ],
    # -- rewards ----------------------------------------------------------------------------------
    "a reward function returns or raises anything (verl#1031)": [
        (REWARDS, "numbers_of_any_make_are_values"),
        (REWARDS, "anything_else_is_an_error_that_names_signal_and_row"),
        (REWARDS, "what_it_raises_is_an_error_that_names_signal_and_row"),
        (REWARDS, "a_float_for_one_row_and_a_dict_for_another"),
        ("unit/rewards/adapters/test_foreign.py", "everything_else_is_an_error_that_names_the_row"),
    ],
    "a reward that hangs: a loop, a sleep, a regex (verl#5635, EasyR1#310)": [
        (ISOLATED, "a_signal_that_does_not_answer_is_a_timeout_of_its_row_alone"),
        (ISOLATED, "a_function_of_another_system_that_hangs_loses_its_row_alone"),
    ],
    "a reward that needs another column (EasyR1#390)": [
        (REWARDS, "whole_row_and_whole_trajectory_are_there"),
        (WORLDS, "every_column_of_the_row_reaches_the_reward"),
    ],
    "gold in any shape (Search-R1)": [
        (WORLDS, "a_gold_that_no_matcher_can_use_is_refused_at_load_with_its_row"),
        (REWARDS, "gold_that_can_be_read"),
        (REWARDS, "gold_that_cannot_be_read_names_the_row"),
        (REWARDS, "a_gold_that_is_none_of_its_type_is_refused_at_load_with_its_row"),
        ("fuzz/test_fuzz_rows.py", "any_rows_in_memory_are_tasks_or_refused"),
    ],
    "an answer that breaks its matcher": [
        ("fuzz/test_fuzz_answers.py", "any_answer_is_right_or_wrong"),
        ("fuzz/test_growth.py", "eight_times_the_text_takes_no_more_than_some_eight_times_as_long"),
    ],
    "a filter keeps no group (EasyR1#497)": [
        (GROUP, "redraws_are_bounded_and_said"),
        (REWARDS, "a_step_that_teaches_nothing_is_said_and_passed_over"),
        ("unit/learning/test_local.py", "an_update_without_samples_counts_and_changes_nothing"),
    ],
    # -- retrieval --------------------------------------------------------------------------------
    "a tool is dead, slow or broken (Search-R1#43, Search-R1#157)": [
        (WORLDS, "a_tool_that_never_answers_does_not_hang_the_episode"),
        (WORLDS, "a_tool_that_fails_is_a_typed_observation_and_its_rate_is_shown"),
        ("unit/worlds/test_tool_environment.py", "failing_and_slow_tools_are_results"),
        ("unit/worlds/test_search_tool.py", "injected_errors_are_a_function_of_seed_and_call"),
    ],
    "no queries, odd top_k, odd queries (Search-R1)": [
        (WORLDS, "no_queries_give_no_results"),
        (WORLDS, "top_k_below_one_gives_an_empty_list_never_a_wrong_document"),
        (WORLDS, "top_k_larger_than_the_corpus_gives_what_there_is"),
        (WORLDS, "awkward_queries_find_the_right_document_or_none"),
        (WORLDS, "a_query_that_is_none_gets_the_reason"),
    ],
    "no hit (Search-R1)": [(WORLDS, "no_hit_says_that_nothing_was_found")],
    # -- runs -------------------------------------------------------------------------------------
    "killed at any moment, resumed (NeMo-RL#3599, EasyR1#57, verl#7401)": [
        ("crash/test_dying_runs.py", "at_a_durable_operation"),
        ("crash/test_dying_runs.py", "at_any_instant"),
        (RUN, "a_stopped_run_that_goes_on_equals_one_that_never_stopped"),
        ("unit/learning/test_local.py", "resume_equals_no_interruption_bit_for_bit"),
    ],
    "the same run name, another config (EasyR1)": [
        (RUNS, "the_same_run_name_with_another_recipe_is_refused_with_the_difference"),
        (
            "unit/store/test_run_folder.py",
            "same_folder_with_other_config_is_refused_with_the_difference",
        ),
    ],
    "validation twice (Search-R1)": [
        (RUNS, "an_evaluation_made_twice_is_the_same_whatever_training_does"),
        (RUNS, "how_an_evaluation_is_drawn_is_told_with_its_result"),
    ],
    "a checkpoint that needs a merger (EasyR1#299, verl#2252)": [
        (RUNS, "a_checkpoint_loads_with_from_pretrained_and_is_the_trained_model"),
        (RUN, "a_checkpoint_is_an_ordinary_model_folder"),
    ],
    "an option that the chosen backend cannot do (ART#519, rLLM)": [
        (RUNS, "an_option_that_nothing_would_use_is_refused_at_start"),
        (RUNS, "demonstrations_to_replay_that_do_not_exist_are_refused_at_start"),
        ("unit/learning/test_local.py", "what_the_trainer_cannot_annotate_is_refused"),
    ],
    "an environment, tool or policy never answers (verl#3873, ROLL#215)": [
        (RUNS, "every_wait_of_an_episode_has_a_name_and_a_deadline"),
        ("unit/core/test_deadline.py", "a_late_answer_is_named"),
        ("unit/rollout/test_episode.py", "a_stuck_environment_gives_an_error_that_names_the_wait"),
        ("unit/rollout/test_episode.py", "a_stuck_policy_gives_an_error_that_names_the_wait"),
    ],
}


def names_in(file: str) -> set[str]:
    tree = ast.parse((TESTS / file).read_text())
    return {
        node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


@pytest.mark.parametrize("fault", FAULTS)
def test_its_tests_are_there(fault: str):
    assert FAULTS[fault]
    for file, name in FAULTS[fault]:
        assert f"test_{name}" in names_in(file)


@pytest.mark.parametrize("file", [TOKENS, ACTIONS, ADVANTAGES, RUNS])
def test_every_test_of_a_fault_is_listed(file: str):
    listed = {f"test_{name}" for tests in FAULTS.values() for at, name in tests if at == file}
    further = {
        "test_a_thought_that_is_never_closed_holds_no_action",
        "test_an_opening_that_does_not_fit_is_no_fault_of_the_policy",
    }
    assert {name for name in names_in(file) if name.startswith("test_")} - listed <= further
