"""`fleetctl render`: documents as the resources and edges they become."""

from pathlib import Path

from fleetd.cli import output, reading
from fleetd.cli.frame import Frame
from topology import draw


def run(frame: Frame, paths: tuple[Path, ...], catalogue: tuple[Path, ...]) -> None:
    topology = reading.fleet(frame, paths, catalogue).topology
    match frame.output:
        case "json" | "yaml":
            output.data(frame, draw.as_json(topology))
        case "dot":
            output.lines(draw.dot(topology))
        case "mermaid":
            output.lines(draw.mermaid(topology))
        case _:
            for place, region in enumerate(sorted(topology.regions)):
                if place:
                    output.lines([""])
                output.lines(draw.tree(topology, region))
