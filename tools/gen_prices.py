#!/usr/bin/python3
"""Writes the prices of models into the profiles of agents.

In: the FAMILY and PRICED rows of tables/models.def. Out: network.prices of profiles/NAME.yaml, for
each PRICED row. --check writes nothing and exits 1 with the name of each stale file.
"""
import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent
TABLE = TOP / "tables/models.def"
FIELDS = ("input", "output", "cache_read", "cache_write")
BLOCK = re.compile(r"^  prices:\n(?:    - \{ model: .*\n)*", re.M)


def rows(kind):
    """The texts of each row of that kind."""
    text = TABLE.read_text(encoding="ascii")
    return [re.findall(r'"([^"]*)"', row) for row in re.findall(rf"^{kind}\((.*)\)$", text, re.M)]


def prices(vendors):
    """The block of a profile."""
    out = "  prices:\n"
    for vendor, name, *values in rows("FAMILY"):
        if vendor in vendors:
            known = ", ".join(f"{field}: {value}" for field, value in zip(FIELDS, values) if value)
            out += f'    - {{ model: "{name}", {known} }}\n'
    return out


def main():
    check = sys.argv[1:] == ["--check"]
    stale = 0
    priced = rows("PRICED")
    for profile, vendors in priced:
        path = TOP / f"profiles/{profile}.yaml"
        old = path.read_text(encoding="utf-8")
        new, found = BLOCK.subn(lambda _, v=vendors.split(): prices(v), old)
        if found != 1:
            sys.exit(f"{path.relative_to(TOP)}: has {found} lists of prices instead of one")
        if new != old:
            stale += 1
            print(f"{path.relative_to(TOP)} is stale" if check else path.relative_to(TOP))
            if not check:
                path.write_text(new, encoding="utf-8")
    names = {profile for profile, _ in priced}
    for path in sorted((TOP / "profiles").glob("*.yaml")):
        if path.stem not in names and BLOCK.search(path.read_text(encoding="utf-8")):
            sys.exit(f"profiles/{path.name}: its prices have no PRICED row in tables/models.def")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
