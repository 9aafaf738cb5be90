"""How the code around a model's kernels is compiled."""

from __future__ import annotations

from typing import Any

# Without reference counts (no allocation inside: work space comes from the caller) a step costs half. Fused
# multiply-add is allowed, hiding a not-a-number is not.
COMPILED: dict[str, Any] = {
    "cache": True,
    "nogil": True,
    "_nrt": False,
    "error_model": "numpy",
    "fastmath": {"contract"},
}
