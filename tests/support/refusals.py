"""The line in which something is refused."""

from collections.abc import Callable
from typing import Any

import pytest

from distill.core.errors import DistillError


def refusal(call: Callable[..., Any], *args: Any, **how: Any) -> str:
    """What a call that ends in a DistillError says."""
    with pytest.raises(DistillError) as error:
        call(*args, **how)
    return str(error.value)
