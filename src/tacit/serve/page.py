"""The explorer page of a network, and what the browser lets it do."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass

SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)


@dataclass(frozen=True)
class Page:
    """A page and its content security policy."""

    html: str

    @property
    def policy(self) -> str:
        """Only the scripts that are in the page, and only this server."""
        scripts = " ".join(f"'sha256-{_digest(text)}'" for text in SCRIPT.findall(self.html))
        return (
            f"default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data: blob:; "
            "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
