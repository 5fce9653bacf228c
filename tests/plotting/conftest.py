"""Figures are drawn without a window, and closed after each test."""

import matplotlib
import matplotlib.pyplot as plt
import pytest


@pytest.fixture(autouse=True)
def figures():
    matplotlib.use("Agg")
    plt.close("all")
    yield
    plt.close("all")
