"""No tracker reaches out, and none writes outside the test's folders."""

import os
import tempfile

# Read when the libraries are imported.
os.environ["TRACKIO_DIR"] = tempfile.mkdtemp(prefix="trackio-")
os.environ["WANDB_ERROR_REPORTING"] = "false"
os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
for proxy in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
    os.environ[proxy] = "http://127.0.0.1:9"
os.environ["no_proxy"] = os.environ["NO_PROXY"] = ""
