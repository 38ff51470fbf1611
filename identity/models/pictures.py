"""Profile pictures of users."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from foundation.fields import utc_now
from identity.models.users import User


class UserPicture(models.Model):
    """The picture of a user: two PNG images made from an upload (identity.pictures), or an external URL.

    small, large   64 x 64 and 128 x 128 pixels; null where `url` is set
    url            https address of a picture that another site serves; "" where the images are set
    """

    user = models.OneToOneField(User, on_delete=models.CASCADE, primary_key=True, related_name="picture")
    small = models.BinaryField(null=True)
    large = models.BinaryField(null=True)
    url = models.CharField(max_length=2000, blank=True, default="")
    changed = models.DateTimeField(default=utc_now)

    objects: ClassVar[models.Manager[UserPicture]]

    def __str__(self) -> str:
        return f"picture of {self.user_id}"
