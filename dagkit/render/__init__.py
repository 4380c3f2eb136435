"""Draws a graph or a plan as a picture, and writes the picture as DOT, SVG, PNG, PDF, Mermaid, text or JSON."""

from dagkit.render.formats import BINARY, FORMATS, Format, render
from dagkit.render.logical import logical
from dagkit.render.physical import physical
from dagkit.render.picture import PICTURE_SCHEMA, Picture
from dagkit.render.text import text

__all__ = ["BINARY", "FORMATS", "PICTURE_SCHEMA", "Format", "Picture", "logical", "physical", "render", "text"]
