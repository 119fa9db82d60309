"""What the ironic driver sends, held against what python-ironicclient and Ironic know."""

from ironicclient.v1 import node, utils
from ironicclient.v1.resource_fields import Resource as Fields

from drivers.ironic import client, driver, nodes
from tests.drivers.ironic.stage import TOPOLOGY
from topology.resource import Ref

SERVER = TOPOLOGY.resources[Ref("server", "r1-s01")]


def test_a_node_is_created_with_fields_that_exist() -> None:
    """The client refuses unknown ones before it asks anybody."""
    known = node.NodeManager._creation_attributes

    assert set(nodes.body(SERVER)) <= set(known)


def test_the_fields_asked_for_exist() -> None:
    """Ironic answers 400 to a field it does not know."""
    assert set(client.FIELDS) <= set(Fields.FIELDS)


def test_the_verbs_are_ironics_own() -> None:
    """Of all provision actions fleetd knows three, and none of them wipes or undeploys."""
    targets = {
        driver._target(state, inspected=inspected)
        for state in ("enroll", "manageable", "available", "active", "clean failed", "error")
        for inspected in (True, False)
    } - {""}

    assert targets == {"manage", "inspect", "provide"}
    assert targets <= set(utils.PROVISION_ACTIONS)


def test_no_password_is_in_the_body() -> None:
    """It is set by a verb of its own."""
    assert not [key for key in nodes.body(SERVER)["driver_info"] if "password" in key]
