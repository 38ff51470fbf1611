"""Password hashing that costs next to nothing."""

from identity.password_hashing import PasswordHasher


class QuickArgon2PasswordHasher(PasswordHasher):
    """The real algorithm with the least parameters that it accepts."""

    time_cost = 1
    memory_cost = 8
    parallelism = 1
