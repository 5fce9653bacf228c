"""Small real data sets, each with the public knowledge a private analysis of it may start from."""

from skdpfrechet.datasets._loaders import (
    load_diffusion_tensors,
    load_muse_eeg,
    load_occupational_judgements,
    load_oct_descriptors,
    load_pneumonia_descriptors,
)

__all__ = [
    "load_diffusion_tensors",
    "load_muse_eeg",
    "load_occupational_judgements",
    "load_oct_descriptors",
    "load_pneumonia_descriptors",
]
