"""Bodies of media type multipart/form-data (RFC 7578)."""

from __future__ import annotations

from typing import BinaryIO

from django.core.exceptions import SuspiciousOperation
from django.core.files.uploadedfile import UploadedFile
from django.core.files.uploadhandler import TemporaryFileUploadHandler
from django.http import QueryDict
from django.http.multipartparser import MultiPartParser, MultiPartParserError
from django.utils.datastructures import MultiValueDict

from domain.odata.message.json_body import invalid_body

FORM = "multipart/form-data"


def read_form(body: BinaryIO, content_type: str) -> tuple[QueryDict, MultiValueDict[str, UploadedFile[bytes]]]:
    """The fields of a form, and its files, which are on disk. Raises BadRequest for a body that is no form.

    Django limits the number of fields, and their total size to DATA_UPLOAD_MAX_MEMORY_SIZE.
    """
    length = body.seek(0, 2)
    body.seek(0)
    meta = {"CONTENT_TYPE": content_type, "CONTENT_LENGTH": length}
    try:
        return MultiPartParser(meta, body, [TemporaryFileUploadHandler()], "utf-8").parse()  # type: ignore[arg-type]
    except (MultiPartParserError, SuspiciousOperation) as exc:
        raise invalid_body(str(exc)) from exc
