from outfox import Trajectory, signal


@signal(range=(0, 1), family="evidence")
def hours_unchecked(trajectory: Trajectory) -> bool:
    """It was asked when something is open, and did not look."""
    asked = "open" in trajectory.task.metadata["question"]
    return asked and not any(call.name == "opening_hours" for call in trajectory.calls)
