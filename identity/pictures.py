"""Profile pictures: decoded within limits and encoded again, so that nothing else of the uploaded file is stored.

A malicious file can claim any size, have thousands of scans, and contain metadata or programs. So only JPEG and PNG are
accepted, size and scans are checked before decoding, a process decodes one picture at a time, and the stored PNG
contains only pixels.
"""

from __future__ import annotations

import io
import struct
import threading
from typing import IO, Final
from urllib.parse import urlsplit

from django.db import transaction
from PIL import Image, ImageOps

from foundation.fields import utc_now
from foundation.messages import TranslatableMessage as Message
from identity.models import User, UserPicture

SMALL: Final = 64
LARGE: Final = 128
#: Maximum size of an uploaded file; below the limit of forms (DATA_UPLOAD_MAX_MEMORY_SIZE).
MAX_FILE_BYTES: Final = 3_000_000
#: Width times height: above the 12 megapixels of telephones; decoding takes 94 MB, with transparency 186 (measured).
MAX_PIXELS: Final = 24_000_000
#: Maximum scans of a JPEG: each scan of a progressive one, even of 42 bytes, processes all blocks (up to 90 ms at
#: MAX_PIXELS, measured). Encoders write 10, for CMYK 18; embedded previews add theirs.
MAX_SCANS: Final = 32
#: Maximum size of a stored image; 413 for larger ones. A PNG of 128 x 128 pixels has at most 66 KB.
MAX_STORED_BYTES: Final = 256 * 1024
_FORMATS: Final = ("JPEG", "PNG")
#: Modes that are resized without converting the large picture, which would copy it.
_PLAIN: Final = ("L", "RGB", "RGBA")
#: Pillow's errors for damaged files, also for invalid EXIF data.
_DAMAGES: Final = (
    OSError, EOFError, ValueError, SyntaxError, TypeError, LookupError, ArithmeticError, struct.error,
    Image.DecompressionBombError,
)  # fmt: skip
#: SOS (ITU-T T.81, B.2.3). Compressed data cannot contain it, other segments can, so its number is an upper bound.
_START_OF_SCAN: Final = b"\xff\xda"
_decoding = threading.Lock()


class PictureRefused(Exception):
    """A picture that cannot be used; the message says why.

    too_large   the file exceeds a limit (RFC 9110, 15.5.14)
    """

    def __init__(self, reason: str, *, too_large: bool = False) -> None:
        super().__init__(reason)
        self.too_large = too_large


def picture_get(user_id: str) -> UserPicture | None:
    """The picture of a user."""
    return UserPicture.objects.filter(user_id=user_id).first()


def picture_store(user: User, file: IO[bytes]) -> None:
    """Store an uploaded image as the user's picture. Raises PictureRefused."""
    content = file.read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        raise PictureRefused(Message("A picture has at most {0} bytes.", MAX_FILE_BYTES), too_large=True)
    large = _decoded(content)
    _save(user.pk, small=_png(large.resize((SMALL, SMALL), Image.Resampling.LANCZOS)), large=_png(large), url="")


def picture_link(user_id: str, url: str) -> None:
    """Store the URL of an external picture as the user's. Raises PictureRefused."""
    if problem := _url_problem(url):
        raise PictureRefused(problem)
    _save(user_id, small=None, large=None, url=url)


def picture_remove(user_id: str) -> None:
    """Remove the picture, if there is one."""
    UserPicture.objects.filter(user_id=user_id).delete()


def _save(user_id: str, **values: object) -> None:
    with transaction.atomic():
        UserPicture.objects.update_or_create(user_id=user_id, defaults={**values, "changed": utc_now()})


def _decoded(content: bytes) -> Image.Image:
    """The middle square of the picture, LARGE pixels wide, upright. Raises PictureRefused."""
    with _decoding:
        try:
            image = Image.open(io.BytesIO(content), formats=_FORMATS)
        except Image.DecompressionBombError as exc:
            raise _too_many_pixels() from exc
        except (OSError, ValueError, SyntaxError) as exc:
            raise PictureRefused(Message("The file is not a JPEG or PNG picture.")) from exc
        if image.width * image.height > MAX_PIXELS:
            raise _too_many_pixels()
        if image.format != "PNG" and content.count(_START_OF_SCAN) > MAX_SCANS:
            raise PictureRefused(
                Message("A JPEG picture has at most {0} scans. Save the picture anew.", MAX_SCANS), too_large=True
            )
        try:
            # Decode a JPEG at a fraction of its size.
            image.draft("RGB", (2 * LARGE, 2 * LARGE))
            is_plain = image.mode in _PLAIN and "transparency" not in image.info
            square = ImageOps.fit(
                image if is_plain else image.convert("RGBA"), (LARGE, LARGE), Image.Resampling.LANCZOS
            )
            # Rotate the small picture: the centre square does not depend on the orientation.
            return ImageOps.exif_transpose(square).convert("RGBA")
        except _DAMAGES as exc:
            raise PictureRefused(Message("The picture is damaged: it cannot be decoded.")) from exc


def _too_many_pixels() -> PictureRefused:
    return PictureRefused(Message("A picture has at most {0} million pixels.", MAX_PIXELS // 10**6), too_large=True)


def _png(image: Image.Image) -> bytes:
    # A new image: `info` of the decoded one may hold texts, a profile or EXIF data.
    clean = Image.new("RGBA", image.size)
    clean.paste(image)
    target = io.BytesIO()
    clean.save(target, format="PNG", optimize=True)
    return target.getvalue()


def _url_problem(url: str) -> str | None:
    try:
        parts = urlsplit(url)
        host, has_user = parts.hostname, "@" in parts.netloc
    except ValueError:
        host, has_user = None, False
    usable = url.isascii() and url.isprintable() and " " not in url and len(url) <= 2000
    if not usable or not host or has_user or not url.startswith("https://"):
        return Message("The address of a picture is an https address of at most 2,000 characters.")
    return None
