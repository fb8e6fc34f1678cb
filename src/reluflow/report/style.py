"""How plain pages look: legible on every screen, in the dark too, without anything from elsewhere."""

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; color: #1a1a1a; }
h1, h2, h3 { line-height: 1.2; } h3 { margin-top: 3rem; } img { max-width: 100%; height: auto; }
table { border-collapse: collapse; width: 100%; font-size: 0.9rem; margin: 0.7rem 0; }
th, td { border-bottom: 1px solid #ddd; padding: 0.3rem 0.6rem; text-align: left; vertical-align: top; }
.reproduced { color: #00563f; } .deviates { color: #a33b00; font-weight: 600; } .cannot { color: #555; }
.why, .note { color: #555; font-size: 0.85rem; } nav a { margin-right: 0.8rem; }
@media (prefers-color-scheme: dark) {
  body { background: #14171a; color: #e4e4e4; } a { color: #7cc4f0; } img { background: #fff; }
  .reproduced { color: #5fd3ae; } .deviates { color: #ff9e66; } .cannot, .why, .note { color: #aaa; }
  th, td { border-color: #3a3f44; }
}
"""
