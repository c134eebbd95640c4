"""Settings of every test run."""

import os

from hypothesis import settings

# The tests' arrays are small: more threads cost more than they bring, and bits depend on them.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# A test with two threads must not spin while another process holds the second core.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# The same examples in every run, whatever the machine's speed.
settings.register_profile("outfox", deadline=None, derandomize=True)
settings.load_profile("outfox")
