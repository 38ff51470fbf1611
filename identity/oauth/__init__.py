"""The OpenID provider (spec 01, 1.2–1.5): django-oauth-toolkit with the specification's additions, a module per role.

urls        the endpoints                            validator   oauthlib's callbacks → the functions below
server      the toolkit's server and backend         endpoints   forms, throttles and errors of endpoints for clients
authorize, token, userinfo, logout, discovery        the toolkit's views, subclassed
keys        signing keys and their rotation          clients     client authentication, dual-mode applications
jwt         signing and verifying JWTs               scopes      scopes of each flow
par         pushed authorization requests, stored in pushed        refusals  of authorization requests
assertions  client assertions, with key_sets          binding     tokens bound to keys (identity.dpop)
claims      claims of the tokens                     codes       authorization codes
issue       access and refresh tokens                refresh     rotation and reuse of refresh tokens
exchange    tokens exchanged for delegation
responses   responses of the authorization endpoint

Lifetimes, grants, response types, scopes and generators are settings: OAUTH2_PROVIDER.
"""
