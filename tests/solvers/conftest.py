"""Every solver test runs on the compiled kernels, where numba is installed, and without them."""

from importlib.util import find_spec

import pytest

from skdpfrechet import _kernels


@pytest.fixture(autouse=True, params=["numpy", "numba"])
def backend(request):
    if request.param == "numba" and find_spec("numba") is None:
        pytest.skip("numba is not installed")
    with _kernels.kernels(request.param):
        yield request.param
