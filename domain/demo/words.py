"""Words that demo data is made of. All names are made up."""

from __future__ import annotations

from typing import NamedTuple

Texts = dict[str, str]


class Group(NamedTuple):
    """A product group: names, number prefix, lowest and highest price, what its products are called."""

    name: Texts
    prefix: str
    price_from: int
    price_to: int
    nouns: tuple[Texts, ...]


AREAS: tuple[tuple[Texts, tuple[Group, ...]], ...] = (
    (
        {"EN": "Furniture", "BG": "Мебели", "DE": "Möbel"},
        (
            Group(
                {"EN": "Chairs", "BG": "Столове", "DE": "Stühle"},
                "CH",
                40,
                400,
                (
                    {"EN": "office chair", "BG": "офис стол", "DE": "Bürostuhl"},
                    {"EN": "armchair", "BG": "кресло", "DE": "Sessel"},
                    {"EN": "bar stool", "BG": "бар стол", "DE": "Barhocker"},
                ),
            ),
            Group(
                {"EN": "Desks", "BG": "Бюра", "DE": "Schreibtische"},
                "DK",
                120,
                900,
                (
                    {"EN": "desk", "BG": "бюро", "DE": "Schreibtisch"},
                    {"EN": "standing desk", "BG": "бюро за работа прав", "DE": "Stehpult"},
                    {"EN": "meeting table", "BG": "заседателна маса", "DE": "Konferenztisch"},
                ),
            ),
            Group(
                {"EN": "Storage", "BG": "Шкафове", "DE": "Schränke"},
                "ST",
                60,
                600,
                (
                    {"EN": "bookcase", "BG": "библиотека", "DE": "Bücherregal"},
                    {"EN": "filing cabinet", "BG": "картотека", "DE": "Aktenschrank"},
                ),
            ),
        ),
    ),
    (
        {"EN": "Electronics", "BG": "Електроника", "DE": "Elektronik"},
        (
            Group(
                {"EN": "Screens", "BG": "Монитори", "DE": "Bildschirme"},
                "SC",
                110,
                800,
                (
                    {"EN": "monitor", "BG": "монитор", "DE": "Monitor"},
                    {"EN": "projector", "BG": "проектор", "DE": "Beamer"},
                ),
            ),
            Group(
                {"EN": "Accessories", "BG": "Аксесоари", "DE": "Zubehör"},
                "AC",
                8,
                120,
                (
                    {"EN": "keyboard", "BG": "клавиатура", "DE": "Tastatur"},
                    {"EN": "mouse", "BG": "мишка", "DE": "Maus"},
                    {"EN": "headset", "BG": "слушалки", "DE": "Kopfhörer"},
                    {"EN": "desk lamp", "BG": "настолна лампа", "DE": "Schreibtischlampe"},
                ),
            ),
        ),
    ),
    (
        {"EN": "Supplies", "BG": "Консумативи", "DE": "Verbrauchsmaterial"},
        (
            Group(
                {"EN": "Paper", "BG": "Хартия", "DE": "Papier"},
                "PA",
                3,
                30,
                (
                    {"EN": "copy paper", "BG": "копирна хартия", "DE": "Kopierpapier"},
                    {"EN": "notebook", "BG": "тетрадка", "DE": "Notizbuch"},
                ),
            ),
            Group(
                {"EN": "Writing", "BG": "Пишещи", "DE": "Schreibwaren"},
                "WR",
                1,
                15,
                (
                    {"EN": "pen", "BG": "химикалка", "DE": "Kugelschreiber"},
                    {"EN": "pencil", "BG": "молив", "DE": "Bleistift"},
                    {"EN": "marker", "BG": "маркер", "DE": "Marker"},
                ),
            ),
        ),
    ),
    (
        {"EN": "Services", "BG": "Услуги", "DE": "Dienstleistungen"},
        (
            Group(
                {"EN": "On-site work", "BG": "Работа на място", "DE": "Arbeit vor Ort"},
                "SV",
                25,
                90,
                (
                    {"EN": "assembly", "BG": "монтаж", "DE": "Montage"},
                    {"EN": "maintenance", "BG": "поддръжка", "DE": "Wartung"},
                ),
            ),
        ),
    ),
)

SERIES = (
    "Alto", "Bora", "Cora", "Delta", "Enzo", "Fjord", "Grano", "Halo", "Iris", "Juno", "Kilo", "Luma", "Mira", "Nova",
    "Orbit", "Piano", "Quadra", "Rila", "Sonata", "Terra", "Ursa", "Vitosha", "Wega", "Xenon", "Yara", "Zephyr",
)  # fmt: skip

FIRST_NAMES: tuple[Texts, ...] = (
    {"EN": "Anna", "BG": "Анна"},
    {"EN": "Boris", "BG": "Борис"},
    {"EN": "Clara", "BG": "Клара"},
    {"EN": "Daniel", "BG": "Даниел"},
    {"EN": "Elena", "BG": "Елена"},
    {"EN": "Filip", "BG": "Филип"},
    {"EN": "Greta", "BG": "Грета"},
    {"EN": "Hugo", "BG": "Хуго"},
    {"EN": "Ivana", "BG": "Ивана"},
    {"EN": "Jonas", "BG": "Йонас"},
    {"EN": "Katya", "BG": "Катя"},
    {"EN": "Leo", "BG": "Лео"},
    {"EN": "Maria", "BG": "Мария"},
    {"EN": "Nikola", "BG": "Никола"},
    {"EN": "Olga", "BG": "Олга"},
)

LAST_NAMES: tuple[Texts, ...] = (
    {"EN": "Adler", "BG": "Адлер"},
    {"EN": "Brandov", "BG": "Брандов"},
    {"EN": "Castell", "BG": "Кастел"},
    {"EN": "Dimov", "BG": "Димов"},
    {"EN": "Ebner", "BG": "Ебнер"},
    {"EN": "Falk", "BG": "Фалк"},
    {"EN": "Ganev", "BG": "Ганев"},
    {"EN": "Hart", "BG": "Харт"},
    {"EN": "Ivanski", "BG": "Ивански"},
    {"EN": "Jordan", "BG": "Йордан"},
    {"EN": "Kolar", "BG": "Колар"},
    {"EN": "Lenz", "BG": "Ленц"},
    {"EN": "Minkov", "BG": "Минков"},
)

COMPANY_NAMES = (
    "Amber Quay", "Blue Linden", "Copper Hill", "Dawn Harbour", "Elm & Stone", "Far Meadow", "Golden Reed", "High Tide",
    "Iron Bridge", "Juniper Lane", "Kestrel Works", "Lark Field", "Mill Pond", "North Gate", "Old Orchard",
    "Pine Terrace", "Quiet River", "Red Barn", "Silver Birch", "Tall Ships", "Upper Mill", "Violet Square",
    "West Garden", "Yellow Door", "Zinc & Sons",
)  # fmt: skip

COMPANY_FORMS = ("Ltd.", "GmbH", "OOD", "Inc.", "AD")

CITIES: tuple[Texts, ...] = (
    {"EN": "Sofia", "BG": "София", "DE": "Sofia"},
    {"EN": "Vienna", "BG": "Виена", "DE": "Wien"},
    {"EN": "Munich", "BG": "Мюнхен", "DE": "München"},
    {"EN": "Plovdiv", "BG": "Пловдив", "DE": "Plowdiw"},
    {"EN": "London", "BG": "Лондон", "DE": "London"},
)

STREETS = ("Linden Street", "Market Square", "River Road", "Station Avenue", "Garden Lane", "Castle Hill")
