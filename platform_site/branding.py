"""Name, logo and colour of the instance on its pages (INSTANCE_NAME, INSTANCE_LOGO, INSTANCE_COLOUR)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.loader import render_to_string
from django.templatetags.static import static
from django.urls import reverse
from django.utils.translation import gettext

from foundation.safe_views import reads_only
from platform_site.appearance import LOGO_TYPES, on_dark_pages

#: The URLs change with the content.
_CACHED = {"Cache-Control": "public, max-age=31536000, immutable"}
# An SVG that is opened by itself runs no scripts and loads nothing.
_LOGO_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"


@dataclass(frozen=True, slots=True)
class Brand:
    """Name and URLs; `logo` and `style` are "" if the instance has no logo or colour of its own."""

    name: str
    logo: str
    style: str
    icon: str


def brand_get() -> Brand:
    """The brand of this instance."""
    logo = f"{reverse('brand_logo')}?v={_file(settings.INSTANCE_LOGO)[1]}" if settings.INSTANCE_LOGO else ""
    return Brand(
        name=settings.INSTANCE_NAME or gettext("Business platform"),
        logo=logo,
        style=f"{reverse('brand_style')}?v={settings.INSTANCE_COLOUR[1:]}" if settings.INSTANCE_COLOUR else "",
        icon=logo or static("platform_site/icon.svg"),
    )


def brand(request: HttpRequest) -> dict[str, Brand]:
    """Context processor: `brand` in every template."""
    return {"brand": brand_get()}


@reads_only
def icon(request: HttpRequest) -> HttpResponse:
    """/favicon.ico, which browsers request unless a page names another icon."""
    return HttpResponseRedirect(brand_get().icon)


@reads_only
def logo_file(request: HttpRequest) -> HttpResponse:
    """The logo; 404 without one."""
    path = settings.INSTANCE_LOGO
    if not path:
        raise Http404
    headers = {**_CACHED, "Content-Security-Policy": _LOGO_POLICY}
    return HttpResponse(_file(path)[0], content_type=LOGO_TYPES[Path(path).suffix.lower()], headers=headers)


@reads_only
def style_sheet(request: HttpRequest) -> HttpResponse:
    """The colour as a style sheet, after those of the pages; 404 without one."""
    colour = settings.INSTANCE_COLOUR
    if not colour:
        raise Http404
    text = render_to_string("site/brand.css", {"light": colour, "dark": on_dark_pages(colour)})
    return HttpResponse(text, content_type="text/css; charset=utf-8", headers=_CACHED)


@cache
def _file(path: str) -> tuple[bytes, str]:
    """Content of a file and a digest of it, as they were when the process started."""
    content = Path(path).read_bytes()
    return content, hashlib.sha256(content).hexdigest()[:16]
