"""The documentation site: `sphinx-build -W --keep-going -b html docs docs/_build/html`."""

from __future__ import annotations

import ast
import importlib.metadata
import re
from pathlib import Path

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

import phex

project = "phex"
author = "The phex authors"
copyright = author
release = importlib.metadata.version("phex")
version = release

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
napoleon_google_docstring = True
napoleon_numpy_docstring = False
# Docstrings put code into single backticks: a link where it names something of the API, else plain code.
default_role = "py:obj"
add_module_names = False
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100
toc_object_entries_show_parents = "hide"

html_theme = "pydata_sphinx_theme"
html_title = "phex"
html_static_path = ["_static"]
html_css_files = ["phex.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "navigation_with_keys": False,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_nav_level": 1,
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
}
html_sidebars = {"index": []}

# Forms that Pygments does not know; they are shown as text.
FORMS = [
    "arff",
    "bqm",
    "categories",
    "coo",
    "csv",
    "graphml",
    "hxg",
    "icd10",
    "levels",
    "matrix",
    "node-link",
    "obo",
    "outline",
    "parents",
    "paths",
    "qubo",
    "rdf-xml",
    "samples",
    "sparse",
    "tree",
    "uai",
]


def offer_files(app: Sphinx, page: str, source: list[str]) -> None:
    """Links to files outside of docs, which the code host shows, are downloads here."""
    folder = (Path(app.srcdir) / page).parent

    def link(found: re.Match[str]) -> str:
        inside = (folder / found[1]).resolve().is_relative_to(Path(app.srcdir).resolve())
        return found[0] if inside else f"](path:{found[1]})"

    source[0] = re.sub(r"\]\((\.\./[^)#]+)\)", link, source[0])


def stub_signatures() -> dict[str, tuple[str, str]]:
    """Parameters and results as the stub of the compiled module has them: with types."""
    stub = ast.parse((Path(phex.__file__).parent / "_core.pyi").read_text(encoding="utf-8"))
    found = {}
    for place, body in [("phex", stub.body)] + [
        (f"phex.{node.name}", node.body) for node in stub.body if isinstance(node, ast.ClassDef)
    ]:
        for node in body:
            if isinstance(node, ast.FunctionDef):
                is_static = any(ast.unparse(mark) == "staticmethod" for mark in node.decorator_list)
                if place != "phex" and not is_static:
                    node.args.posonlyargs, node.args.args = (
                        [],
                        (node.args.posonlyargs + node.args.args)[1:],
                    )
                name = place if node.name == "__new__" else f"{place}.{node.name}"
                result = (
                    "" if node.name == "__new__" or node.returns is None else ast.unparse(node.returns)
                )
                found[name] = (f"({ast.unparse(node.args)})", result)
    found["phex.load"] = found["phex.Graph.load"]
    return found


SIGNATURES = stub_signatures()


def add_types(
    app: Sphinx, what: str, name: str, thing: object, options: object, given: str, result: str
) -> tuple[str, str] | None:
    if what in ("class", "method", "function") and name in SIGNATURES:
        parameters, answer = SIGNATURES[name]
        return parameters.replace("_StrengthLike", "Strength | str"), answer
    return None


def setup(app: Sphinx) -> None:
    app.connect("autodoc-process-signature", add_types)
    for form in FORMS:
        app.add_lexer(form, TextLexer)
    app.connect("source-read", offer_files)
