"""Write the explorer page of a network that is named `docs/NAME.toml`: `python docs/make_explorer.py alarm.html`."""

import sys
from pathlib import Path

import tacit


def example(name: str) -> tacit.Network:
    """A network that comes with tacit, or else one of those that pgmpy ships."""
    if make := getattr(tacit.examples, name, None):
        return make()
    from bench.networks import network  # pgmpy is installed for development only

    return network(name)


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.parent.mkdir(parents=True, exist_ok=True)
    example(path.stem).page(path, Path(__file__).with_name(f"{path.stem}.toml"))
    print(path.resolve().as_uri())
