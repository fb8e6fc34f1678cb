"""How plain pages look: legible on every screen, in the dark too, without anything from elsewhere."""

STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; color: #1a1a1a;
  overflow-wrap: break-word; }
.note { overflow-wrap: anywhere; } table.counts td + td { white-space: nowrap; }
h1, h2, h3 { line-height: 1.2; } h3 { margin-top: 3rem; } img { max-width: 100%; height: auto; }
table { border-collapse: collapse; width: 100%; font-size: 0.9rem; margin: 0.7rem 0; }
th, td { border-bottom: 1px solid #ddd; padding: 0.3rem 0.6rem; text-align: left; vertical-align: top; }
.reproduced { color: #00563f; } .deviates { color: #a33b00; font-weight: 600; } .cannot { color: #555; }
.why, .note, .basis { color: #555; font-size: 0.85rem; }
nav a { display: inline-block; padding: 0.3rem 0.8rem 0.3rem 0; }
@media (max-width: 46rem) {
  body { margin: 1rem auto; } table.counts { font-size: 0.8rem; } table.counts th, table.counts td { padding: 0.2rem; }
  table.claims, table.claims tbody, table.claims tr, table.claims td { display: block; width: auto; }
  table.claims tr:first-child { display: none; }
  table.claims tr { border-bottom: 1px solid #ddd; padding: 0.5rem 0; }
  table.claims td { border: 0; padding: 0.1rem 0; }
  table.claims td[data-is]::before { content: attr(data-is) ": "; color: #555; }
}
@media (prefers-color-scheme: dark) {
  body { background: #14171a; color: #e4e4e4; } a { color: #7cc4f0; } img { background: #fff; border-radius: 4px; }
  .reproduced { color: #5fd3ae; } .deviates { color: #ff9e66; } .cannot, .why, .note, .basis { color: #aaa; }
  th, td, table.claims tr { border-color: #3a3f44; } table.claims td[data-is]::before { color: #aaa; }
}
"""
