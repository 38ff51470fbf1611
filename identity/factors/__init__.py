"""Factors of a sign-in besides the password: passkeys, authenticator apps, recovery codes (spec 01, 1.6)."""
