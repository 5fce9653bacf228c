"""What each data set is, whom a record protects and which outside knowledge bounds it.

The centres and radii argued for here come from physics, physiology, hardware and construction. They
are round numbers, checked to be usable on these (public) data and not adjusted to them: on private
data even that check would have to be paid for.
"""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import dedent, fill


@dataclass(frozen=True)
class Description:
    """The texts of one data set; `text` joins them into its `DESCR`."""

    title: str
    body: str
    unit: str
    public_knowledge: str
    source: str
    license: str
    references: str

    @property
    def text(self) -> str:
        """The full description, in reStructuredText."""
        sections = {
            self.title: _clean(self.body),
            "Unit of privacy": _wrapped(self.unit),
            "Public centre and radius": _wrapped(self.public_knowledge),
            "Source": _wrapped(self.source),
            "Licence": _wrapped(self.license),
            "References": _clean(self.references),
        }
        return "\n\n".join(f"{head}\n{'-' * len(head)}\n{text}" for head, text in sections.items())


def _clean(text: str) -> str:
    return dedent(text).strip()


def _wrapped(text: str) -> str:
    return fill(text, width=96, break_long_words=False, break_on_hyphens=False)


def _paragraph(text: str) -> str:
    return " ".join(text.split())


_USABLE = (
    "The numbers were checked to be usable on these data, in that sense only; they were not fitted "
    "to them."
)

OCCUPATIONAL_JUDGEMENTS = Description(
    title="Occupational judgements (Fisher, Lewis and Embleton 1987, data set B20)",
    body="""
        Judgements of occupations by the same 48 persons according to four criteria: Earnings,
        Social Status, Reward and Social Usefulness. Each judgement is a direction in three
        dimensions, published as colatitude and longitude in degrees to one decimal; `data` holds
        the unit vectors (sin θ cos φ, sin θ sin φ, cos θ). The transcription labels the four
        samples A to D; the criteria are named here in the order of publication.

        The same persons rate all four criteria, so four private fits compose: four at μ cost
        each person 2μ.
    """,
    unit="person",
    public_knowledge=_paragraph(
        f"""
        Nobody knows beforehand where on the sphere a criterion points, so there is no public centre
        and `center` is None. A ball around the sample mean is not private: it moves with every
        record, and the published sensitivity does not cover the move. A private extrinsic mean
        buys a centre instead: the average of the unit vectors has sensitivity 2/n whatever the
        data, and normalising it after Gaussian noise is post-processing. The radius is π/4. On the
        unit sphere a ball must have r < π/2, and π/4 is the largest one on which squared distances
        are convex whatever the sample; it also has a meaning: the directions are vectors, not
        axes, and two judgements within π/4 of a centre are at most a right angle apart, as one
        expects of persons who look at the same criterion. The constants of
        `calibration="paper"` need r < π/4; their authors use π/8. {_USABLE}
        """
    ),
    source=(
        "N. I. Fisher, T. Lewis, B. J. J. Embleton, Statistical Analysis of Spherical Data, 1987, "
        "Appendix B20; transcription by X. Pennec in the repository geomstats/applications at "
        "4c2ede8b, workbook FisherDatasets.xlsx."
    ),
    license="MIT (transcription, X. Pennec and the geomstats developers)",
    references="""
        - Fisher, N. I., Lewis, T., Embleton, B. J. J. (1987). Statistical Analysis of Spherical
          Data. Cambridge University Press.
    """,
)

_MUSE_SOURCE = "Repository NeuroTechX/eeg-notebooks_v0.1 at 5ee39e4f, folder data/visual/{folder}."
_MUSE_LICENSE = "BSD-3-Clause, NeuroTechX"

MUSE_PERSONS = Description(
    title="Muse EEG of a visual cueing task, one covariance per person",
    body="""
        Spatial covariance matrices, in µV², of four-channel EEG (TP9, AF7, AF8, TP10) recorded with
        a Muse headband from 64 persons during a visual cueing task and band-passed to 1-30 Hz. Each
        person contributes one matrix, from `n_windows` windows.
    """,
    unit="person",
    public_knowledge=_paragraph(
        f"""
        Textbooks give the scalp EEG of a waking adult 10 to 100 µV from peak to peak, about 10 µV
        root mean square between 1 and 30 Hz, and the published protocol of these recordings asks
        for a standard deviation below 10. Hence the centre 100 µV² · I: 10 µV on every electrode,
        no correlation presumed. The radius lets the variance along each of the four principal axes
        miss that by one order of magnitude in either direction (amplitudes of about 3 to 30 µV, in
        root mean square of the logarithms): √4 · ln 10 = 4.6, rounded to 4.5. {_USABLE}
        """
    ),
    source=_MUSE_SOURCE.format(folder="cueing"),
    license=_MUSE_LICENSE,
    references="""
        - Niedermeyer, E., Lopes da Silva, F. (2005). Electroencephalography: Basic Principles,
          Clinical Applications, and Related Fields, 5th ed. Lippincott Williams & Wilkins.
    """,
)

MUSE_SSVEP = Description(
    title="Muse EEG of steady-state visual evoked potentials, one covariance per trial",
    body="""
        Covariance matrices, in µV², of 405 trials in which a grating flickers at 30 Hz (target 1)
        or at 20 Hz (target 2). The four channels (TP9, AF7, AF8, TP10) band-passed to 18-22 Hz are
        stacked on the same four band-passed to 28-32 Hz. The matrices are stored in single
        precision and symmetrised in double precision.

        Three persons gave all the trials. Protecting a trial protects none of them; pass `groups`
        to protect a person, and expect little from three.
    """,
    unit="trial",
    public_knowledge=_paragraph(
        f"""
        The EEG between 1 and 30 Hz measures about 10 µV root mean square, 100 µV² (see the
        persons of the same device), and its power falls roughly as 1/f. A spectrum c/f with
        c ln 30 = 100 µV² leaves c ln(22/18) = 5.9 µV² between 18 and 22 Hz and c ln(32/28) =
        3.9 µV² between 28 and 32 Hz. Hence the centre 5 µV² · I. The radius lets the variance
        along each of the eight principal axes miss that by one order of magnitude in either
        direction, in root mean square of the logarithms: √8 · ln 10 = 6.51, rounded to 6.5.
        {_USABLE}
        """
    ),
    source=_MUSE_SOURCE.format(folder="SSVEP"),
    license=_MUSE_LICENSE,
    references="""
        - Niedermeyer, E., Lopes da Silva, F. (2005). Electroencephalography: Basic Principles,
          Clinical Applications, and Related Fields, 5th ed. Lippincott Williams & Wilkins.
    """,
)

_DESCRIPTOR = """
        The region covariance descriptor of a 28 × 28 grey image I (Tuzel et al. 2006): the sample
        covariance over its 26 × 26 inner pixels of I/255, |Ix|, |Iy|, |Ixx| and |Iyy|, with Ix =
        I(x+1) - I(x-1), Ixx = 2 I(x) - I(x-1) - I(x+1) of the scaled image and the same in y.
"""

_DESCRIPTOR_KNOWLEDGE = _paragraph(
    f"""
    By construction I/255, |Ix| and |Iy| lie in [0, 1] and |Ixx|, |Iyy| in [0, 2], so no variance
    exceeds 1/4 or 1. The centre is what the textbook model of an image gives: a stationary first
    order Markov field with neighbour correlation ρ = 0.95, the value image coding has used for
    decades, and a standard deviation of 0.2 of the grey range (a flat histogram has 0.29). Then
    var I = 0.04; the absolute value of a centred Gaussian keeps 1 - 2/π of its variance, so
    var |Ix| = 0.36 · 2 · 0.04 (1 - ρ²) = 0.0028 and var |Ixx| = 0.36 · 0.04 (6 - 8ρ + 2ρ²) =
    0.0030: the centre is diag(0.04, 0.003, 0.003, 0.003, 0.003). The radius lets the variance
    along each of the five principal axes miss that by one order of magnitude in either direction,
    in root mean square of the logarithms: √5 · ln 10 = 5.1, rounded to 5. {_USABLE}
    """
)

_DESCRIPTOR_REFERENCES = """
        - Yang, J., Shi, R., Wei, D., Liu, Z., Zhao, L., Ke, B., Pfister, H., Ni, B. (2023).
          MedMNIST v2: a large-scale lightweight benchmark for 2D and 3D biomedical image
          classification. Scientific Data 10, 41.
        - Kermany, D. S., Goldbaum, M., et al. (2018). Identifying medical diagnoses and treatable
          diseases by image-based deep learning. Cell 172(5), 1122-1131.
        - Tuzel, O., Porikli, F., Meer, P. (2006). Region covariance: a fast descriptor for
          detection and classification. ECCV.
        - Jain, A. K. (1989). Fundamentals of Digital Image Processing. Prentice Hall (the Markov
          model of images).
"""

_MEDMNIST_LICENSE = (
    "CC BY 4.0 (https://creativecommons.org/licenses/by/4.0/), MedMNIST v2 by J. Yang et al. "
    "(https://medmnist.com); changed here: {change}."
)

OCT_DESCRIPTORS = Description(
    title="Region covariance descriptors of OCTMNIST retinal images",
    body=_DESCRIPTOR
    + """
        400 optical coherence tomographies of the retina, cut from a lossless montage of OCTMNIST;
        their labels and their split are unknown. In the collection they come from, a person may
        have several images, and nothing here tells which: protecting an image protects a person
        only as far as the person has one.
    """,
    unit="image",
    public_knowledge=_DESCRIPTOR_KNOWLEDGE,
    source=(
        "OCTMNIST of MedMNIST v2, from Kermany et al. 2018; montage in the repository "
        "PritishWadhwa/CM-Project at f71a1f03."
    ),
    license=_MEDMNIST_LICENSE.format(change="400 images selected, descriptors computed"),
    references=_DESCRIPTOR_REFERENCES,
)

PNEUMONIA_DESCRIPTORS = Description(
    title="Region covariance descriptors of PneumoniaMNIST chest X-rays",
    body=_DESCRIPTOR
    + """
        The 624 images of the PneumoniaMNIST test split: chest X-rays of children, target 0 for
        normal and 1 for pneumonia. In the collection they come from, a person may have several
        images, and nothing here tells which: protecting an image protects a person only as far as
        the person has one.
    """,
    unit="image",
    public_knowledge=_DESCRIPTOR_KNOWLEDGE,
    source=(
        "PneumoniaMNIST (test split) of MedMNIST v2, from Kermany et al. 2018; copy in the "
        "repository varun19424/pneumonia_mnist at 9361a718."
    ),
    license=_MEDMNIST_LICENSE.format(change="images replaced by their descriptors"),
    references=_DESCRIPTOR_REFERENCES,
)

DIFFUSION_TENSORS = Description(
    title="Diffusion tensors of a small block of brain voxels",
    body="""
        Diffusion tensors in 10⁻³ mm²/s of 968 of the voxels of a 10 × 10 × 10 block of brain, a
        weighted least squares fit to 64 diffusion directions. `fa` is the fractional anisotropy,
        `s0` the fitted signal without diffusion weighting, `voxel` the position in the block.

        All voxels are of one person. Privacy of a voxel hides one voxel among the others and
        protects nobody: a record is not a person here. The data serve to show geometry.
    """,
    unit="voxel (of one person: this protects nobody)",
    public_knowledge=_paragraph(
        f"""
        Free water at body temperature diffuses at 3.0 · 10⁻³ mm²/s, a bound of physics, and the
        mean diffusivity of brain tissue is 0.7 to 0.8 · 10⁻³ mm²/s in the literature. The centre is
        I, the round number between the two. The radius covers both ends: fluid, 3 I, is at
        √3 · ln 3 = 1.9 from it, and one coherent bundle of white matter, with literature
        diffusivities of 1.7 along and 0.3 across, at √(ln² 1.7 + 2 ln² 0.3) = 1.8; rounded to 2.
        {_USABLE}
        """
    ),
    source="dipy 1.12.1, dipy/data/files/small_64D.*",
    license="BSD-3-Clause, dipy developers",
    references="""
        - Pierpaoli, C., Jezzard, P., Basser, P. J., Barnett, A., Di Chiro, G. (1996). Diffusion
          tensor MR imaging of the human brain. Radiology 201(3), 637-648.
        - Holz, M., Heil, S. R., Sacco, A. (2000). Temperature-dependent self-diffusion coefficients
          of water. Physical Chemistry Chemical Physics 2, 4740-4742.
        - Garyfallidis, E., et al. (2014). Dipy, a library for the analysis of diffusion MRI data.
          Frontiers in Neuroinformatics 8, 8.
    """,
)
