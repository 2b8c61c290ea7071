"""What is in the episode: judge.py EPISODE SECONDS PERCENT prints the table and the figures."""
import glob, json, os, sys

episode, seconds, percent = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
rates = {"tactile": 250, "imu": 250, "mag": 250}
expected = {f"{side}_{rows}": rate for side in ("left", "right") for rows, rate in rates.items()} | {"imu": 1000}
worst = 0.0
bytes_written = 0
for name, rate in expected.items():
    path = f"{episode}/hosts/hands/{name}.jsonl"
    rows = [json.loads(line) for line in open(path)] if os.path.exists(path) else []
    bytes_written += os.path.getsize(path) if rows else 0
    span = (rows[-1]["capture_ns"] - rows[0]["capture_ns"]) / 1e9 if len(rows) > 1 else 0
    real = (len(rows) - 1) / span if span else 0
    order = all(a["capture_ns"] <= b["capture_ns"] for a, b in zip(rows, rows[1:]))
    worst = max(worst, abs(real / rate - 1) * 100, 0 if order else 100)
    channels = len(rows[0]["channels"]) if rows else 0
    print(f"{name}: {len(rows)} rows of {channels} channels, {real:.1f}/s, {'in order' if order else 'OUT OF ORDER'}")
request = json.load(open(f"{episode}/sync_request.json"))


def words(value):
    if isinstance(value, dict):
        return {word for key, item in value.items() for word in {key} | words(item)}
    if isinstance(value, list):
        return {word for item in value for word in words(item)}
    return {value} if isinstance(value, str) else set()


named = words(request)
missing = [name for name in expected if not any(f"hands.{name}" in word for word in named)]
camera = any("view.cam" in word for word in named)
print(f"{bytes_written / seconds / 1e6:.2f} MB/s of rows; missing in the sync request: {missing or 'none'}")
for name, value, goal, good in (
    ("core_percent", f"{percent:.2f}", 3, percent <= 3),
    ("rate_error_percent", f"{worst:.2f}", 1, worst <= 1),
    ("streams_missing_in_request", len(missing) + (not camera), 0, not missing and camera),
):
    print(f"sensors {name}={value} goal={goal} {'pass' if good else 'fail'}")
