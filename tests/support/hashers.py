"""Password hashing that costs next to nothing."""

from django.contrib.auth.hashers import Argon2PasswordHasher


class QuickArgon2PasswordHasher(Argon2PasswordHasher):
    """The real algorithm with the least parameters that it accepts."""

    time_cost = 1
    memory_cost = 8
    parallelism = 1
