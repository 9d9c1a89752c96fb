"""Write the explorer page of `alarm`: `python docs/make_explorer.py alarm.html`."""

import sys
from pathlib import Path

from bench.networks import network

if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.parent.mkdir(parents=True, exist_ok=True)
    network("alarm").page(path, Path(__file__).with_name("alarm.toml"))
    print(path.resolve().as_uri())
