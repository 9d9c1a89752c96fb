"""Write the explorer page of a network that is named `docs/NAME.toml`: `python docs/make_explorer.py alarm.html`."""

import sys
from pathlib import Path

from bench.networks import network

if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.parent.mkdir(parents=True, exist_ok=True)
    network(path.stem).page(path, Path(__file__).with_name(f"{path.stem}.toml"))
    print(path.resolve().as_uri())
