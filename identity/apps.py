"""Django app."""

from django.apps import AppConfig


class IdentityConfig(AppConfig):
    """The identity app."""

    name = "identity"

    def ready(self) -> None:
        """Connect cache invalidation, schedule the sweep, and sign heads of the audit chain."""
        from audit import signer
        from identity import changes, tasks  # noqa: F401  (tasks are scheduled)
        from identity.oauth.head_signer import InstanceSigner

        changes.connect()
        signer.register(InstanceSigner())
