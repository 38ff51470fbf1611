"""Logo and colour of an instance: checks of the settings, and the colour for dark pages.

platform_site.settings reads this before the apps are loaded. Contrast: WCAG 2.2, 1.4.3.
"""

from __future__ import annotations

import re
from pathlib import Path

#: File name extension of a logo → its media type.
LOGO_TYPES = {
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".webp": "image/webp",
}
MAX_LOGO_BYTES = 512 * 1024
MIN_CONTRAST = 4.5
#: Of the backgrounds of text in the colour, those with the least contrast.
_LIGHT_BACKGROUND, _DARK_BACKGROUND = "#e4efff", "#1f3350"
_COLOUR = re.compile(r"#[0-9a-f]{6}", re.IGNORECASE)


def colour_problem(colour: str) -> str | None:
    """The problem of the colour of an instance, or None."""
    if _COLOUR.fullmatch(colour) is None:
        return f"INSTANCE_COLOUR must be a colour such as #1b5fc1, not {colour!r}."
    reached = contrast(colour, _LIGHT_BACKGROUND)
    if reached < MIN_CONTRAST:
        return (
            f"INSTANCE_COLOUR {colour} is too light: its contrast with the pages is {reached:.1f}, and text needs "
            f"{MIN_CONTRAST}. Choose a darker one."
        )
    return None


def logo_problem(path: Path) -> str | None:
    """The problem of the file of a logo, or None."""
    if path.suffix.lower() not in LOGO_TYPES:
        return f"INSTANCE_LOGO must be a file that ends in {', '.join(LOGO_TYPES)}, not {str(path)!r}."
    try:
        size = path.stat().st_size
        with path.open("rb"):
            pass
    except OSError as exc:
        return f"INSTANCE_LOGO cannot be read: {exc}."
    return f"INSTANCE_LOGO may have {MAX_LOGO_BYTES} bytes, not {size}." if size > MAX_LOGO_BYTES else None


def on_dark_pages(colour: str) -> str:
    """The colour, mixed with white until it has enough contrast on dark pages."""
    return next(
        mixed
        for mixed in (_with_white(colour, share / 20) for share in range(21))
        if contrast(mixed, _DARK_BACKGROUND) >= MIN_CONTRAST
    )


def contrast(one: str, other: str) -> float:
    """The contrast ratio of two colours, 1 to 21."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in (channel / 255 for channel in _channels(colour))
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _with_white(colour: str, share: float) -> str:
    return "#" + "".join(f"{round(channel + (255 - channel) * share):02x}" for channel in _channels(colour))


def _channels(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)
