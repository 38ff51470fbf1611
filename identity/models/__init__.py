"""Models of identity. Users, Roles, RoleUsers and TrustedApplications are entities that the domain publishes."""

from identity.models.applications import TrustedApplication
from identity.models.factors import AuthenticatorApp, Passkey, RecoveryCode
from identity.models.federation import FederatedAccount, IdentityProvider, IdentityProviderRole
from identity.models.permissions import RolePermission, RowPolicy
from identity.models.pictures import UserPicture
from identity.models.registration import RegistrationPolicy, RegistrationToken
from identity.models.sessions import BrowserSignIn, Licence, RateLimits, ReservedSeat, Session, SignInApplication
from identity.models.tokens import (
    AccessToken,
    DeviceGrant,
    Grant,
    IDToken,
    PushedRequest,
    ReferenceToken,
    RefreshToken,
    SigningKey,
    UsedValue,
)
from identity.models.users import Role, RoleUser, UsedLogin, User

__all__ = [
    "AccessToken",
    "AuthenticatorApp",
    "BrowserSignIn",
    "DeviceGrant",
    "FederatedAccount",
    "Grant",
    "IDToken",
    "IdentityProvider",
    "IdentityProviderRole",
    "Licence",
    "Passkey",
    "PushedRequest",
    "RateLimits",
    "RecoveryCode",
    "ReferenceToken",
    "RefreshToken",
    "RegistrationPolicy",
    "RegistrationToken",
    "ReservedSeat",
    "Role",
    "RolePermission",
    "RoleUser",
    "RowPolicy",
    "Session",
    "SignInApplication",
    "SigningKey",
    "TrustedApplication",
    "UsedLogin",
    "UsedValue",
    "User",
    "UserPicture",
]
