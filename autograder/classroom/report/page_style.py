"""The class report's style sheet: one accent colour, light and dark, and a print version."""

from __future__ import annotations

PAGE_STYLE = """
:root {
  color-scheme: light dark;
  --ink: #1c2430; --quiet: #5b6675; --paper: #f5f6f8; --card: #ffffff; --line: #dde1e7; --accent: #2a6fdb;
  --track: #e6eaf0; --warn: #8a5200; --warn-soft: #fff1d6; --stop: #a32222; --stop-soft: #fdeaea;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ink: #e7ebf1; --quiet: #9aa6b5; --paper: #12161c; --card: #1a2028; --line: #2d3642; --accent: #6aa5ff;
    --track: #2a323d; --warn: #ffc46b; --warn-soft: #33270f; --stop: #ff9c9c; --stop-soft: #3a1b1d;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--paper); color: var(--ink);
  font: 15px/1.55 system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif;
}
main { max-width: 1120px; margin: 0 auto; padding: 32px 24px 64px; }
h1 { font-size: 26px; line-height: 1.25; margin: 0 0 4px; letter-spacing: -.01em; }
h2 { font-size: 18px; margin: 40px 0 12px; }
h3 { font-size: 15px; margin: 20px 0 6px; }
h3:first-child { margin-top: 4px; }
.quiet { color: var(--quiet); }
.small { font-size: 13px; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(160px, 1fr)); gap: 12px; margin-top: 20px; }
.tile, .card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 14px 18px; }
.tile b { display: block; font-size: 26px; line-height: 1.2; font-variant-numeric: tabular-nums; }
.card { overflow-x: auto; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(520px, 100%), 1fr)); gap: 0 20px; }
.pair > div { display: flex; flex-direction: column; }
.pair .card { flex: 1; }
.card > table { width: 100%; border-collapse: collapse; }
.card > h3 + table th:nth-child(1) { width: 46%; }
.card > h3 + table th:nth-child(2) { width: 16%; }
.card > table th {
  text-align: left; font-weight: 600; color: var(--quiet); font-size: 13px; padding: 4px 18px 6px 0;
  border-bottom: 1px solid var(--line);
}
.card > table td { padding: 7px 18px 7px 0; border-bottom: 1px solid var(--line); vertical-align: top; }
.card > table tr:last-child td { border-bottom: 0; }
.card > table .num { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.bar {
  height: 7px; border-radius: 4px; background: var(--track); margin-top: 4px; min-width: 70px; overflow: hidden;
}
.bar i { display: block; height: 100%; background: var(--accent); }
.tag {
  display: inline-block; border: 1px solid var(--line); border-radius: 6px; padding: 0 7px; font-size: 13px;
  white-space: nowrap;
}
.decide { color: var(--stop); background: var(--stop-soft); border-color: transparent; font-weight: 600; }
.look { color: var(--warn); background: var(--warn-soft); border-color: transparent; font-weight: 600; }
details { border-bottom: 1px solid var(--line); padding: 8px 0; }
details:last-child { border-bottom: 0; }
summary { cursor: pointer; }
details > div { margin: 10px 0 6px; }
svg text { fill: var(--ink); font: 12px system-ui, "DejaVu Sans", sans-serif; }
svg .tick { fill: var(--quiet); }
svg rect { fill: var(--accent); }
svg line { stroke: var(--line); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 4px 20px; margin: 0; }
dt { color: var(--quiet); }
dd { margin: 0; overflow-wrap: anywhere; }
a { color: var(--accent); }
@media print { body { background: #fff; } .card, .tile { break-inside: avoid; } }
"""
