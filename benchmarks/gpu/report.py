"""Write the results of all sections as a JSON file and a Markdown file."""

import datetime
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.gpu.running import Result

SCHEMA = "fusion-course/gpu-check/3"
DRY = "**A dry run on a CPU: nothing was measured on a GPU, and no number below says anything about one.**"


def as_record(results: Sequence[Result], device: str, elapsed_s: float) -> dict[str, Any]:
    """Return everything as plain data."""
    now = datetime.datetime.now(datetime.UTC)
    return {
        "schema": SCHEMA,
        "date": now.date().isoformat(),
        "dry_run": device == "cpu",
        "device": _device(results),
        "elapsed_s": round(elapsed_s, 1),
        "sections": {result.name: result.to_json() for result in results},
    }


def as_markdown(results: Sequence[Result], record: dict[str, Any]) -> str:
    """Return the report: failures, missed targets, then a part for each section."""
    failures = [sentence for result in results for sentence in result.failures]
    missed = [sentence for result in results for sentence in result.missed]
    head = [f"# GPU check of {record['date']}: {record['device']}", ""]
    head += [DRY, ""] if record["dry_run"] else []
    head += ["Failed:", "", *(f"- {line}" for line in failures), ""] if failures else ["Nothing failed.", ""]
    head += ["Targets of speed missed:", "", *(f"- {line}" for line in missed), ""] if missed else []
    times = ", ".join(f"{result.section.title.lower()} {result.elapsed_s:.0f} s" for result in results)
    head += [f"It took {record['elapsed_s']:.0f} s: {times}.", ""]
    return "\n".join([*head, *(result.markdown for result in results)])


def write(record: dict[str, Any], table: str, folder: Path) -> Path:
    """Write the record as DEVICE-DATE.json into `folder`, the table beside it as .md, and return where both lie."""
    device = re.sub(r"[^a-z0-9]+", "-", record["device"].lower()).strip("-")[:60]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{'dry-run-' if record['dry_run'] else ''}{device}-{record['date']}.json"
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    path.with_suffix(".md").write_text(table, encoding="utf-8")
    return path


def _device(results: Sequence[Result]) -> str:
    found = next((result.notes["device"] for result in results if result.name == "machine" and result.notes), None)
    return str(found or "unknown device")
