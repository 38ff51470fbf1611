"""The OpenID provider (spec 01, 1.2–1.5) on django-oauth-toolkit, one module per protocol role.

keys        signing keys and their rotation          clients     who a client is, and dual-mode applications
jwt         signing and verifying JWTs               scopes      which scopes a flow gets
claims      what the tokens say                      codes       authorization codes
issue       access, refresh and id tokens            refresh     rotation and reuse of refresh tokens
validator   oauthlib's questions → the functions above
server      the grants that are served               responses   answers of the authorization endpoint
authorize, token, userinfo, logout, discovery        the endpoints
"""
