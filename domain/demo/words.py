"""Words for demo data. All names are fictitious."""

from __future__ import annotations

from typing import NamedTuple

Texts = dict[str, str]


class Group(NamedTuple):
    """A product group: names, number prefix, lowest and highest price, names of its products."""

    name: Texts
    prefix: str
    price_from: int
    price_to: int
    nouns: tuple[Texts, ...]


def texts(row: str) -> Texts:
    """The texts of a row "English | Bulgarian | German", which may end early."""
    return dict(zip(("EN", "BG", "DE"), row.split(" | "), strict=False))


def texts_of(*rows: str) -> tuple[Texts, ...]:
    """The texts of each row."""
    return tuple(texts(row) for row in rows)


def _areas(table: str) -> tuple[tuple[Texts, tuple[Group, ...]], ...]:
    """Areas, their product groups ("- prefix, lowest and highest price, name") and names of products ("--")."""
    areas: list[tuple[Texts, list[Group]]] = []
    for line in table.splitlines():
        marker, _, row = line.partition(" ") if line.startswith("-") else ("", "", line)
        if marker == "":
            areas.append((texts(row), []))
        elif marker == "-":
            prefix, price_from, price_to, name = row.split(" ", 3)
            areas[-1][1].append(Group(texts(name), prefix, int(price_from), int(price_to), ()))
        else:
            group = areas[-1][1].pop()
            areas[-1][1].append(group._replace(nouns=(*group.nouns, texts(row))))
    return tuple((name, tuple(groups)) for name, groups in areas)


AREAS = _areas(
    """\
Furniture | Мебели | Möbel
- CH 40 400 Chairs | Столове | Stühle
-- office chair | офис стол | Bürostuhl
-- armchair | кресло | Sessel
-- bar stool | бар стол | Barhocker
- DK 120 900 Desks | Бюра | Schreibtische
-- desk | бюро | Schreibtisch
-- standing desk | бюро за работа прав | Stehpult
-- meeting table | заседателна маса | Konferenztisch
- ST 60 600 Storage | Шкафове | Schränke
-- bookcase | библиотека | Bücherregal
-- filing cabinet | картотека | Aktenschrank
Electronics | Електроника | Elektronik
- SC 110 800 Screens | Монитори | Bildschirme
-- monitor | монитор | Monitor
-- projector | проектор | Beamer
- AC 8 120 Accessories | Аксесоари | Zubehör
-- keyboard | клавиатура | Tastatur
-- mouse | мишка | Maus
-- headset | слушалки | Kopfhörer
-- desk lamp | настолна лампа | Schreibtischlampe
Supplies | Консумативи | Verbrauchsmaterial
- PA 3 30 Paper | Хартия | Papier
-- copy paper | копирна хартия | Kopierpapier
-- notebook | тетрадка | Notizbuch
- WR 1 15 Writing | Пишещи | Schreibwaren
-- pen | химикалка | Kugelschreiber
-- pencil | молив | Bleistift
-- marker | маркер | Marker
Services | Услуги | Dienstleistungen
- SV 25 90 On-site work | Работа на място | Arbeit vor Ort
-- assembly | монтаж | Montage
-- maintenance | поддръжка | Wartung"""
)

SERIES = (
    "Alto", "Bora", "Cora", "Delta", "Enzo", "Fjord", "Grano", "Halo", "Iris", "Juno", "Kilo", "Luma", "Mira", "Nova",
    "Orbit", "Piano", "Quadra", "Rila", "Sonata", "Terra", "Ursa", "Vitosha", "Wega", "Xenon", "Yara", "Zephyr",
)  # fmt: skip

FIRST_NAMES = texts_of(
    "Anna | Анна", "Boris | Борис", "Clara | Клара", "Daniel | Даниел", "Elena | Елена", "Filip | Филип",
    "Greta | Грета", "Hugo | Хуго", "Ivana | Ивана", "Jonas | Йонас", "Katya | Катя", "Leo | Лео", "Maria | Мария",
    "Nikola | Никола", "Olga | Олга",
)  # fmt: skip

LAST_NAMES = texts_of(
    "Adler | Адлер", "Brandov | Брандов", "Castell | Кастел", "Dimov | Димов", "Ebner | Ебнер", "Falk | Фалк",
    "Ganev | Ганев", "Hart | Харт", "Ivanski | Ивански", "Jordan | Йордан", "Kolar | Колар", "Lenz | Ленц",
    "Minkov | Минков",
)  # fmt: skip

COMPANY_NAMES = (
    "Amber Quay", "Blue Linden", "Copper Hill", "Dawn Harbour", "Elm & Stone", "Far Meadow", "Golden Reed", "High Tide",
    "Iron Bridge", "Juniper Lane", "Kestrel Works", "Lark Field", "Mill Pond", "North Gate", "Old Orchard",
    "Pine Terrace", "Quiet River", "Red Barn", "Silver Birch", "Tall Ships", "Upper Mill", "Violet Square",
    "West Garden", "Yellow Door", "Zinc & Sons",
)  # fmt: skip

COMPANY_FORMS = ("Ltd.", "GmbH", "OOD", "Inc.", "AD")

CITIES = texts_of(
    "Sofia | София | Sofia", "Vienna | Виена | Wien", "Munich | Мюнхен | München", "Plovdiv | Пловдив | Plowdiw",
    "London | Лондон | London",
)  # fmt: skip

STREETS = ("Linden Street", "Market Square", "River Road", "Station Avenue", "Garden Lane", "Castle Hill")
