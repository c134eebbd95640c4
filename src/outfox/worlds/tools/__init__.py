"""What an episode lets the policy call. Made anew for each episode."""
