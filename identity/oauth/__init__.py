"""The OpenID provider (spec 01, 1.2–1.5) on django-oauth-toolkit, one module per protocol role.

keys        signing keys and their rotation          clients     client authentication, dual-mode applications
jwt         signing and verifying JWTs               scopes      scopes of each flow
claims      claims of the tokens                     codes       authorization codes
issue       access, refresh and id tokens            refresh     rotation and reuse of refresh tokens
validator   oauthlib's callbacks → the functions above
server      the supported grants                     responses   responses of the authorization endpoint
authorize, token, userinfo, logout, discovery        the endpoints
"""
