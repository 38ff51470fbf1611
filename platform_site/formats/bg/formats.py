"""Bulgarian date formats; Django leaves some of them American (settings.FORMAT_MODULE_PATH)."""

from __future__ import annotations

DATETIME_FORMAT = "d F Y, H:i"
SHORT_DATETIME_FORMAT = "d.m.Y H:i"
DATE_INPUT_FORMATS = ["%d.%m.%Y", "%Y-%m-%d"]
DATETIME_INPUT_FORMATS = ["%d.%m.%Y %H:%M:%S", "%d.%m.%Y %H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M"]
FIRST_DAY_OF_WEEK = 1
