"""Episodes: what answers a policy message."""
