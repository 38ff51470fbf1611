"""`/profile/me`, its picture and the devices of the profile page (spec 01, 1.6)."""

from __future__ import annotations

import io
import re
import struct
import zlib
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from PIL import Image, PngImagePlugin
from rest_framework.test import APIClient

from domain.dataset.dataset import Dataset
from domain.entities.general_contacts import Person
from identity import pictures
from identity.context import system_context
from identity.models import AccessToken, RefreshToken, Session, User, UserPicture
from tests.identity.flows import Browser, service_token
from tests.identity.test_api_authentication import error_of

pytestmark = pytest.mark.once

SERVICE_ROOT = "/api/domain/odata/"
FIELDS = {
    "id", "login", "name", "email", "phoneNumber", "isAdmin", "isActive", "userType", "preferredLanguage",
    "pictureUrl", "largePictureUrl", "person", "domain", "instance", "links",
}  # fmt: skip
EVERYWHERE = ("/profile/me/picture", "/profile/me/picture/64", "/profile/me/picture/128")


def image(size: tuple[int, int] = (300, 200), form: str = "PNG", mode: str = "RGB", **options: Any) -> bytes:
    """A picture file: the left half red, the right half blue."""
    made = Image.new(mode, size, "red" if mode != "I;16" else 40_000)
    if mode == "RGB":
        made.paste("blue", (size[0] // 2, 0, size[0], size[1]))
    target = io.BytesIO()
    made.save(target, form, **options)
    return target.getvalue()


def upload(browser: Browser, content: bytes = b"", **fields: str) -> Any:
    """Send the form of the profile page, with its CSRF token."""
    page = browser.client.get("/profile/").content.decode()
    found = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
    assert found
    files = {"picture": SimpleUploadedFile("me.png", content)} if content else {}
    return browser.client.post("/profile/picture", {"csrfmiddlewaretoken": found[1], **files, **fields})


@pytest.fixture
def signed_in(browser: Browser) -> Browser:
    """The browser of the demo user."""
    browser.log_in("demo")
    return browser


@pytest.fixture
def api(browser: Browser) -> APIClient:
    """A client with an access token of the demo user."""
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {browser.tokens()['access_token']}")
    return client


NAMES: Any = {"EN": "John", "BG": "Иван"}


class TestMe:
    def test_it_has_exactly_the_documented_fields(self, api: APIClient) -> None:
        response = api.get("/profile/me")
        body = response.json()
        assert set(body) == FIELDS
        assert response.headers["Cache-Control"] == "no-store"
        assert (body["login"], body["isActive"], body["userType"]) == ("demo", True, "InternalUser")
        assert (body["pictureUrl"], body["largePictureUrl"], body["person"], body["domain"]) == (None,) * 4
        assert set(body["instance"]) == {"database", "url"}
        assert set(body["links"]) == {"profile", "changePassword", "accessTokens", "devices"}

    def test_the_links_lead_to_pages(self, signed_in: Browser) -> None:
        for link in signed_in.client.get("/profile/me").json()["links"].values():
            address, _, anchor = link.removeprefix("http://testserver").partition("#")
            page = signed_in.client.get(address)
            assert page.status_code == 200
            assert not anchor or f'id="{anchor}"' in page.content.decode()

    def test_texts_are_in_the_language_of_the_request(self, api: APIClient) -> None:
        person = Person.objects.create(
            concrete_repository="General.Contacts.Persons", party_name=NAMES, party_code="P-1"
        )
        User.objects.filter(login="demo").update(person=person, name={"EN": "Demo", "BG": "Демо"})
        for language, name, person_name in (("bg", "Демо", "Иван"), ("de", "Demo", "John")):
            response = api.get("/profile/me", headers={"Accept-Language": language})
            assert response.headers["Content-Language"] == language
            assert (response.json()["name"], response.json()["person"]) == (
                name, {"id": str(person.pk), "name": person_name},
            )  # fmt: skip

    def test_external_users_have_a_profile_by_cookie(self, browser: Browser) -> None:
        browser.log_in("customer")
        assert browser.client.get("/profile/me").json()["userType"] == "ExternalCommunityUser"

    @pytest.mark.parametrize("path", ["/profile/me", *EVERYWHERE])
    def test_refusals(self, demo: None, path: str) -> None:
        client = APIClient()
        assert error_of(client.get(path)) == (401, "TokenMissing")
        assert client.get(path).headers["WWW-Authenticate"] == "Bearer"
        assert client.get(path, headers={"Authorization": "Bearer nonsense"}).status_code == 401
        token = {"Authorization": f"Bearer {service_token(client)}"}
        assert error_of(client.get(path, headers=token)) == (403, "UserRequired")
        both = {**token, "X-Api-Key": "enrt_" + "0" * 64}
        assert error_of(client.get(path, headers=both)) == (400, "CredentialsAmbiguous")
        assert error_of(client.post(path, {})) == (405, "MethodNotAllowed")

    def test_the_answer_does_not_depend_on_accept(self, api: APIClient) -> None:
        assert api.get("/profile/me", headers={"Accept": "image/png"}).json()["login"] == "demo"


class TestPicture:
    def test_uploaded_and_read(self, signed_in: Browser, api: APIClient) -> None:
        for path in EVERYWHERE:
            assert error_of(api.get(path)) == (404, "ResourceNotFound")
        assert upload(signed_in, image()).status_code == 302
        body = api.get("/profile/me").json()
        assert body["pictureUrl"] == "http://testserver/profile/me/picture/64"
        assert body["largePictureUrl"] == "http://testserver/profile/me/picture/128"
        for path, pixels in zip(EVERYWHERE, (64, 64, 128), strict=True):
            for client in (api, signed_in.client):
                response = client.get(path)
                assert (response.status_code, response.headers["Content-Type"]) == (200, "image/png")
                assert response.headers["Cache-Control"] == "private, max-age=7200"
                assert {"Authorization", "Cookie"} <= set(re.split(", ?", response.headers["Vary"]))
                assert Image.open(io.BytesIO(response.content)).size == (pixels, pixels)
            head = api.head(path)
            assert (head.status_code, head.content) == (200, b"")
        assert error_of(api.get("/profile/me/picture/65")) == (404, "ResourceNotFound")
        assert upload(signed_in, remove="1").status_code == 302
        assert api.get("/profile/me").json()["pictureUrl"] is None

    def test_nothing_of_the_file_but_its_pixels_is_stored(self, signed_in: Browser) -> None:
        exif = Image.Exif()
        exif[0x010E] = "at home, 52.5 N"
        exif[0x0112] = 6  # turn by 90 degrees
        assert upload(signed_in, image(form="JPEG", exif=exif)).status_code == 302
        row = UserPicture.objects.get()
        assert row.large is not None
        assert b"at home" not in bytes(row.large)
        stored = Image.open(io.BytesIO(bytes(row.large)))
        assert (stored.format, stored.info) == ("PNG", {})
        # Upright: what was on the left is on top.
        top, bottom = stored.convert("RGB").getpixel((64, 10)), stored.convert("RGB").getpixel((64, 118))
        assert isinstance(top, tuple)
        assert isinstance(bottom, tuple)
        assert (top[0] > 200, bottom[2] > 200) == (True, True)
        texts = PngImagePlugin.PngInfo()
        texts.add_text("Comment", "secret words")
        assert upload(signed_in, image(pnginfo=texts) + b"<script>").status_code == 302
        content = bytes(UserPicture.objects.get().small or b"")
        assert b"secret" not in content
        assert b"script" not in content

    def test_odd_exif_data_is_a_damage(self, signed_in: Browser) -> None:
        exif = Image.Exif()
        exif[0x010E] = "at home"
        exif[0x0112] = 6
        odd = exif.tobytes().replace(b"\x01\x0e", b"\x01\x00")  # the text is the width
        assert upload(signed_in, image(form="JPEG", exif=odd)).status_code == 400

    @pytest.mark.parametrize("mode", ["1", "L", "P", "RGBA", "LA", "CMYK", "I;16"])
    def test_kinds_of_pixels(self, signed_in: Browser, mode: str) -> None:
        made = image(mode=mode, form="JPEG" if mode == "CMYK" else "PNG") if mode == "I;16" else None
        content = made or _of_mode(mode)
        assert upload(signed_in, content).status_code == 302

    def test_an_address_elsewhere(self, signed_in: Browser, api: APIClient) -> None:
        assert upload(signed_in, url="https://pictures.example/me.png").status_code == 302
        for path in EVERYWHERE:
            response = api.get(path)
            assert (response.status_code, response.headers["Location"]) == (302, "https://pictures.example/me.png")
            assert response.headers["Cache-Control"] == "private, max-age=7200"

    @pytest.mark.parametrize(
        "url",
        [
            "http://x.example/a",
            "javascript:alert(1)",
            "https://",
            "https://u:p@x.example/",
            "//x.example",
            "https://[",
            "https://x.example/ä",
            "https://x.example/a b",
            "https://x.example/" + "a" * 2000,
        ],
    )
    def test_addresses_that_are_refused(self, signed_in: Browser, url: str) -> None:
        assert upload(signed_in, url=url).status_code == 400
        assert not UserPicture.objects.exists()

    def test_a_stored_picture_that_is_too_large(self, api: APIClient) -> None:
        UserPicture.objects.create(user=User.objects.get(login="demo"), small=b"x" * (pictures.MAX_STORED_BYTES + 1))
        assert error_of(api.get("/profile/me/picture")) == (413, "StoredTooLarge")

    def test_files_that_are_refused(self, signed_in: Browser) -> None:
        whole = image(form="JPEG")
        for content in (b"GIF89a", b"<svg xmlns='http://www.w3.org/2000/svg'/>", image(form="GIF"), image(form="BMP")):
            response = upload(signed_in, content)
            assert (response.status_code, "not a JPEG or PNG" in response.content.decode()) == (400, True)
        for damaged in (whole[: len(whole) // 2], image()[:-30], image()[:60]):
            assert upload(signed_in, damaged).status_code == 400
        assert upload(signed_in, b"\0" * (pictures.MAX_FILE_BYTES + 1)).status_code == 413
        assert upload(signed_in).status_code == 400
        assert upload(signed_in, image(), url="https://pictures.example/me.png").status_code == 400
        assert not UserPicture.objects.exists()

    def test_a_decompression_bomb_is_refused_before_it_is_decoded(self, signed_in: Browser) -> None:
        # 900 megapixels and 12,000 by 12,000 in a few kilobytes.
        for side in (30_000, 12_000):
            assert upload(signed_in, bomb(side)).status_code == 413
        assert not UserPicture.objects.exists()

    def test_a_jpeg_of_countless_scans_is_refused_before_it_is_decoded(self, signed_in: Browser) -> None:
        progressive = image(form="JPEG", progressive=True)
        first = progressive.index(b"\xff\xda")
        scan = progressive[first : progressive.index(b"\xff\xc4", first)]
        for scans in (pictures.MAX_SCANS, 5_000):
            response = upload(signed_in, progressive.removesuffix(b"\xff\xd9") + scan * scans + b"\xff\xd9")
            assert (response.status_code, "scans" in response.content.decode()) == (413, True)
        assert not UserPicture.objects.exists()
        assert upload(signed_in, progressive).status_code == 302

    def test_a_form_without_its_token_or_a_sign_in_changes_nothing(self, signed_in: Browser) -> None:
        assert signed_in.client.post("/profile/picture", {"remove": "1"}).status_code == 403
        stranger = APIClient().post("/profile/picture", {"remove": "1"})
        assert stranger.headers["Location"].startswith("/id/account/login")

    def test_a_deleted_user_leaves_no_picture(self, signed_in: Browser) -> None:
        user = User.objects.create_user("gone")
        pictures.picture_link(user.pk, "https://pictures.example/gone.png")
        dataset = Dataset(system_context())
        record = dataset.load("Systems.Security.Users", user.pk)
        assert record is not None
        dataset.delete(record)
        dataset.commit()
        assert not UserPicture.objects.filter(user_id=user.pk).exists()


class TestDevices:
    def test_a_signed_out_application_cannot_go_on(self, browser: Browser) -> None:
        tokens = browser.tokens(scope="openid offline_access read")
        token = tokens["access_token"]
        assert ask(token) == 200
        session = Session.objects.get(closed=None)
        page = browser.client.get("/profile/").content.decode()
        address = f"/profile/devices/{session.pk}/sign-out"
        assert address in page
        found = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
        assert found
        browser.client.post(address, {"csrfmiddlewaretoken": found[1]})
        assert ask(token) == 401
        assert not Session.objects.filter(closed=None).exists()
        assert not AccessToken.objects.filter(sid=session.key).exists()
        assert not RefreshToken.objects.filter(sid=session.key, revoked=None).exists()

    def test_nobody_ends_the_sessions_of_others(self, browser: Browser) -> None:
        ask(browser.tokens()["access_token"])
        session = Session.objects.get(closed=None)
        stranger = APIClient()
        stranger.force_login(User.objects.get(login="admin"))
        assert stranger.post(f"/profile/devices/{session.pk}/sign-out").status_code == 404
        assert stranger.post("/profile/devices/nonsense/sign-out").status_code == 404
        assert Session.objects.filter(closed=None).exists()


def ask(token: str) -> int:
    """The status of an API request, which opens the token's session."""
    return APIClient().get(SERVICE_ROOT, headers={"Authorization": f"Bearer {token}"}).status_code


def _of_mode(mode: str) -> bytes:
    target = io.BytesIO()
    Image.new("RGB", (80, 90), "green").convert(mode).save(target, "JPEG" if mode == "CMYK" else "PNG")
    return target.getvalue()


def bomb(side: int) -> bytes:
    """A PNG whose header says `side` by `side` pixels."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(b"\0" * 100_000)) + chunk(b"IEND", b"")
