"""ServerPool: bare-metal servers of one class, by their BMCs."""

import re
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Annotated, Literal
from uuid import UUID

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from topology.documents.base import (
    Access,
    Document,
    Labels,
    Model,
    Name,
    TypeName,
    complain,
    quote,
)


def _address(value: object) -> object:
    """One BMC address that does not parse stops the whole metal operator, so nothing but a plain
    address passes."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise complain(
            "bmc-address-invalid",
            f"{value} is a number, not an IP address",
            "write e.g. 192.0.2.11",
        )
    if not isinstance(value, str):
        return value
    try:
        parsed = ip_address(value)
    except ValueError:
        raise complain(
            "bmc-address-invalid",
            f"{quote(value)} is not an IP address",
            f"{_repair(value[:80])}; one that does not parse stops the metal operator for all "
            "servers",
        ) from None
    if isinstance(parsed, IPv6Address) and parsed.scope_id:
        raise complain(
            "bmc-address-invalid", f"{quote(value)} has a zone index", "remove the part after '%'"
        )
    if _of_no_machine((parsed.ipv4_mapped or parsed) if parsed.version == 6 else parsed):
        raise complain(
            "bmc-address-invalid", f"{value} cannot be a BMC", "write the BMC's own address"
        )
    return str(parsed)


def _of_no_machine(address: IPv4Address | IPv6Address) -> bool:
    """Addresses that lead to no machine, to this one, or nowhere beyond the next switch."""
    return (
        address.is_unspecified
        or address.is_multicast
        or address.is_loopback
        or address.is_link_local
        or (isinstance(address, IPv4Address) and (address.is_reserved or int(address) >> 24 == 0))
    )


def _repair(value: str) -> str:
    """What to write instead of an address with something around it, if one can be seen."""
    for part, hint in (
        (value.strip(), "write {} without spaces"),
        (_URL.sub(r"\1\2", value), "write {} alone, without scheme, port or path"),
        (value.rpartition("@")[2].rstrip("/"), "write {} alone; user and password go into access"),
        (value.partition("/")[0], "write {} alone, without the length of the network"),
        (value.rpartition(":")[0].strip("[]"), "write {} and put the port into redfish.port"),
        (value.strip("[]"), "write {} without brackets"),
        (_ZEROS.sub("", value), "write {} without zeros in front of a number"),
    ):
        try:
            return hint.format(ip_address(part))
        except ValueError:
            continue
    if _MAC.fullmatch(value):
        return "this is a hardware address; write the IP address that the BMC has"
    if _DOTTED.fullmatch(value):
        return "write four numbers from 0 to 255 with dots between them"
    return "write the address of the BMC, not its host name"


_URL = re.compile(r"[a-z+]+://(?:\[([0-9a-fA-F:.]+)\]|([0-9.]+))(?::[0-9]+)?(?:/.*)?")
_MAC = re.compile(r"[0-9a-fA-F]{2}([:-][0-9a-fA-F]{2}){5}")
_DOTTED = re.compile(r"[0-9]+(\.[0-9]+)+")
_ZEROS = re.compile(r"(?<![0-9])0+(?=[0-9])")


BmcAddress = Annotated[
    str,
    BeforeValidator(_address),
    WithJsonSchema({"type": "string", "anyOf": [{"format": "ipv4"}, {"format": "ipv6"}]}),
]


def _uuid(value: str) -> str:
    try:
        return str(UUID(value))
    except ValueError:
        raise complain(
            "uuid-invalid",
            f"{value[:80]!r} is not a UUID",
            "copy it from the BMC's ComputerSystem, e.g. 38947555-7742-3448-3784-823347823834",
        ) from None


class Server(Model):
    """One bare-metal server."""

    name: Name
    """Unique in the whole fleet, e.g. r1-s01."""
    bmc: BmcAddress
    """Address of the BMC."""
    zone: Name
    """One of the region's zones."""
    rack: Name | None = None
    """Rack it stands in; servers without one count as a rack of their own."""
    uuid: Annotated[str, AfterValidator(_uuid)] | None = None
    """System UUID, if known: it proves that two entries are not one machine."""
    labels: Labels = Field(default_factory=dict)
    """Put on this server and from there on its Node; wins over the pool's labels."""


class BmcRange(Model):
    """Consecutive BMC addresses; the servers are named `<prefix><number>`."""

    first: BmcAddress
    """Address of the first BMC, e.g. 192.0.2.11."""
    last: BmcAddress
    """Address of the last BMC, included; at most 4096 addresses in all."""
    zone: Name
    """Zone all of them stand in."""
    rack: Name | None = None
    """Rack all of them stand in; without one, each counts as a rack of its own."""
    prefix: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,40}$")] | None = None
    """Start of the servers' names: up to 41 lower-case letters, digits and '-', e.g. r1-s;
    `<pool>-` if left out."""

    @model_validator(mode="after")
    def _ordered(self) -> "BmcRange":
        first, last = ip_address(self.first), ip_address(self.last)
        if first.version != last.version:
            raise complain(
                "range-mixed", "one end is IPv4, the other IPv6", "use one family", field="last"
            )
        size = int(last) - int(first) + 1
        if size < 1:
            raise complain(
                "range-reversed",
                f"{last} comes before {first}",
                "swap first and last",
                field="last",
            )
        if size > 4096:
            raise complain(
                "range-too-large",
                f"{size} addresses are more than 4096",
                "split the range into several pools",
                field="last",
            )
        return self

    def addresses(self) -> list[IPv4Address | IPv6Address]:
        first = ip_address(self.first)
        size = int(ip_address(self.last)) - int(first) + 1
        return [first + offset for offset in range(size)]


class Redfish(Model):
    """How the BMCs are spoken to."""

    port: Annotated[int, Field(ge=1, le=65535)] = 443
    """Port of the BMCs."""
    scheme: Literal["https", "http"] = "https"
    """https, or http for BMCs that have nothing better: passwords then travel in the clear."""


class ServerPoolSpec(Model):
    region: Name
    """Region the servers stand in."""
    class_: TypeName = Field(alias="class")
    """Machine type of the CloudProfile that these servers are, e.g. hv-96c."""
    servers: Annotated[list[Server], Field(max_length=4096)] = Field(default_factory=list)
    """The servers one by one; or `range`."""
    range: BmcRange | None = None
    """The servers as a range of BMC addresses."""
    access: Access
    """User name and password of the BMCs."""
    redfish: Redfish = Redfish()
    """Port and scheme of the BMCs."""
    labels: Labels = Field(default_factory=dict)
    """Put on every server of the pool, and from there on its Node."""

    @model_validator(mode="after")
    def _one_way(self) -> "ServerPoolSpec":
        if self.servers and self.range:
            raise complain(
                "pool-two-ways",
                "both servers and range are given",
                "keep one of them, or make two pools",
                field="range",
            )
        if not self.servers and not self.range:
            raise complain(
                "pool-empty",
                "there is not one server in the pool",
                "add servers: [{name, bmc, zone, rack}] or range: {first, last, zone}",
            )
        return self


class ServerPool(Document):
    """Bare-metal servers of one class that clusters of the region may use."""

    kind: Literal["ServerPool"]
    """Always `ServerPool`."""
    spec: ServerPoolSpec
    """The servers and how to reach them."""
