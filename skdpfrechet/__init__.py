"""Differentially private inference on Riemannian manifolds, the scikit-learn way."""

__version__ = "0.1.0"
