"""Keeps a benchmark's last result in a section of its own: keep.py NAME OUTPUT RESULTS.md."""
import re
import sys

name, output, path = sys.argv[1:4]
try:
    old = open(path).read()
except FileNotFoundError:
    old = "# Benchmark results\n\nThe last run of each. `Benchmarks/run NAME` makes them anew.\n"
section = f"## {name}\n\n```\n{open(output).read().rstrip()}\n```\n"
if f"## {name}\n" in old:
    new = re.sub(rf"## {name}\n.*?(?=^## |\Z)", lambda _: section + "\n", old, flags=re.S | re.M).rstrip() + "\n"
else:
    new = old.rstrip() + "\n\n" + section
with open(path, "w") as file:
    file.write(new)
