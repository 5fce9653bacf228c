"""Configuration of the documentation site, built by `sphinx-build -W` (see `.ci/run`)."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import skdpfrechet

project = "skdpfrechet"
author = "The skdpfrechet developers"
copyright = f"{author}, BSD-3-Clause"
release = version = skdpfrechet.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "_templates"]
templates_path = ["_templates"]
default_role = "autolink"  # `name` in a docstring links to the object, if there is one
root_doc = "index"

html_theme = "pydata_sphinx_theme"
html_title = f"{project} {release}"
html_show_sourcelink = False
html_sidebars = {"getting_started": []}  # no pages below it
html_theme_options = {
    "logo": {"text": project},
    "header_links_before_dropdown": 7,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}

# MathJax from an installed package instead of a network: one file that needs no fonts.
_mathjax = Path(find_spec("sphinx-mathjax-offline").origin).parent / "static" / "mathjax"
html_static_path = [str(_mathjax / "tex-svg.js")]
mathjax_path = "tex-svg.js"

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3

autodoc_typehints = "none"  # numpydoc sections say it in words
autosummary_context = {"top_level": skdpfrechet.__all__}
autosummary_ignore_module_all = False
numpydoc_show_class_members = False
numpydoc_validation_checks = {"GL06", "GL07", "GL10", "PR02", "PR03", "PR05", "PR10", "SS01"}
toc_object_entries_show_parents = "hide"

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "copyfile_regex": r"index\.rst",  # examples/index.rst groups the tutorials
    "backreferences_dir": "api/examples",
    "doc_module": ("skdpfrechet",),
    "reference_url": {"skdpfrechet": None},
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
    "write_computation_times": False,
}

# The pages link to files of the repository; on the site, the same links lead to pages.
_FILE_LINKS = {
    r"\]\(\.\./examples/(plot_\w+)\.py\)": r"](auto_examples/\1.rst)",
    r"\]\((?:\.\./)?skdpfrechet/sensitivity\.py\)": "](api/skdpfrechet.sensitivity.rst)",
    r"\]\(\.\./skdpfrechet/datasets/data/README\.md\)": "](data_licences.md)",
    r"\]\(docs/": "](",
}


def link_pages(text: str) -> str:
    """Return a page with its links to source files turned into links to pages of the site."""
    for pattern, replacement in _FILE_LINKS.items():
        text = re.sub(pattern, replacement, text)
    return text


def _read_source(app, docname, content):
    content[0] = link_pages(content[0])


def _read_include(app, path, docname, content):
    content[0] = link_pages(content[0])


def _skip_member(app, what, name, obj, skip, options):
    """Leave out what scikit-learn documents itself: `get_params`, `set_output`, ..."""
    owner = getattr(obj, "__module__", None) or ""
    return True if owner.startswith("sklearn.") else None


def setup(app):
    """Connect what is defined above."""
    app.connect("source-read", _read_source)
    app.connect("include-read", _read_include)
    app.connect("autodoc-skip-member", _skip_member)
