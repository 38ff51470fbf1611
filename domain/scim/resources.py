"""Discovery resources: schemas, resource types, service provider config; and ListResponse (RFC 7643, 5 to 8)."""

from __future__ import annotations

from typing import Any, Final

USER: Final = "urn:ietf:params:scim:schemas:core:2.0:User"
GROUP: Final = "urn:ietf:params:scim:schemas:core:2.0:Group"
_CORE: Final = "urn:ietf:params:scim:schemas:core:2.0:"
LIST: Final = "urn:ietf:params:scim:api:messages:2.0:ListResponse"
#: Maximum resources of a page.
MAX_RESULTS: Final = 200
#: Maximum bytes of a request body.
MAX_BODY_BYTES: Final = 1024 * 1024

Resource = dict[str, Any]


def _attribute(name: str, type_: str = "string", text: str = "", **changes: Any) -> Resource:
    result = {
        "name": name,
        "type": type_,
        "multiValued": False,
        "description": text,
        "required": False,
        "mutability": "readWrite",
        "returned": "default",
        **changes,
    }
    return result if type_ != "string" else {"caseExact": False, "uniqueness": "none", **result}


def _values(name: str, text: str, *parts: Resource) -> Resource:
    return _attribute(name, "complex", text, multiValued=True, subAttributes=list(parts))


_VALUE, _TYPE, _PRIMARY = (
    _attribute("value"),
    _attribute("type", mutability="readOnly"),
    _attribute("primary", "boolean", mutability="readOnly"),
)
_USER_ATTRIBUTES = [
    _attribute("userName", text="The login; never given to a second user.", required=True, uniqueness="server"),
    _attribute("displayName", text="The name in English."),
    _attribute(
        "name",
        "complex",
        "formatted is displayName; the others make it where both are missing.",
        subAttributes=[
            _attribute("formatted"),
            _attribute("givenName", mutability="writeOnly", returned="never"),
            _attribute("familyName", mutability="writeOnly", returned="never"),
        ],
    ),
    _values("emails", "One is stored: the primary one, else the first.", _VALUE, _TYPE, _PRIMARY),
    _values("phoneNumbers", "One is stored, as of emails.", _VALUE, _TYPE, _PRIMARY),
    _values("photos", "One is stored: an https address.", _VALUE, _TYPE, _PRIMARY),
    _attribute("active", "boolean", "false ends sessions and tokens."),
    _attribute(
        "userType", text="Internal users may use the API.", canonicalValues=["InternalUser", "ExternalCommunityUser"]
    ),
    _attribute("preferredLanguage"),
    _attribute("timezone"),
    _values(
        "groups",
        "The roles.",
        _attribute("value", mutability="readOnly"),
        _attribute("display", mutability="readOnly"),
        _attribute("$ref", "reference", mutability="readOnly", referenceTypes=["Group"]),
    )
    | {"mutability": "readOnly"},
]
_GROUP_ATTRIBUTES = [
    _attribute("displayName", text="The name of the role.", required=True, uniqueness="server"),
    _values(
        "members",
        "The users who have the role.",
        _attribute("value", mutability="immutable"),
        _attribute("display", mutability="readOnly"),
        _attribute("$ref", "reference", mutability="immutable", referenceTypes=["User"]),
    ),
]


def schemas(root: str) -> list[Resource]:
    """`/Schemas`."""
    return [
        _schema(root, USER, "User", "A user of the instance.", _USER_ATTRIBUTES),
        _schema(root, GROUP, "Group", "A role of the instance.", _GROUP_ATTRIBUTES),
    ]


def _schema(root: str, id: str, name: str, text: str, attributes: list[Resource]) -> Resource:
    return {
        "schemas": [f"{_CORE}Schema"],
        "id": id,
        "name": name,
        "description": text,
        "attributes": attributes,
        "meta": {"resourceType": "Schema", "location": f"{root}/Schemas/{id}"},
    }


def resource_types(root: str) -> list[Resource]:
    """`/ResourceTypes`."""
    return [
        {
            "schemas": [f"{_CORE}ResourceType"],
            "id": name,
            "name": name,
            "endpoint": f"/{name}s",
            "schema": schema,
            "meta": {"resourceType": "ResourceType", "location": f"{root}/ResourceTypes/{name}"},
        }
        for name, schema in (("User", USER), ("Group", GROUP))
    ]


def service_provider_config(root: str) -> Resource:
    """`/ServiceProviderConfig`."""
    return {
        "schemas": [f"{_CORE}ServiceProviderConfig"],
        "patch": {"supported": True},
        "bulk": {"supported": False, "maxOperations": 0, "maxPayloadSize": 0},
        "filter": {"supported": True, "maxResults": MAX_RESULTS},
        "changePassword": {"supported": False},
        "sort": {"supported": True},
        "etag": {"supported": True},
        "authenticationSchemes": [
            {
                "type": "oauthbearertoken",
                "name": "OAuth bearer token",
                "description": "A token of a service whose scopes include scim.",
                "specUri": "https://www.rfc-editor.org/rfc/rfc6750",
                "primary": True,
            }
        ],
        "meta": {"resourceType": "ServiceProviderConfig", "location": f"{root}/ServiceProviderConfig"},
    }


def listed(resources: list[Resource], *, total: int, start: int = 1) -> Resource:
    """A ListResponse (RFC 7644, 3.4.2)."""
    return {
        "schemas": [LIST],
        "totalResults": total,
        "startIndex": start,
        "itemsPerPage": len(resources),
        "Resources": resources,
    }


def selected(resource: Resource, *, attributes: list[str], excluded: list[str]) -> Resource:
    """The resource with the requested attributes only (RFC 7644, 3.9); `schemas`, `id` and `meta` always."""
    always = {"schemas", "id", "meta"}
    wanted = {each.partition(".")[0].lower() for each in attributes}
    unwanted = {each.lower() for each in excluded}
    return {
        name: value
        for name, value in resource.items()
        if name in always or ((not wanted or name.lower() in wanted) and name.lower() not in unwanted)
    }
