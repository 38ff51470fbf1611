"""docs/reference/scripting.md has every member that scripts see, and no other (spec 04, 4.2)."""

from __future__ import annotations

import re
from pathlib import Path

from platform_site.environment import BASE_DIR
from scripts.bridge import queries
from scripts.bridge.bridge import PRELUDE
from tests.rules.cast import World
from tests.scripts.cast import make_script
from tests.support.api import Api

PAGE = (BASE_DIR / "docs/reference/scripting.md").read_text(encoding="utf-8")
_ROW = re.compile(r"^\| `(?:new )?([\w.]+)", re.MULTILINE)

#: Names the members of everything that a managed script is given. Only `Domain` itself has names without end.
MEMBERS = """
    const found = [];
    const each = (name, object) => { for (const key of Object.keys(object)) found.push(name + "." + key); };
    const instance = (name, object, type) => {
      each(name, object);
      for (const key of Object.getOwnPropertyNames(type.prototype))
        if (key !== "constructor") found.push(name + "." + key);
    };
    const deep = (name, object) => {
      for (const key of Object.keys(object)) {
        const value = object[key];
        if (typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Date))
          deep(name + "." + key, value);
        else found.push(name + "." + key);
      }
    };
    const { Amount, Quantity, MultilanguageString, CustomPropertyValue } = Domain.Types;
    each("console", console);
    each("Transaction", Transaction);
    deep("Action", Action);
    each("repository", Domain.General.Products.ProductsRepository);
    found.push(...Object.keys(Domain.Types));
    each("Amount", Amount);
    each("amount", new Amount(1, "EUR"));
    each("quantity", new Quantity(1, "kg"));
    instance("text", {}, MultilanguageString);
    instance("custom", new CustomPropertyValue("x"), CustomPropertyValue);
    const methods = Object.keys(Amount.prototype).filter((key) => key !== "valueOf" && key !== "toString");
    return { found, sameTypes: String(Object.keys(Quantity)) === String(Object.keys(Amount)),
      sameMethods: String(methods) === String(Object.keys(Amount).filter((key) => key !== "Sum")) };
"""


def documented(*objects: str) -> set[str]:
    """The names in the first column of the page's tables, of these objects or of all."""
    names = set(_ROW.findall(PAGE))
    return {name for name in names if name.partition(".")[0] in objects} if objects else names


def test_the_page_has_every_member_and_no_other(api: Api) -> None:
    answer = api.post(f"{make_script(api, MEMBERS)}/Execute", {}).json()["returnValue"]
    assert answer["sameTypes"]
    assert answer["sameMethods"]
    assert set(answer["found"]) == documented() - documented("entity", "collection")


def test_the_page_has_every_member_of_entities_and_collections(api: Api, world: World) -> None:
    specials = PRELUDE[PRELUDE.index("const specials = [") : PRELUDE.index("const silent")]
    assert {f"entity.{name}" for name in re.findall(r'^  \["(\w+)"', specials, re.MULTILINE)} == documented("entity")
    traps = PRELUDE[PRELUDE.index("const collectionTraps") : PRELUDE.index("// -- values")]
    own = {*re.findall(r'case "(\w+)"', traps), "length", "Count"}
    assert {f"collection.{name}" for name in own} == documented("collection")
    methods = PRELUDE[PRELUDE.index("const reading") : PRELUDE.index("const collectionTraps")]
    reading = set(re.findall(r'"(\w+)"', methods))
    told = PAGE[PAGE.index("And the reading methods of arrays") :].partition("\n\n")[0]
    assert set(re.findall(r"`(\w+)`", told)) == reading


def test_every_member_has_an_example_on_the_page() -> None:
    code = "\n".join(re.findall(r"^```(?:js|json|http).*?^```", PAGE, re.MULTILINE | re.DOTALL))
    missing = [name for name in documented() if not re.search(rf"\b{name.rpartition('.')[2]}\b", code)]
    assert not missing


def test_every_comparison_and_option_of_queries_is_on_the_page() -> None:
    for name in (*queries.OPERATORS, *queries.OPTIONS):
        assert re.search(rf"`{name}\b", PAGE), name


def test_the_page_is_in_the_site() -> None:
    assert "reference/scripting.md" in Path(BASE_DIR / "mkdocs.yml").read_text(encoding="utf-8")
