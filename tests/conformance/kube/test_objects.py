"""Creating, reading, replacing and deleting one object."""

import base64

from tests.conformance.kube.api import CORE, Api, Kind, config_map


async def test_created_object_gets_identity(api: Api) -> None:
    """Create answers 201 with a uid, a resourceVersion and the time."""
    answer = await api.config("a", {"x": "1"})

    assert answer.status == 201
    assert {"uid", "resourceVersion", "creationTimestamp"} <= set(answer.meta)


async def test_created_object_reads_back(api: Api) -> None:
    """Get gives what create answered."""
    made = await api.config("a", {"x": "1"})
    read = await api.get(api.maps("a"))

    assert read.status == 200
    assert read.json == made.json


async def test_second_create_is_refused(api: Api) -> None:
    """A name that is taken answers 409 AlreadyExists, and names the object."""
    await api.config("a")
    answer = await api.config("a")

    assert (answer.status, answer.reason) == (409, "AlreadyExists")
    assert answer.message == 'configmaps "a" already exists'
    assert answer.json["details"]["name"] == "a"


async def test_missing_object_is_not_found(api: Api) -> None:
    """Get of nothing answers 404 with a Status that names it."""
    answer = await api.get(api.maps("nothing"))

    assert (answer.status, answer.reason) == (404, "NotFound")
    assert answer.message == 'configmaps "nothing" not found'
    assert answer.json["details"] == {"name": "nothing", "kind": "configmaps"}


async def test_missing_custom_object_names_its_group(api: Api, widget: Kind) -> None:
    """For a custom resource the message has plural and group."""
    answer = await api.get(widget.place(api, "nothing"))

    assert answer.message == f'widgets.{widget.group} "nothing" not found'
    assert answer.json["details"]["group"] == widget.group


async def test_generated_names_differ(api: Api) -> None:
    """generateName makes a new name each time, with the prefix."""
    body = {"metadata": {"generateName": "many-"}}
    names = {(await api.post(api.maps(), body)).meta["name"] for _ in range(5)}

    assert len(names) == 5
    assert all(name.startswith("many-") and len(name) == 10 for name in names)


async def test_object_without_name_is_invalid(api: Api) -> None:
    """Neither name nor generateName: 422."""
    answer = await api.post(api.maps(), {"metadata": {}})

    assert (answer.status, answer.reason) == (422, "Invalid")
    assert "name or generateName is required" in answer.message


async def test_bad_name_is_invalid(api: Api) -> None:
    """A name that is no DNS name is refused, and the field is named."""
    answer = await api.config("Not_Good")

    assert answer.status == 422
    assert answer.json["details"]["causes"][0]["field"] == "metadata.name"


async def test_bad_label_is_invalid(api: Api) -> None:
    """A label value with a space is refused."""
    answer = await api.config("a", labels={"x": "no good"})

    assert answer.status == 422
    assert "metadata.labels" in answer.message


async def test_missing_namespace_is_not_found(api: Api) -> None:
    """Nothing can be created in a namespace that is not there."""
    answer = await api.post(api.maps(namespace="nowhere-at-all"), config_map("a"))

    assert answer.status == 404
    assert answer.message == 'namespaces "nowhere-at-all" not found'


async def test_namespace_must_match_the_path(api: Api) -> None:
    """An object that says another namespace than the path is refused with 400."""
    answer = await api.config("a", namespace="default")

    assert (answer.status, answer.reason) == (400, "BadRequest")
    assert "does not match the namespace" in answer.message


async def test_kind_must_match_the_path(api: Api) -> None:
    """A Secret sent to configmaps is refused with 400."""
    answer = await api.post(
        api.maps(), {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}
    )

    assert answer.status == 400


async def test_writer_cannot_set_what_is_the_servers(api: Api) -> None:
    """uid and creationTimestamp that are sent with a create are not taken."""
    answer = await api.config("a", uid="mine", creationTimestamp="2001-01-01T00:00:00Z")

    assert answer.status == 201
    assert answer.meta["uid"] != "mine"
    assert not answer.meta["creationTimestamp"].startswith("2001")


async def test_create_with_a_version_is_refused(api: Api) -> None:
    """resourceVersion must not be set on creation."""
    answer = await api.config("a", resourceVersion="5")

    assert (answer.status, answer.reason) == (500, "")
    assert answer.message == "resourceVersion should not be set on objects to be created"


async def test_replace_with_current_version(api: Api) -> None:
    """PUT with the version that was read is stored and gets a newer one."""
    made = await api.config("a", {"x": "1"})
    answer = await api.put(api.maps("a"), {**made.json, "data": {"y": "2"}})

    assert answer.status == 200
    assert answer.json["data"] == {"y": "2"}
    assert int(answer.version) > int(made.version)


async def test_replace_with_old_version_conflicts(api: Api) -> None:
    """PUT with a version that is not current answers 409, in these words."""
    made = await api.config("a", {"x": "1"})
    await api.merge(api.maps("a"), {"data": {"x": "2"}})
    answer = await api.put(api.maps("a"), {**made.json, "data": {"x": "3"}})

    assert (answer.status, answer.reason) == (409, "Conflict")
    assert answer.message == (
        'Operation cannot be fulfilled on configmaps "a": the object has been modified; please '
        "apply your changes to the latest version and try again"
    )


async def test_replace_that_changes_nothing(api: Api) -> None:
    """PUT of what is there already leaves the resourceVersion alone."""
    made = await api.config("a", {"x": "1"})
    answer = await api.put(api.maps("a"), made.json)

    assert answer.status == 200
    assert answer.version == made.version


async def test_replace_without_version_of_a_builtin(api: Api) -> None:
    """PUT without a version is taken for a ConfigMap."""
    await api.config("a", {"x": "1"})
    answer = await api.put(api.maps("a"), config_map("a", {"x": "2"}))

    assert answer.status == 200
    assert answer.json["data"] == {"x": "2"}


async def test_replace_without_version_of_a_custom_resource(api: Api, widget: Kind) -> None:
    """PUT without a version is refused for a custom resource."""
    await api.post(widget.place(api), widget.make("a"))
    answer = await api.put(widget.place(api, "a"), widget.make("a", {"size": 2}))

    assert answer.status == 422
    assert "metadata.resourceVersion" in answer.message
    assert "must be specified for an update" in answer.message


async def test_replace_of_nothing(api: Api) -> None:
    """PUT does not create."""
    answer = await api.put(api.maps("a"), config_map("a"))

    assert answer.status == 404


async def test_replace_with_another_uid(api: Api) -> None:
    """PUT for an object that has been made anew in between answers 409."""
    await api.config("a")
    body = config_map("a", uid="00000000-0000-0000-0000-000000000000")
    answer = await api.put(api.maps("a"), body)

    assert (answer.status, answer.reason) == (409, "Conflict")
    assert "UID in precondition" in answer.message


async def test_name_must_match_the_path(api: Api) -> None:
    """PUT of an object with another name than the path is refused with 400."""
    await api.config("a")
    answer = await api.put(api.maps("a"), config_map("b"))

    assert answer.status == 400
    assert "does not match the name on the URL" in answer.message


async def test_delete_says_what_is_gone(api: Api) -> None:
    """Delete answers a Status of success with the uid, and then there is nothing."""
    made = await api.config("a")
    answer = await api.delete(api.maps("a"))
    again = await api.get(api.maps("a"))

    assert (answer.status, answer.json["status"]) == (200, "Success")
    assert answer.json["details"]["uid"] == made.meta["uid"]
    assert again.status == 404


async def test_delete_of_nothing(api: Api) -> None:
    """Delete of what is not there answers 404."""
    assert (await api.delete(api.maps("a"))).status == 404


async def test_delete_with_another_uid(api: Api) -> None:
    """A uid as precondition keeps a delete from hitting a namesake."""
    await api.config("a")
    answer = await api.delete(api.maps("a"), {"preconditions": {"uid": "other"}})
    still = await api.get(api.maps("a"))

    assert (answer.status, still.status) == (409, 200)


async def test_delete_with_an_old_version(api: Api) -> None:
    """A resourceVersion as precondition keeps a delete from hitting a changed object."""
    made = await api.config("a")
    await api.merge(api.maps("a"), {"data": {"x": "1"}})
    answer = await api.delete(api.maps("a"), {"preconditions": {"resourceVersion": made.version}})

    assert (answer.status, answer.reason) == (409, "Conflict")


async def test_delete_of_many(api: Api) -> None:
    """Delete of a collection takes what the selector fits and nothing else."""
    await api.config("a", labels={"go": "yes"})
    await api.config("b", labels={"go": "yes"})
    await api.config("c")
    answer = await api.delete(api.maps(), labelSelector="go=yes")
    left = await api.get(
        api.maps(), labelSelector="!never", fieldSelector="metadata.name!=kube-root-ca.crt"
    )

    assert answer.status == 200
    assert [item["metadata"]["name"] for item in left.json["items"]] == ["c"]


async def test_recreated_object_is_another(api: Api) -> None:
    """A namesake made after a delete has another uid."""
    first = await api.config("a")
    await api.delete(api.maps("a"))
    second = await api.config("a")

    assert first.meta["uid"] != second.meta["uid"]


async def test_secret_text_is_encoded(api: Api) -> None:
    """stringData ends up encoded in data and is not given back; the type has a default."""
    path = api.place("secrets")
    answer = await api.post(path, {"metadata": {"name": "a"}, "stringData": {"k": "hush"}})

    assert answer.json["data"] == {"k": base64.b64encode(b"hush").decode()}
    assert "stringData" not in answer.json
    assert answer.json["type"] == "Opaque"


async def test_type_of_a_secret_is_immutable(api: Api) -> None:
    """A Secret cannot change its type."""
    await api.post(api.place("secrets"), {"metadata": {"name": "a"}, "type": "Opaque"})
    answer = await api.merge(api.place("secrets", "a"), {"type": "example.com/other"})

    assert answer.status == 422
    assert "field is immutable" in answer.message


async def test_sealed_config_map(api: Api) -> None:
    """A ConfigMap that says immutable cannot change its data."""
    await api.post(api.maps(), {**config_map("a", {"x": "1"}), "immutable": True})
    answer = await api.merge(api.maps("a"), {"data": {"x": "2"}})

    assert (answer.status, answer.reason) == (422, "Invalid")


async def test_unknown_content_type(api: Api) -> None:
    """A body that claims to be plain text is answered with 415."""
    answer = await api.send("POST", api.maps(), b"hello", kind="text/plain")

    assert answer.status == 415


async def test_broken_body(api: Api) -> None:
    """A body that is no JSON is answered with 400."""
    answer = await api.send("POST", api.maps(), b'{"metadata":')

    assert answer.status == 400


async def test_yaml_body(api: Api) -> None:
    """An object may be sent as YAML."""
    answer = await api.send(
        "POST", api.maps(), b"metadata:\n  name: a\ndata:\n  x: '1'\n", kind="application/yaml"
    )

    assert answer.status == 201
    assert answer.json["data"] == {"x": "1"}


async def test_unknown_group(api: Api) -> None:
    """A group that is not served answers 404."""
    assert (await api.get("/apis/nobody.example/v1/things")).status == 404


async def test_unknown_kind_of_a_known_group(api: Api) -> None:
    """A kind that the core group does not have answers 404 without a name."""
    answer = await api.get(f"{CORE}/namespaces/{api.namespace}/unicorns")

    assert answer.status == 404
    assert "could not find the requested resource" in answer.message


async def test_create_needs_a_namespace(api: Api) -> None:
    """A namespaced object cannot be created at the cluster's path."""
    answer = await api.post(f"{CORE}/configmaps", config_map("a"))

    assert answer.status == 405


async def test_dry_run_create_stores_nothing(api: Api) -> None:
    """A dry run of create answers as create would, and leaves nothing behind."""
    answer = await api.post(api.maps(), config_map("a"), dryRun="All")
    read = await api.get(api.maps("a"))

    assert (answer.status, read.status) == (201, 404)


async def test_dry_run_delete_deletes_nothing(api: Api) -> None:
    """A dry run of delete leaves the object."""
    await api.config("a")
    answer = await api.delete(api.maps("a"), dryRun="All")
    read = await api.get(api.maps("a"))

    assert (answer.status, read.status) == (200, 200)


async def test_dry_run_patch_changes_nothing(api: Api) -> None:
    """A dry run of patch shows the change and does not make it."""
    made = await api.config("a", {"x": "1"})
    answer = await api.merge(api.maps("a"), {"data": {"x": "2"}}, dryRun="All")
    read = await api.get(api.maps("a"))

    assert answer.json["data"] == {"x": "2"}
    assert (read.json["data"], read.version) == ({"x": "1"}, made.version)
