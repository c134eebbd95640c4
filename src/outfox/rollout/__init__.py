"""Environment x policy -> trajectories."""
