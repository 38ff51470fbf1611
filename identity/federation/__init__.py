"""Sign-in at upstream OpenID providers that administrators configure (OpenID Connect Core 1.0, 3.1).

login page ──start──▶ provider ──callback──▶ accounts ──▶ sign-in ──▶ the page or client that asked

provider   discovery, keys, the code's exchange, and the checks of an id token
pending    what a browser has begun, sealed in its cookie
accounts   which user an upstream account is; new users, roles by claim
views      the pages
logout     signs out at the provider, too
"""
