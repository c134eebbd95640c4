"""Settings of every test run."""

import os

from hypothesis import HealthCheck, settings

# The tests' arrays are small: more threads cost more than they bring, and bits depend on them.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# A test with two threads must not spin while another process holds the second core.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# The same examples in every run, whatever the machine's speed; with OUTFOX_TEST_EXAMPLES so many
# others.
examples = os.environ.get("OUTFOX_TEST_EXAMPLES")
settings.register_profile("outfox", deadline=None, derandomize=True)
settings.register_profile(
    "deep",
    deadline=None,
    max_examples=int(examples or 1),
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)
settings.load_profile("deep" if examples else "outfox")
