"""The explorer: a network as one HTML page, which computes its answers itself."""

from tacit.views.page.captions import Captions
from tacit.views.page.html_page import Explorer, page_html, write_page

__all__ = ["Captions", "Explorer", "page_html", "write_page"]
