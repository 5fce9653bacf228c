"""Every example runs as a script, from any directory, without a warning, and draws its figure."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"

# Runs the example as `python example.py` would, then draws its figures to files.
RUN = """
import runpy, sys
runpy.run_path(sys.argv[1], run_name="__main__")
import matplotlib.pyplot as plt
for number in plt.get_fignums():
    plt.figure(number).savefig(f"figure_{number}.png")
"""

NUMBER = r"-?\d+\.?\d*"
INTERVAL = rf"\[{NUMBER}, {NUMBER}\]"

# Patterns, not numbers: the examples draw real noise.
KEY_LINES = {
    "plot_quickstart.py": (
        "64 persons, channels TP9, AF7, AF8, TP10; a record is a person",
        rf"TP9( +{NUMBER}){{4}}\n +AF7( +{NUMBER}){{4}}\n",
        rf"95% region: effective radius {NUMBER}",
        rf"TP10 +{NUMBER} +{INTERVAL}",
        rf"private Fréchet variance {NUMBER}, 95 % interval {INTERVAL}",
        "guarantee +0.8-GDP",
        r"unit +person \(all its records\)",
        "mean +0.75.*wrapped-gaussian",
        "second moment +0.27.*gaussian",
        "guarantee +0.6-GDP\nreused release +0.8-GDP\ntotal +1-GDP",
        "variance +0.6 .*gaussian",
        r"mean μ = 0.8 and variance μ = 0.6: together 1-GDP",
        r"ε = 4.38 at δ = 1e-5",
        rf"took {NUMBER} s",
        "for this demonstration on public data only, NOT private",
    ),
    "plot_pipeline.py": (
        rf"test accuracy {NUMBER}",
        "guarantee +1-GDP",
        "mean +1 +100.0 %.*wrapped-gaussian",
        r"5 folds and the final fit at 1-GDP each: 2\.44949-GDP, ε = 12\.87",
        rf"0\.03 +{NUMBER} +{NUMBER}\n +0\.1 ",
        rf"inf +{NUMBER} +0\.00 +NOT private",
    ),
    "plot_rivals.py": (
        r"n = 500, r = 1, ε = 1, δ = 1e-05, hence μ = 0\.2681",
        r"\n +4 +10 .* 0\.79\n +5 +15 .* 1\.15\n",
        r"exponent of k: laplace 3\.95, ours 1\.98, classical 1\.98",
        r"classical/ours at ε = 1: 1\.69",
        r"Laplace noise exists for nε > 18\.2 \(k = 10\)",
    ),
    "plot_occupational_judgements.py": (
        "48 persons judge by 4 criteria; a record is a person",
        "ball, step 1: centre +0.5 +25.0 %",
        "mean +0.81.*(riemannian|projected)-gaussian",
        "μ = 1 for each: 2-GDP together, ε = 10.00",
        "μ = 2 for each: 4-GDP together, ε = 24.38",
        rf"Social Usefulness +({NUMBER} +{NUMBER} ± *{NUMBER} *){{3}}\n",
        "NOT private: Social Status & Reward",
        rf"data-centred, NOT private\nEarnings( +{NUMBER}){{2}}\n",
        r"by one judgement: claimed 1\.21, found 1\.[78]\d\n",
        "4 of the 192 records",
    ),
    "plot_persons.py": (
        "64 covariances of 64 persons",
        "guarantee +1-GDP",
        r"unit +person \(all its records\)",
        r"simulated: \d+ trials of 64 persons, 3 to 12 each",
        "dpfrechetmean +DPFrechetMean +private +1-GDP per fit",
        r"groups: unit person \(all its records\), n = 64, "
        rf"noise of the mean 0\.17\d per coordinate\n"
        rf" no groups: unit record, n = \d+, noise of the mean {NUMBER} per coordinate",
        r"12 trials: 12-GDP, ε = 122\.32 at δ = 1e-5",
        r"no groups, one trial replaced: +0\.\d\d\n"
        r" +no groups, one person replaced: +\d+\.\d\d\n"
        r" +groups, one person replaced: +0\.\d\d\n",
        r"no groups, μ +12-GDP( +\d\.\d\d){2} +0\.\d\d\n",
        r" groups, μ +1-GDP( +\d\.\d\d){2} +(0\.[89]\d|1\.00)\n",
    ),
    "plot_private_ball.py": (
        "624 X-rays, 15 coordinates",
        "guarantee +1-GDP",
        "ball, step 1: distances +0.1 +1.0 %.*\nball, step 2: centre .*gaussian",
        "mean +0.9023 .*wrapped-gaussian",
        r"the ball cost 7\.5% of the budget\nradius 12 -> [234]\.\d\d",
        rf"effective radius of the 95 % region {NUMBER} -> 0\.\d+",
        r"wide ball( +0\.\d+){3}\nloader's ball( +0\.\d+){3}\n +found ball( +0\.\d+){3}",
        rf"0\.95 +{NUMBER} +0\.0[12]\d+ .*\n +0\.99 +{NUMBER} +0\.00\d+ .*\n +auto ",
        r"found ball( +0\.\d\d){6}\n",
        "40 records at μ = 0.5: radius 12, releases: mean, second moment\nn, mu, .* too few",
    ),
    "plot_oct.py": (
        "400 OCT images without labels; a record is an image",
        rf"μ = 0\.1, paper( +\S+){{6}}\n +μ = 0\.1, sharp( +{NUMBER}){{6}}\n",
        r"NOT private, sharp .* 385\.\d +0\.084 +-19\.89 +0\.000\n",
        "X-rays: 234 normal, 390 pneumonia",
        r"NOT private +2\.01 +\d\.\de-18\d\n",
    ),
    "plot_reproduction.py": (
        "30 replications; ± is one Monte Carlo standard error",
        r"Table 1: mean on S², errors in 0\.0001",
        rf" 0\.1 +183( +{NUMBER} ± +{NUMBER} \([01]\.\d\d\)){{2}}\n +0\.3 +116 ",
        r"Table 4: variance on SPD\(2\), errors in 0\.001",
        rf"1 +29\.2( +{NUMBER} ± +{NUMBER} \([01]\.\d\d\)){{2}}\n",
    ),
    "plot_mdm.py": (
        r"SSVEP: \(405, 8, 8\), classes of 212 and 193\nX-rays: \(624, 5, 5\)",
        "neighbours +replace-one, by a record of the same class; labels and class sizes are public",
        r"mean of class 1 +1 +100\.0 % +0\.02566 +0\.02566 +wrapped-gaussian",
        "dpmdm +DPMDM +private +1-GDP per fit",
        "whitening +Whitening +fitted on data +learns the mean matrix\ndpmdm +DPMDM +void",
        r"Shrinkage +moves another record by 0\.000\nWhitening +moves another record by 0\.026",
        r"X-rays +0\.\d+ +0\.8\d+ +0\.83\d +0\.83\d +0\.83\d\n",
    ),
    "plot_principal_geodesics.py": (
        r"624 X-rays, features I, \|Ix\|",
        r"mean +0\.5477 +30\.0 %.*\nsecond moment +0\.8367 +70\.0 %",
        r"noise floor 0\.5\d\d\n",
        r" 1 +[12]\.\d+ +0\.\d\d +2\.060 +0\.9\d\d\n",
        rf"standard deviation of \|Ixx\| times {NUMBER}",
        r"10 +0\.2\d\d +0\.\d+\n +inf +0\.210 +0\.094 +NOT private",
    ),
    "plot_displays.py": (
        r"noise and sampling error are equal at μ = 0\.99\n",
        rf"X-rays, released, together 1\.37477-GDP: effective radii({NUMBER}|, | )+\n",
        "μ = 2 for each of 4 criteria, 4-GDP for a person",
        r"tensors at μ = 0\.05: effective radius 0\.[12]\d\d\ntensors at μ = 0\.2: .* 0\.0\d\d\n",
    ),
    "plot_tests.py": (
        "normal: 234 images\n pneumonia: 390 images",
        r" +0\.1 +\S+ +\S+ +\[\d+\.\d+, (\d+\.\d+|inf)\]\n",
        r"NOT private +\d\.\de-18\d +0\.0001\d +\[0\.62, 0\.87\]",
        r"Social Status & Reward, judged by the same 48 persons; 3-GDP in all",
        rf"as if by different persons: p = {NUMBER}, only indicative",
        rf"a difference per person:    p = {NUMBER}; 3-GDP in all",
        r"correlation of the deviations along the difference: 0\.\d",
        r"0\.[3-9]\d of what independence assumes",
    ),
}


def test_every_example_is_tested():
    assert {path.name for path in EXAMPLES.glob("plot_*.py")} == set(KEY_LINES)


@pytest.mark.parametrize("name", KEY_LINES)
def test_example(name, tmp_path):
    # A DISPLAY makes `plt.show()` on the Agg backend warn, as it does on a desktop.
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", RUN, str(EXAMPLES / name)],
        cwd=tmp_path,
        env=os.environ | {"MPLBACKEND": "Agg", "DISPLAY": ":0", "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    assert "VOID" not in run.stdout
    for pattern in KEY_LINES[name]:
        assert re.search(pattern, run.stdout), f"no line matches {pattern!r} in\n{run.stdout}"
    assert [path.name for path in tmp_path.iterdir()] == ["figure_1.png"]
    assert (tmp_path / "figure_1.png").stat().st_size > 10_000
