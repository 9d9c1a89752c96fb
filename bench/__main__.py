"""`python -m bench [name [arguments]]`: one benchmark, or all of them."""

import sys
from importlib import import_module

# modules of this package with a function main(arguments)
# fmt: off
NAMES = (
    "compile", "inference", "estimation", "learning", "classifiers", "batch", "frames", "questions", "scale", "page",
    "native", "cold", "sequences", "serve", "one_row", "densities", "densities_hmm", "decisions", "row_tables",
    "ensembles", "interval_rows", "estimates",
)
# fmt: on
# likewise, but they need another checkout or files from elsewhere, or write no page
ON_REQUEST = (
    "against",
    "counterfactuals",
    "discovery",
    "drawings",
    "evidence_bounds",
    "intervals",
    "keel",
    "simulation",
    "structure",
    "uai",
)


def main(arguments: list[str]) -> int:
    name, *rest = arguments or ["all"]
    if name not in (*NAMES, *ON_REQUEST, "all"):
        print(f"unknown benchmark {name!r}, expected one of {', '.join((*NAMES, *ON_REQUEST, 'all'))}", file=sys.stderr)
        return 2
    for module in NAMES if name == "all" else (name,):
        import_module(f"bench.{module}").main(rest)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
