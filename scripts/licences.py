"""Compare the licences of all dependencies with the accepted ones and with NOTICE.

python -m scripts.licences           check (`make check` runs it)
python -m scripts.licences --write   write the table of dependencies in NOTICE
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import Distribution, PackageNotFoundError, distribution

from scripts.tested_versions import ROOT, dependencies, pins

NOTICE = ROOT / "NOTICE"
HEADING = "Packages that searchapp requires"

ALLOWED = {
    "0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "CNRI-Python", "ISC", "MIT", "MIT-0",
    "MPL-2.0", "PSF-2.0", "Zlib",
}  # fmt: skip
"""SPDX identifiers of the licences that all dependencies may have."""

EXCEPTIONS = {
    # Licences of parts of it; it only builds the documentation.
    "docutils": {"GPL-3.0-or-later", "LicenseRef-Public-Domain"},
    "krippendorff": {"GPL-3.0-or-later"},  # only a test imports it, as a reference
    "pygal": {"LGPL-3.0-or-later"},  # a library that users can replace
    "pyte": {"LGPL-3.0-only"},  # only tests import it
}
"""Additional licences of single packages."""

SPDX = {
    "2-clause BSD": "BSD-2-Clause",
    "Apache 2": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD": "BSD-3-Clause",
    "BSD 2-Clause License": "BSD-2-Clause",
    "BSD License": "BSD-3-Clause",
    "GNU General Public License (GPL)": "GPL-3.0-or-later",
    "GNU Lesser General Public License v3 (LGPLv3)": "LGPL-3.0-only",
    "GNU Lesser General Public License v3 or later (LGPLv3+)": "LGPL-3.0-or-later",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Public Domain": "LicenseRef-Public-Domain",
    "Python Software Foundation License": "PSF-2.0",
}
"""SPDX identifiers by the names in older metadata."""


def licence(package: Distribution) -> str:
    """Return the SPDX expression of a package's licence; "" if its metadata has none."""
    metadata = package.metadata
    expression: str = (metadata.get_all("License-Expression") or [""])[0]
    if expression:
        return expression
    # A classifier names one licence; the older field may contain any text, such as the licence itself.
    classifiers = [line.split(" :: ") for line in metadata.get_all("Classifier") or []]
    names = [parts[-1] for parts in classifiers if parts[0] == "License" and parts[-1] in SPDX]
    text: str = (metadata.get_all("License") or [""])[0]
    return " OR ".join(sorted({SPDX[name] for name in names})) or SPDX.get(text, "" if "\n" in text else text)


def problem(package: Distribution) -> str | None:
    """Return an error message if the licence of a package is unknown or not allowed, else None."""
    expression = licence(package)
    title = f"{package.name} {package.version}"
    identifiers = set(re.findall(r"[\w.+-]+", expression)) - {"AND", "OR", "WITH"}
    if not identifiers:
        return f"{title} has no licence in its metadata: read its licence, and name it in SPDX of scripts/licences.py"
    forbidden = identifiers - ALLOWED - EXCEPTIONS.get(package.name.lower(), set())
    if forbidden:
        return (
            f"{title} has the licence {', '.join(sorted(forbidden))}, which is not allowed: use another package, or "
            "add the licence to ALLOWED or EXCEPTIONS of scripts/licences.py"
        )
    return None


def installed(names: Iterable[str]) -> Iterator[Distribution]:
    """Yield the installed packages of these names; the others are for other systems."""
    for name in sorted(names):
        try:
            yield distribution(name)
        except PackageNotFoundError:
            continue


def table() -> str:
    """Return the lines of NOTICE on the packages that searchapp and its extras for users require."""
    names = {re.match(r"[\w.-]+", line)[0] for line in dependencies()}  # type: ignore[index]
    return "".join(f"  {package.name}: {licence(package)}\n" for package in installed(names))


def main(arguments: Sequence[str]) -> int:
    """Check the licences and NOTICE, or write it; return the exit code."""
    problems = [
        sentence for package in installed({*pins("requirements-dev.txt")}) if (sentence := problem(package))
    ]
    text = NOTICE.read_text("utf-8")
    wanted = re.sub(
        rf"(?s)({HEADING}\n=+\n.*?\n\n)(  .*?\n)(?=\n|\Z)", lambda match: match[1] + table(), text
    )
    if "--write" in arguments:
        NOTICE.write_text(wanted, "utf-8")
    elif wanted != text:
        problems.append("NOTICE lists other packages or licences: run python -m scripts.licences --write")
    for sentence in problems:
        print(sentence, file=sys.stderr)
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
