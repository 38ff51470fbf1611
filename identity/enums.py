"""Enum types of Systems.Security; the domain publishes them with its repositories."""

from __future__ import annotations

from foundation.enums import EnumType

USER_TYPE = EnumType(
    "Systems.Security.UsersRepository.UserType",
    {"InternalUser": 0, "ExternalCommunityUser": 1, "SystemUserNoLogin": 3},
    edm_name="Systems_Security_Users_UserType",
)

CLIENT_TYPE = EnumType(
    "Systems.Security.TrustedApplicationsRepository.ClientType",
    {"Confidential": 0, "Public": 1},
    edm_name="Systems_Security_TrustedApplications_ClientType",
)

ACCESS_TOKENS = EnumType(
    "Systems.Security.TrustedApplicationsRepository.AccessTokens",
    {"None": 0, "AuthenticatedUsers": 1, "AdministratorsOnly": 2},
    edm_name="Systems_Security_TrustedApplications_AccessTokens",
)

REQUIRED_FACTOR = EnumType(
    "Systems.Security.RolesRepository.RequiredFactor",
    {"None": 0, "SecondFactor": 1, "Passkey": 2},
    edm_name="Systems_Security_Roles_RequiredFactor",
)

#: How a confidential application authenticates: OIDC Core, 9.
CLIENT_AUTHENTICATION = EnumType(
    "Systems.Security.TrustedApplicationsRepository.ClientAuthentication",
    {"Secret": 0, "SecretJwt": 1, "PrivateKeyJwt": 2},
    edm_name="Systems_Security_TrustedApplications_ClientAuthentication",
)
