"""Sign-in at upstream OpenID providers that administrators configure (OpenID Connect Core 1.0, 3.1).

login page ──start──▶ provider ──callback──▶ accounts ──▶ sign-in ──▶ the requesting page or client

provider   discovery, keys, the exchange of the code, and the checks of an id token
pending    sign-ins that a browser has begun, encrypted in its cookie
accounts   maps upstream accounts to users; new users, roles by claim
views      the pages
logout     signs out at the provider, too
"""
