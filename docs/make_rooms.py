"""Draws docs/images/rooms.svg from the table of rooms in docs/architecture.md: `python -m docs.make_rooms`."""

import re
from pathlib import Path
from typing import NamedTuple

import tacit

PAGE = Path(__file__).with_name("architecture.md")
TARGET = Path(__file__).parent / "images" / "rooms.svg"


class Room(NamedTuple):
    """A line of the table: what a room may use, and the order of what is inside."""

    uses: tuple[str, ...]
    inside: tuple[str, ...]  # each may use those before it; "." stands for the files of the room itself


def rooms(page: str) -> dict[str, Room]:
    """The rooms and doors of the page, by name."""
    table = page.split("## Rooms")[1].split("\n## ")[0]
    lines = [line.split("|")[1:-1] for line in table.splitlines() if line.startswith("| `")]
    return {
        name: Room(tuple(re.findall(r"`(\w+)`", uses)), tuple(re.findall(r"`([\w.]+)`", inside)))
        for names, _, uses, inside in lines
        for name in re.findall(r"`(\w+)`", names)
    }


def picture(plan: dict[str, Room]) -> str:
    """The rooms as SVG, what is used on top; an arrow that follows from others is left out."""
    net = tacit.Network("rooms")
    for name in (name for name, room in plan.items() if room.inside):
        uses = [used for used in plan[name].uses if plan[used].inside]
        direct = [used for used in uses if not any(used in plan[other].uses for other in uses)]
        net.add(name, parents=direct)
    return tacit.drawing.draw(net).svg


if __name__ == "__main__":
    TARGET.write_text(picture(rooms(PAGE.read_text(encoding="utf-8"))), encoding="utf-8")
