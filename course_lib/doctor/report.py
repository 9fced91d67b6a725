"""What the doctor found, as data that prints as text and shows as HTML."""

import dataclasses
import html
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

COLUMNS = ("what", "found", "health", "what to do")
COLOURS = {"fine": "20,140,90", "note": "128,128,128", "mend": "205,60,50"}


class Health(StrEnum):
    """How a finding stands."""

    FINE = "fine"
    NOTE = "note"  # the course works all the same; the advice says what differs
    MEND = "mend"  # some cells will fail


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    name: str  # e.g. "torch"
    found: str  # e.g. "2.13.0+cpu"; for what is missing "not found"
    health: Health
    advice: str = ""  # what to do, or what differs; empty if fine

    def __post_init__(self) -> None:
        object.__setattr__(self, "health", Health(self.health))


@dataclass(frozen=True)
class Report:
    """All findings, in the order in which they were made.

    >>> report = Report((Finding("python", "3.11.2", Health.FINE),))
    >>> report["python"].found, report.healthy
    ('3.11.2', True)
    """

    findings: tuple[Finding, ...]

    @property
    def healthy(self) -> bool:
        """Whether nothing has to be mended."""
        return all(finding.health is not Health.MEND for finding in self.findings)

    @property
    def verdict(self) -> str:
        """One sentence on the whole."""
        broken = [finding.name for finding in self.findings if finding.health is Health.MEND]
        return f"To be mended first: {', '.join(broken)}." if broken else "This machine has all that the course needs."

    def __getitem__(self, name: str) -> Finding:
        """Return the finding of that name; raises KeyError for another."""
        for finding in self.findings:
            if finding.name == name:
                return finding
        raise KeyError(f"the doctor looked at {', '.join(f.name for f in self.findings)}, and not at {name!r}")

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain data."""
        findings = [dataclasses.asdict(finding) | {"health": finding.health.value} for finding in self.findings]
        return {"healthy": self.healthy, "findings": findings}

    def __str__(self) -> str:
        lines = [(f.name, f.found, f.health.value, f.advice) for f in self.findings]
        widths = [max(map(len, column)) for column in zip(COLUMNS, *lines, strict=True)]
        text = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in (COLUMNS, *lines)]
        return "\n".join([text[0], "-" * max(map(len, text)), *text[1:], self.verdict])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head = "".join(f'<th scope="col" style="text-align:left">{column}</th>' for column in COLUMNS)
        rows = "".join(_row(finding) for finding in self.findings)
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        return f"{table}<p>{html.escape(self.verdict)}</p>"


def _row(finding: Finding) -> str:
    badge = f'<span style="background:rgba({COLOURS[finding.health]},.18);padding:0 8px">{finding.health}</span>'
    cells = (html.escape(finding.name), html.escape(finding.found), badge, html.escape(finding.advice))
    return "<tr>" + "".join(f'<td style="text-align:left">{cell}</td>' for cell in cells) + "</tr>"
