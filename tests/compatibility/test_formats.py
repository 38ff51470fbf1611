"""Format specifiers.

By culture (spec 14, 14.5): what .NET writes for each, as tables of our own cases.
"""

from __future__ import annotations

import datetime
import time
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.model.formats.cultures import culture_of, is_language
from domain.model.formats.specifiers import Reader, accepts, formatted
from foundation.kinds import Kind
from tests.support.measuring import slowness

# The same on every database.
pytestmark = pytest.mark.once

NBSP = "\u00a0"
MOMENT = datetime.datetime(2019, 5, 10, 15, 18, 39, 13_000, tzinfo=datetime.UTC)
MORNING = datetime.datetime(2031, 1, 2, 0, 4, 5, tzinfo=datetime.UTC)
DATE = datetime.date(2019, 5, 10)
NAMES = {"EN": "Chair", "BG": "Стол"}


def written(value: Any, kind: Kind, format: str, language: str = "en", measure: str = "") -> str:
    assert accepts(kind, format), format
    return formatted(value, kind, format, Reader(language), measure=measure)


def number(text: str, format: str, language: str = "en") -> str:
    return written(Decimal(text), Kind.DECIMAL, format, language)


# --- numbers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, format, en, bg, de",
    [
        ("123.4656", "C", "$123.47", "123,47 €", "123,47 €"),
        ("123.4656", "C3", "$123.466", "123,466 €", "123,466 €"),
        ("-1234.5", "c0", "-$1,235", f"-1{NBSP}235 €", "-1.235 €"),
        ("123.4656", "N", "123.47", "123,47", "123,47"),
        ("123.4656", "N3", "123.466", "123,466", "123,466"),
        ("1234567.891", "n1", "1,234,567.9", f"1{NBSP}234{NBSP}567,9", "1.234.567,9"),
        ("-1234.5", "N0", "-1,235", f"-1{NBSP}235", "-1.235"),
        ("0.488869", "P", "48.89%", "48,89%", "48,89 %"),
        ("0.488869", "P3", "48.887%", "48,887%", "48,887 %"),
        ("-12.5", "p0", "-1,250%", f"-1{NBSP}250%", "-1.250 %"),
        ("1234.5", "#,##0.00", "1,234.50", f"1{NBSP}234,50", "1.234,50"),
        ("1234.5", "0.##", "1234.5", "1234,5", "1234,5"),
        ("0.125", "0.0%", "12.5%", "12,5%", "12,5%"),
    ],
)
def test_numbers_by_culture(text: str, format: str, en: str, bg: str, de: str) -> None:
    assert [number(text, format, language) for language in ("en", "bg", "de")] == [en, bg, de]


@pytest.mark.parametrize(
    "text, format, expected",
    [
        # Rounding is away from zero, and nothing is negative zero.
        ("2.345", "N2", "2.35"),
        ("-2.345", "N2", "-2.35"),
        ("0.5", "N0", "1"),
        ("-0.001", "N2", "0.00"),
        ("-0.001", "C", "$0.00"),
        ("-0.001", "0.00", "0.00"),
        ("12345678901234567890123456789.5", "N1", "12,345,678,901,234,567,890,123,456,789.5"),
        ("1", "N99", "1." + "0" * 99),
        # Placeholders of digits.
        ("1234.5678", "00000", "01235"),
        ("0.45678", "0.00", "0.46"),
        ("1234.5678", "#####", "1235"),
        ("0.45678", "#.##", ".46"),
        ("0", "#.##", ""),
        ("0", "0.##", "0"),
        ("12.3", ".00", "12.30"),
        ("5", "0.", "5"),
        ("1.5", "0.0.0", "1.50"),
        ("7", "000-00", "000-07"),
        ("1234567890", "(###) ###-####", "(123) 456-7890"),
        ("42", "#,##0", "42"),
        ("12", "0,000", "0,012"),
        ("1234567890.123", "#,#", "1,234,567,890"),
        # A comma before the decimal point divides.
        ("1234567890", "#,,", "1235"),
        ("1234567890", "#,,,", "1"),
        ("1234567890", "#,##0,,", "1,235"),
        ("1234567", "0,.0", "1234.6"),
        # Percent and per mille multiply.
        ("0.3697", "#0.00‰", "369.70‰"),
        ("0.3697", "%#0.00", "%36.97"),
        ("0.086", "#0.##%", "8.6%"),
        # Sections: positive, negative, zero.
        ("12.345", "#0.0#;(#0.0#);-0-", "12.35"),
        ("-12.345", "#0.0#;(#0.0#);-0-", "(12.35)"),
        ("0", "#0.0#;(#0.0#);-0-", "-0-"),
        ("-12", "0;;'none'", "-12"),
        ("0", "0;;'none'", "none"),
        ("-0.4", "0;(0);'none'", "none"),
        ("-0.4", "0;(0)", "0"),
        # Literals.
        ("68", "# 'degrees'", "68 degrees"),
        ("68", '# "degrees"', "68 degrees"),
        ("987654", r"\###00\#", "#987654#"),
        ("5", "0 kg", "5 kg"),
        ("5", "'0' 0 '%'", "0 5 %"),
    ],
)
def test_patterns_of_numbers(text: str, format: str, expected: str) -> None:
    assert number(text, format) == expected


@pytest.mark.parametrize(
    "value, format, expected",
    [(1234, "D", "1234"), (-1234, "D6", "-001234"), (7, "d3", "007"), (0, "D2", "00"), (1234, "N0", "1,234")],
)
def test_whole_numbers(value: int, format: str, expected: str) -> None:
    assert written(value, Kind.INT, format) == expected


def test_other_sizes_of_groups() -> None:
    assert number("1234567.5", "N1", "hi") == "12,34,567.5"
    assert number("1234567.5", "#,##0.0", "hi") == "12,34,567.5"
    assert number("1234.5", "N1", "fr") == "1\u202f234,5"


# --- dates --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "format, en, bg, de",
    [
        ("d", "5/10/2019", "10.05.2019 г.", "10.05.2019"),
        ("D", "Friday, May 10, 2019", "петък, 10 май 2019 г.", "Freitag, 10. Mai 2019"),
        ("f", "Friday, May 10, 2019 3:18 PM", "петък, 10 май 2019 г. 15:18", "Freitag, 10. Mai 2019 15:18"),
        ("F", "Friday, May 10, 2019 3:18:39 PM", "петък, 10 май 2019 г. 15:18:39", "Freitag, 10. Mai 2019 15:18:39"),
        ("g", "5/10/2019 3:18 PM", "10.05.2019 г. 15:18", "10.05.2019 15:18"),
        ("G", "5/10/2019 3:18:39 PM", "10.05.2019 г. 15:18:39", "10.05.2019 15:18:39"),
        ("M", "May 10", "10 май", "10. Mai"),
        ("m", "May 10", "10 май", "10. Mai"),
        ("t", "3:18 PM", "15:18", "15:18"),
        ("T", "3:18:39 PM", "15:18:39", "15:18:39"),
        ("U", "Friday, May 10, 2019 3:18:39 PM", "петък, 10 май 2019 г. 15:18:39", "Freitag, 10. Mai 2019 15:18:39"),
        ("y", "May 2019", "май 2019 г.", "Mai 2019"),
        ("Y", "May 2019", "май 2019 г.", "Mai 2019"),
        # The same in every culture.
        ("O", *["2019-05-10T15:18:39.0130000Z"] * 3),
        ("o", *["2019-05-10T15:18:39.0130000Z"] * 3),
        ("R", *["Fri, 10 May 2019 15:18:39 GMT"] * 3),
        ("r", *["Fri, 10 May 2019 15:18:39 GMT"] * 3),
        ("s", *["2019-05-10T15:18:39"] * 3),
        ("u", *["2019-05-10 15:18:39Z"] * 3),
        # Patterns.
        ("dd/MM/yyyy hh:mm", "10/05/2019 03:18", "10.05.2019 03:18", "10.05.2019 03:18"),
        (r"dd\/MM\/yyyy hh:mm", *["10/05/2019 03:18"] * 3),
        ("ddd d MMM", "Fri 10 May", "пт 10 май", "Fr 10 Mai"),
        ("dddd, MMMM", "Friday, May", "петък, май", "Freitag, Mai"),
        ("hh:mm tt", "03:18 PM", "03:18 pm", "03:18 PM"),
    ],
)
def test_dates_by_culture(format: str, en: str, bg: str, de: str) -> None:
    assert [written(MOMENT, Kind.DATETIME, format, language) for language in ("en", "bg", "de")] == [en, bg, de]


@pytest.mark.parametrize(
    "value, format, expected",
    [
        (MOMENT, "dd MM yyyy hh:mm:ss.fff", "10 05 2019 03:18:39.013"),
        (MOMENT, "yyyy MM dd  hh:mm:ss.fff", "2019 05 10  03:18:39.013"),
        (MOMENT, "dd M yyyy", "10 5 2019"),
        (MOMENT, "dd-MM-yyyy hh:mm", "10-05-2019 03:18"),
        (MOMENT, "dd MM yyyy hh:mm 'h'", "10 05 2019 03:18 h"),
        (MOMENT, 'H"h"mm', "15h18"),
        (MOMENT, r"H\hmm", "15h18"),
        (MOMENT, "%d", "10"),
        (MOMENT, "%h", "3"),
        (MOMENT, "d ", "10 "),
        (MOMENT, "y-yy-yyy-yyyy-yyyyy", "19-19-2019-2019-02019"),
        (MOMENT, "%f|ff|fff|fffffff", "0|01|013|0130000"),
        (MOMENT, "s.FFFFFFF|FF", "39.013|01"),
        (MOMENT, "%t|tt", "P|PM"),
        (MOMENT, "%z|zz|zzz|K", "+0|+00|+00:00|Z"),
        (MOMENT, "yyyy-MM-ddTHH:mm:ssZ", "2019-05-10T15:18:39Z"),
        (MOMENT, "yyyyMMddHHmmss", "20190510151839"),
        (MOMENT, "gg yyyy", "AD 2019"),
        (MORNING, "h:m:s tt|HH:mm", "12:4:5 AM|00:04"),
        (MORNING, "d MMM|dd MMMM|M/d/yy", "2 Jan|02 January|1/2/31"),
        # A date is its midnight, without a zone.
        (DATE, "G", "5/10/2019 12:00:00 AM"),
        (DATE, "O", "2019-05-10T00:00:00.0000000"),
        (DATE, "yyyy-MM-dd", "2019-05-10"),
    ],
)
def test_patterns_of_dates(value: datetime.date, format: str, expected: str) -> None:
    assert written(value, Kind.DATETIME, format) == expected


def test_month_names_decline_beside_a_day() -> None:
    assert written(MOMENT, Kind.DATE, "d MMMM", "ru") == "10 мая"
    assert written(MOMENT, Kind.DATE, "MMMM yyyy", "ru") == "май 2019"


def test_separators_of_other_cultures() -> None:
    assert written(MOMENT, Kind.DATE, "dd/MM/yyyy HH:mm", "fi") == "10.05.2019 15.18"
    assert written(MOMENT, Kind.DATE, "d", "fr") == "10/05/2019"
    assert written(MOMENT, Kind.DATE, "dd/MM", "nl") == "10-05"


# --- texts, quantities, amounts -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "format, en, bg, de",
    [
        ("C", "Chair", "Стол", ""),
        ("CURRENT", "Chair", "Стол", ""),
        ("G", "Chair", "Стол", ""),
        ("A", "Chair", "Стол", "Chair"),
        ("ANY", "Chair", "Стол", "Chair"),
        ("T", "Chair", "Стол", "Chair"),
        ("TRANSLITERATED", "Chair", "Стол", "Chair"),
        ("D", *["EN=Chair BG=Стол"] * 3),
        ("DUMP", *["EN=Chair BG=Стол"] * 3),
        ("CONTENTS", *["EN=Chair BG=Стол"] * 3),
        ("EN", *["Chair"] * 3),
        ("bg", *["Стол"] * 3),
        ("FR", *[""] * 3),
    ],
)
def test_multilanguage_texts(format: str, en: str, bg: str, de: str) -> None:
    assert [written(NAMES, Kind.MULTILANGUAGE, format, language) for language in ("en", "bg", "de")] == [en, bg, de]


def test_transliteration_is_for_those_who_do_not_read_the_script() -> None:
    only_bulgarian = {"BG": "Ъгъл, Щека и Юлия"}
    assert written(only_bulgarian, Kind.MULTILANGUAGE, "T", "de") == "Agal, Shteka i Yuliya"
    assert written(only_bulgarian, Kind.MULTILANGUAGE, "T", "ru") == "Ъгъл, Щека и Юлия"
    assert written(only_bulgarian, Kind.MULTILANGUAGE, "A", "de") == "Ъгъл, Щека и Юлия"


@pytest.mark.parametrize(
    "kind, value, format, en, bg",
    [
        (Kind.QUANTITY, "12.3456", "Q", "12.346 kg", "12,346 kg"),
        (Kind.QUANTITY, "12.3456", "VU", "12.346 kg", "12,346 kg"),
        (Kind.QUANTITY, "12.3456", "UV", "kg 12.346", "kg 12,346"),
        (Kind.QUANTITY, "1234.5", "V", "1,234.500", f"1{NBSP}234,500"),
        (Kind.QUANTITY, "12.3456", "N1", "12.3", "12,3"),
        (Kind.QUANTITY, "12.3456", "0.0", "12.3", "12,3"),
        (Kind.AMOUNT, "1234.5", "A", "kg 1,234.50", f"kg 1{NBSP}234,50"),
        (Kind.AMOUNT, "1234.5", "CV", "kg 1,234.50", f"kg 1{NBSP}234,50"),
        (Kind.AMOUNT, "1234.5", "vc", "1,234.50 kg", f"1{NBSP}234,50 kg"),
        (Kind.AMOUNT, "1234.5", "V", "1,234.50", f"1{NBSP}234,50"),
        (Kind.AMOUNT, "1234.5", "C", "$1,234.50", f"1{NBSP}234,50 €"),
    ],
)
def test_quantities_and_amounts(kind: Kind, value: str, format: str, en: str, bg: str) -> None:
    assert written(Decimal(value), kind, format, "en", "kg") == en
    assert written(Decimal(value), kind, format, "bg", "kg") == bg


def test_without_a_unit_there_is_only_the_number() -> None:
    assert written(Decimal(2), Kind.QUANTITY, "UV") == "2.000"


# --- what there is not --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind, formats",
    [
        (Kind.STRING, ["T", "N2", "d"]),
        (Kind.BOOL, ["D"]),
        (Kind.DECIMAL, ["X", "X2", "D", "D6", "N100", "E2", "Z", "abc", "0.0E+0", "'0", "0\\", "0;0;0;0", ";0", "'0'"]),
        (Kind.INT, ["X", "R", "", "Q", "CV"]),
        (Kind.QUANTITY, ["A", "CV", "VC", "D", "QQ"]),
        (Kind.AMOUNT, ["Q", "UV", "VU", "D3"]),
        (Kind.DATE, ["N2", "x", "%", "%%", "dd'", "dd\\", "YYYY", "DD.MM", "ffffffff", "qq", "'dd'", "d" * 101]),
        (Kind.DATETIME, ["b", "mm'", "bogus", '"'] ),
        (Kind.MULTILANGUAGE, ["upper", "VD", "QQ", "ZZ", "E", "EN-", "1"]),
    ],
)  # fmt: skip
def test_unknown_specifiers_are_refused(kind: Kind, formats: list[str]) -> None:
    assert [format for format in formats if accepts(kind, format)] == []


def test_languages() -> None:
    for code in ["EN", "BG", "CS", "FR", "DE", "EL", "HU", "IT", "MK", "PL", "PT", "RO", "RU", "SR", "ES", "pt-BR"]:
        assert is_language(code), code
    for code in ("", "E", "XX", "1A", "ENGL", "e n"):
        assert not is_language(code), code


def test_a_country_has_its_own_culture() -> None:
    assert written(MOMENT, Kind.DATE, "d", "en-GB") == "10/05/2019"
    assert written(MOMENT, Kind.DATE, "d", "en-gb") == "10/05/2019"
    assert number("1234.5", "C", "en-GB") == "£1,234.50"
    assert number("1234.5", "C", "de-CH") == "CHF 1’234.50"
    assert number("1234.5", "N1", "en-XX") == "1,234.5"
    assert formatted(MOMENT, Kind.DATE, "d", Reader("en", country_tag="en-GB")) == "10/05/2019"
    assert formatted(MOMENT, Kind.DATE, "d", Reader("en", country_tag="de-DE")) == "5/10/2019"


def test_an_unknown_language_is_english() -> None:
    for language in ("", "xx", "zzz", "1", "€"):
        assert number("1234.5", "N1", language) == "1,234.5"


@pytest.mark.parametrize(
    "language", ["en", "bg", "de", "ar", "fa", "hi", "ja", "zh", "th", "he", "fi", "ko", "bo", "dz"]
)
def test_every_culture_has_every_standard_specifier(language: str) -> None:
    culture = culture_of(language)
    assert culture.decimal
    assert culture.minus
    for format in "dDfFgGMORstTuUy":
        assert written(MOMENT, Kind.DATETIME, format, language)
    for format in ("C", "N2", "P1", "#,##0.00"):
        assert number("-1234.5", format, language)


VALUES: dict[Kind, Any] = {
    Kind.INT: -120,
    Kind.DECIMAL: Decimal("-1234567.89"),
    Kind.AMOUNT: Decimal("9" * 30),
    Kind.QUANTITY: Decimal("0.000001"),
    Kind.DATE: DATE,
    Kind.DATETIME: MOMENT,
    Kind.MULTILANGUAGE: NAMES,
    Kind.STRING: "text",
}


@given(
    st.sampled_from(sorted(VALUES, key=str)),
    st.one_of(
        st.text("#0.,%‰;'\"\\CDNPcdnpE+-e 15", max_size=40),
        st.text("dMyHhmsfFtzKgTZ/:.'\"\\% ", max_size=40),
        st.text("ACDGTVQUBENG_bg", max_size=8),
        st.text(max_size=110),
    ),
    st.sampled_from(["en", "bg", "de", "ar", "xx"]),
)
def test_any_text_is_a_format_or_not(kind: Kind, format: str, language: str) -> None:
    started = time.process_time()
    for is_property in (False, True):
        if accepts(kind, format, is_property=is_property) and not is_property:
            for reader in (Reader(language), Reader(language, is_machine=True)):
                assert isinstance(formatted(VALUES[kind], kind, format, reader, measure="kg"), str)
    assert time.process_time() - started < 2 * slowness()


@pytest.mark.parametrize(
    "language, short, long",
    [("zh-TW", "下午3:18", "下午3:18:39"), ("zh-SG", "下午3:18", "下午3:18:39"), ("de", "15:18", "15:18:39")],
)
def test_times_have_their_hour(language: str, short: str, long: str) -> None:
    """CLDR writes a part of the day before the hour, without a space: Bh:mm."""
    assert [written(MOMENT, Kind.DATETIME, format, language) for format in ("t", "T")] == [short, long]


def test_a_script_counts() -> None:
    assert written(DATE, Kind.DATE, "D", "sr-Latn-RS") == "petak, 10. maj 2019."
    assert written(DATE, Kind.DATE, "D", "sr-RS") == "петак, 10. мај 2019."
    assert culture_of("sr-Latn").currency_symbol == culture_of("sr-Latn-RS").currency_symbol
