"""Settings shared by all tests.

Test sizes: ``HYPOTHESIS_PROFILE=nightly`` multiplies the number of random cases by twenty.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

NIGHTLY = os.environ.get("HYPOTHESIS_PROFILE") == "nightly"

_common = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow], "derandomize": True}
settings.register_profile("default", max_examples=40, **_common)
settings.register_profile("nightly", max_examples=800, **_common)
settings.load_profile("nightly" if NIGHTLY else "default")


@pytest.fixture(scope="session")
def nightly() -> bool:
    """Whether the large test run was asked for."""
    return NIGHTLY
