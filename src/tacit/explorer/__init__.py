"""The explorer: a network as one HTML page, which computes its answers itself."""

from tacit.explorer.captions import Captions
from tacit.explorer.page import Explorer, page_html, write_page

__all__ = ["Captions", "Explorer", "page_html", "write_page"]
