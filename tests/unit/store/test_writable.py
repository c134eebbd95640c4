import errno

import pytest
from safetensors import SafetensorError

from outfox.core.errors import ConfigError, OutfoxError
from outfox.store.files import writable


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        OSError(errno.EDQUOT, "Disk quota exceeded"),
        SafetensorError("Error while serializing: I/O error: No space left (os error 28)"),
    ],
)
def test_a_full_disk_says_how_to_go_on(tmp_path, error):
    with pytest.raises(OutfoxError, match=f"make room.*--resume {tmp_path}"), writable(tmp_path):
        raise error


def test_a_folder_that_may_not_be_written_is_a_wrong_setting(tmp_path):
    with pytest.raises(ConfigError, match="choose another run"), writable(tmp_path):
        raise PermissionError(errno.EACCES, "Permission denied")


@pytest.mark.parametrize("error", [OSError(errno.ENOENT, "no"), SafetensorError("bad header")])
def test_other_errors_pass(tmp_path, error):
    with pytest.raises(type(error)), writable(tmp_path):
        raise error
