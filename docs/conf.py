"""How the site is built: `make docs`. Nothing is fetched; a warning is an error."""

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "ext"))
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import reluflow  # noqa: E402

project = "reluflow"
author = "The reluflow developers"
copyright = author  # noqa: A001
version = release = reluflow.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "house",
    "claim_pages",
    "api_pages",
    "links",
]
nitpicky = True
default_role = "house"  # `name` in a docstring: a link where the name is known, code where it is not
smartquotes = False  # PL-T1' is an id, and W' a matrix
exclude_patterns = ["_build", "reproduction/index.html", "sweep/hinted", "gallery", "auto_gallery/*.ipynb"]

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist", "attrs_inline"]
myst_heading_anchors = 3
myst_links_external_new_tab = False

autodoc_typehints = "none"  # the docstrings say what everything is, in words
autodoc_member_order = "bysource"
toc_object_entries = False
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_gallery",
    "backreferences_dir": "auto_gallery/backreferences",
    "doc_module": ("reluflow",),
    "prefer_full_module": {r"^$"},
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 1e9,  # it says more about the machine
    "image_scrapers": ("matplotlib",),
    "matplotlib_animations": False,
    "thumbnail_size": (400, 280),
}
suppress_warnings = ["config.cache"]  # the gallery's settings are no plain data

html_theme = "pydata_sphinx_theme"
html_title = "reluflow"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "reluflow"},
    "header_links_before_dropdown": 10,
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_nav_level": 1,
    "navigation_depth": 3,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
#: Pages without pages below them need no list of these at the side; the widest two need the room.
html_sidebars = {
    name: []
    for name in (
        "index",
        "start",
        "ideas",
        "numerics",
        "reproduction/REPRODUCTION",
        "benchmarks",
        "architecture",
        "coverage",
    )
}
