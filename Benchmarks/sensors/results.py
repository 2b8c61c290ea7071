"""Keeps the last result: results.py OUTPUT RESULTS.md. Exits with 1 when a figure failed or is missing."""
import re, sys

text, path = open(sys.argv[1]).read(), sys.argv[2]
try:
    old = open(path).read()
except FileNotFoundError:
    old = "# Benchmark results\n\nThe last run of each. `Benchmarks/run NAME` makes them anew.\n"
section = f"## sensors\n\n```\n{text.rstrip()}\n```\n"
if "## sensors\n" in old:
    new = re.sub(r"## sensors\n.*?(?=^## |\Z)", lambda _: section + "\n", old, flags=re.S | re.M).rstrip() + "\n"
else:
    new = old.rstrip() + "\n\n" + section
open(path, "w").write(new)
wanted = ["core_percent", "rate_error_percent", "streams_missing_in_request"]
sys.exit(0 if all(re.search(rf"sensors {name}=\S+ goal=\S+ pass", text) for name in wanted) else 1)
