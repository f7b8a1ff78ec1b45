"""Configure the documentation site, which `make docs` builds."""

from __future__ import annotations

import searchapp

project = "searchapp"
version = release = searchapp.__version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
exclude_patterns: list[str] = []

html_theme = "furo"
html_title = f"searchapp {version}"
html_copy_source = False

nb_execution_mode = "off"  # the outputs of notebooks are stored: `python -m scripts.notebooks`
myst_heading_anchors = 4  # so that `page.md#a-heading` is checked
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True
copybutton_exclude = ".linenos, .gp, .go"  # copies commands without the output below them
