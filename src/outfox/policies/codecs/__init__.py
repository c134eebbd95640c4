"""How a policy writes an action: one file per codec, and the self-test that each must pass."""
