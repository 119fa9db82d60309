"""`fleetctl why`: one paragraph about one thing, down to the cause."""

import textwrap

from rich.text import Text

from fleetd.cli import client, naming, output
from fleetd.cli.frame import Frame


def run(frame: Frame, *, kind: str, name: str | None) -> None:
    asked = client.of(frame)
    kind, name = naming.one(asked, kind, name)
    found = asked.get(naming.path(kind, name))["why"]
    if frame.machine:
        output.data(frame, {"ref": f"{kind}/{name}", **found})
        return
    for line in folded(found["paragraph"]):
        output.line(Text(line))
    if frame.output == "wide":
        output.line(Text())
        for number, link in enumerate(found["chain"], 1):
            output.line(Text.assemble((f"{number:>3}  ", "dim"), link["text"]))


def folded(paragraph: str) -> list[str]:
    """Broken between words on a terminal, one line elsewhere."""
    if not output.on_terminal():
        return [paragraph]
    wide = min(output.width(), 100)
    return textwrap.wrap(paragraph, wide, break_long_words=False, break_on_hyphens=False)
