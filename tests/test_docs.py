"""The site is complete: every public name has its page, every page its place.

Whether the pages are sound is for `sphinx-build -W` to say, in `.ci/run`.
"""

import re
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import skdpfrechet

ROOT = Path(__file__).parents[1]
DOCS, EXAMPLES = ROOT / "docs", ROOT / "examples"
TOCTREE = re.compile(
    r"^```\{toctree\}\n(.*?)^```$" r"|^\.\. toctree::\n((?:[ ]+\S.*\n|\n)*)",
    re.MULTILINE | re.DOTALL,
)


def public_names(modules):
    return {f"{name}.{item}" for name in modules for item in import_module(name).__all__}


def test_every_public_name_is_on_the_api_page():
    found = walk_packages(skdpfrechet.__path__, "skdpfrechet.")
    modules = {module.name for module in found if "._" not in module.name}
    listed = re.findall(r"^   (skdpfrechet[\w.]*)$", (DOCS / "api.rst").read_text(), re.MULTILINE)
    assert len(listed) == len(set(listed))
    # A page of a module lists its __all__, see docs/_templates/autosummary/module.rst.
    assert public_names(listed) == public_names({"skdpfrechet", *modules})


def entries(page):
    """Return the documents that the toctrees of a page name."""
    blocks = ["".join(match) for match in TOCTREE.findall(page.read_text(encoding="utf-8"))]
    lines = [line.strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line and not line.startswith(":")]


def test_every_page_is_in_a_toctree_once():
    pages = {page.stem: page for suffix in ("md", "rst") for page in DOCS.glob(f"*.{suffix}")}
    reached, ahead = ["index"], ["index"]
    while ahead:
        here = entries(pages[ahead.pop()])
        reached += here
        ahead += [name for name in here if name in pages]
    assert sorted(reached) == sorted([*pages, "auto_examples/index"])


def test_every_example_is_in_the_gallery_once():
    listed = re.findall(
        r"^   \.\./examples/(plot_\w+\.py)$", (EXAMPLES / "index.rst").read_text(), re.M
    )
    assert sorted(listed) == sorted(path.name for path in EXAMPLES.glob("plot_*.py"))
