"""A program: one property test, its examples guided by coverage (needs `pip install atheris`).

    python tests/fuzz/guided.py tests/property/test_tags_text.py::test_spans_cover_what_they_name
        -max_total_time=600

What follows the test's name is for libFuzzer. A failure prints the example, as in any other run.
"""

import importlib.util
import sys

import atheris
from hypothesis import HealthCheck, settings

settings.register_profile("guided", deadline=None, suppress_health_check=list(HealthCheck))
settings.load_profile("guided")
path, _, name = sys.argv[1].partition("::")
spec = importlib.util.spec_from_file_location("properties", path)
module = importlib.util.module_from_spec(spec)
with atheris.instrument_imports(include=["outfox"]):
    spec.loader.exec_module(module)
atheris.Setup([sys.argv[0], *sys.argv[2:]], vars(module)[name].hypothesis.fuzz_one_input)
atheris.Fuzz()
