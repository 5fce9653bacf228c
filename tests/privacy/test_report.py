import html
import json
import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skdpfrechet.privacy import GDP, Group, PrivacyReport, PureDP, Release, compose

ROWS = (
    Release("mean", 0.8, 0.02, 0.025, "wrapped-gaussian", float_safe=True),
    Release("second moment", 0.6, 0.03, 0.05, "gaussian", float_safe=True),
)
MIXED = (ROWS[0], Release("second moment", 0.6, 0.03, 0.05, "gaussian"))
EXACT = (Release("mean", math.inf, 0.02, 0.0, "none"),)


def test_prints_an_aligned_table():
    report = PrivacyReport(GDP(1.0), ROWS, notes=("The centre is public.",))
    expected = """\
guarantee       1-GDP
epsilon         4.378 at delta = 1e-05
unit            record
neighbours      replace-one

statistic      mu   share of mu²  sensitivity  noise scale  mechanism         noise
mean           0.8  64.0 %        0.02         0.025        wrapped-gaussian  exact
second moment  0.6  36.0 %        0.03         0.05         gaussian          exact

- The centre is public."""
    assert str(report) == expected


@given(st.floats(1e-3, 100))
def test_printed_epsilon_is_not_below_the_exact_one(mu):
    report = PrivacyReport(GDP(mu), ())
    line = next(line for line in str(report).splitlines() if line.startswith("epsilon"))
    exact = report.epsilon(1e-5)
    assert exact <= float(line.split()[1]) <= exact * 1.0011


def test_reused_release_enters_the_total_but_not_what_the_fit_spent():
    report = PrivacyReport(GDP(1.0), ROWS, reused=GDP(0.75))
    assert report.guarantee == GDP(1.0)
    assert report.total == compose(GDP(1.0), GDP(0.75))
    assert report.delta(0.5) == GDP(1.25).delta(0.5)
    assert report.epsilon(1e-6) == GDP(1.25).epsilon(1e-6)
    assert report.rho == GDP(1.25).rho
    assert "reused release  0.75-GDP\ntotal           1.25-GDP\n" in str(report)


def test_void_guarantee_says_so_first():
    report = PrivacyReport(GDP(1.0), ROWS, void_reason="random_state is an integer.")
    assert not report.is_private
    first = str(report).splitlines()[0]
    assert first == "VOID, the guarantee below does not hold: random_state is an integer."


@pytest.mark.parametrize(
    "report",
    [PrivacyReport(GDP(math.inf), EXACT), PrivacyReport(GDP(1.0), ROWS, reused=GDP(math.inf))],
)
def test_infinite_mu_is_not_private(report):
    assert not report.is_private
    assert str(report).startswith("NOT PRIVATE")
    assert "inf at delta" in str(report)


def test_finite_mu_with_exact_noise_is_private():
    for report in (
        PrivacyReport(GDP(0.0), ()),
        PrivacyReport(GDP(1.0), ROWS),
        PrivacyReport(GDP(1.0), ROWS, reused=GDP(2.0), reused_float_safe=True),
    ):
        assert report.is_private
        assert report.caveats == ()


@pytest.mark.parametrize(
    ("rows", "reused", "what"),
    [
        (MIXED, None, "second moment"),
        (ROWS, GDP(2.0), "the reused release"),
        (MIXED, GDP(2.0), "second moment, the reused release"),
    ],
)
def test_float_noise_is_not_called_private(rows, reused, what):
    """Each statistic says what its noise is, and the report says what is missing."""
    report = PrivacyReport(GDP(1.0), rows, reused=reused)
    assert not report.is_private
    (caveat,) = report.caveats
    assert caveat.startswith(f"FLOAT NOISE in {what}: ")
    assert "last bits" in caveat
    assert "'secure'" in caveat
    assert str(report).splitlines()[0] == caveat
    assert html.escape(caveat) in report._repr_html_()
    assert report.to_dict()["caveats"] == [caveat]
    private = [row["is_private"] for row in report.to_dict()["releases"]]
    assert private == [row.is_private for row in rows] == [row.float_safe for row in rows]


@given(
    st.booleans(),
    st.sampled_from([0.5, math.inf]),
    st.lists(st.booleans(), max_size=3),
    st.sampled_from([None, 0.5, math.inf]),
    st.booleans(),
)
def test_private_is_what_has_no_caveat(void, mu, safe, reused, reused_safe):
    rows = [Release("mean", mu, 0.1, 0.1, "gaussian", float_safe=exact) for exact in safe or [True]]
    report = PrivacyReport(
        compose(*(GDP(row.mu) for row in rows)),
        rows,
        void_reason="a seed" if void else None,
        reused=None if reused is None else GDP(reused),
        reused_float_safe=reused_safe,
    )
    assert report.is_private == (report.caveats == ())
    everything = all(row.is_private for row in rows) and not void
    fine = reused is None or (reused < math.inf and reused_safe)
    assert report.is_private == (everything and fine)


def test_shares_need_a_finite_positive_budget():
    idle = PrivacyReport(GDP(0.0), (Release("mean", 0.0, 0.02, math.inf, "gaussian"),))
    for report in (idle, PrivacyReport(GDP(math.inf), EXACT)):
        assert "%" not in str(report)


def test_to_dict_is_strict_json():
    report = PrivacyReport(GDP(1.0), ROWS, unit=Group("person"), reused=GDP(math.inf), notes=("n",))
    content = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert content["releases"][1] == {
        "statistic": "second moment",
        "mu": 0.6,
        "sensitivity": 0.03,
        "noise_scale": 0.05,
        "mechanism": "gaussian",
        "float_safe": True,
        "is_private": True,
    }
    del content["releases"]
    assert content == {
        "mu": 1.0,
        "reused_mu": "inf",
        "total_mu": "inf",
        "rho": "inf",
        "reused_float_safe": False,
        "is_private": False,
        "caveats": ["NOT PRIVATE: mu is infinite, so nothing is promised."],
        "void_reason": None,
        "unit": {"kind": "group", "partition": "person"},
        "neighbouring": "replace-one: all records of one person, in any number from one up",
        "notes": ["n"],
    }


def test_the_unit_is_a_value():
    with pytest.raises(TypeError, match=r"unit must be a unit, such as Group\('person'\)"):
        PrivacyReport(GDP(1.0), ROWS, unit="person")
    text = str(PrivacyReport(GDP(1.0), ROWS, unit=Group("person")))
    assert "person (all its records)" in text


@pytest.mark.parametrize("mu", [math.sqrt(0.7), 1.0 + 1e-8, math.inf])
def test_releases_must_add_up(mu):
    with pytest.raises(ValueError, match="mu of the releases must compose to"):
        PrivacyReport(GDP(mu), ROWS)


def test_rounding_of_the_split_is_forgiven():
    third = Release("mean", math.sqrt(1 / 3), 0.1, 0.1, "gaussian")
    assert PrivacyReport(GDP(1.0), [third] * 3).releases == (third, third, third)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: PrivacyReport(PureDP(1.0), ()), TypeError, "guarantee must be a GDP, got PureDP"),
        (lambda: PrivacyReport(GDP(1.0), (), reused=1.0), TypeError, "reused must be a GDP"),
        (lambda: Release("mean", -1.0, 0.1, 0.1, "gaussian"), ValueError, "mu must not be neg"),
        (lambda: Release("mean", 1.0, math.nan, 0.1, "gaussian"), ValueError, "sensitivity must"),
        (lambda: Release("mean", 1.0, 0.1, "0.1", "gaussian"), TypeError, "noise_scale must"),
    ],
)
def test_refuses_bad_fields_by_name(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_html_says_the_same_and_escapes_it():
    """Every cell and note of the text is in the page, as text."""
    wild = Release("<b>mean</b>", 0.6, 0.03, 0.05, "a & b")
    report = PrivacyReport(
        GDP(1.0),
        (ROWS[0], wild),
        notes=("data set '<script>alert(1)</script>'",),
        void_reason="<i>a seed</i>",
        reused=GDP(0.75),
    )
    page = report._repr_html_()
    assert not re.search(r"<script|<b>|<i>|a & b", page)
    cells = re.findall(r"<t[dh]>(.*?)</t[dh]>", page)
    assert cells[:4] == ["guarantee", "1-GDP", "reused release", "0.75-GDP"]
    squeezed = re.sub(r"\W+", "", str(report))
    text = html.unescape(re.sub(r"<[^>]*>", " ", page)).replace("Privacy report", "")
    assert re.sub(r"\W+", "", text) == squeezed


def test_html_of_an_exact_fit():
    assert "NOT PRIVATE" in PrivacyReport(GDP(math.inf), EXACT)._repr_html_()
    assert "<ul>" not in PrivacyReport(GDP(1.0), ROWS)._repr_html_()
