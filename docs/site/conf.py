"""The documentation site, as Sphinx makes it: tools/site runs it.

Its sources are made here, in the folder that Sphinx is given: the pages of docs/, and the reference of headers and
docstrings. THALIA_BUILD names the build folder, for its Python package and its manual page; this folder is in
PYTHONPATH.
"""

import os
import re
import subprocess
from pathlib import Path

import headers
import manual
import package
import pages
from pygments.lexers.special import TextLexer
from sources import Sources
from sphinx.addnodes import pending_xref
from sphinx.highlighting import lexers
from text import ROOT

project = "Thalia"
author = "The authors of Thalia"
copyright = author
release = version = re.search(r"version: '([^']+)'", (ROOT / "meson.build").read_text(encoding="utf-8"))[1]

extensions = ["myst_parser"]
root_doc = "index"
# Links to headings, as the hosting's view of Markdown makes them.
myst_heading_anchors = 4
highlight_language = "text"
maximum_signature_line_length = 80
python_use_unqualified_type_names = True
add_module_names = False
toc_object_entries_show_parents = "hide"
smartquotes = False

html_theme = "furo"
html_title = f"Thalia {release}"
html_static_path = [str(ROOT / "docs/site/static")]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_domain_indices = False
html_use_index = True
# Nothing is fetched: fonts are the reader's.
html_theme_options = {
    "light_css_variables": {"font-stack": "system-ui, sans-serif", "font-stack--monospace": "ui-monospace, monospace"},
    "dark_css_variables": {"font-stack": "system-ui, sans-serif", "font-stack--monospace": "ui-monospace, monospace"},
}


# Dumps of bytes, in pages of the format.
lexers["hex"] = TextLexer()


def write_sources(app, config):
    sources = Sources(Path(app.srcdir))
    pages.Pages(sources).write()
    subprocess.run(["doxygen", ROOT / "docs/Doxyfile"], cwd=ROOT, check=True)
    headers.write(ROOT / "build-site/xml", sources)
    build = Path(os.environ["THALIA_BUILD"])
    manual.write(build / "src/cli/documents/thalia.1", sources)
    config.thalia_classes = package.write(build / "python", sources)
    sources.remove_others()


def link_annotations(app, doctree):
    """An annotation is a link where it is a class of the package. Sphinx would take any name, as that of a property."""
    for node in doctree.findall(pending_xref):
        name = node.get("reftarget", "")
        if node.get("refdomain") == "py" and node.get("reftype") in ("class", "obj") and "." not in name:
            node["reftarget"] = app.config.thalia_classes.get(name, name)
            for name in "refspecific", "py:class", "py:module":
                node.attributes.pop(name, None)


def setup(app):
    app.add_config_value("thalia_classes", {}, "env", types=[dict])
    app.connect("config-inited", write_sources)
    app.connect("doctree-read", link_annotations)
