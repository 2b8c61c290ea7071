#!/usr/bin/python3
"""Checks one episode against what is known from outside, with nothing of Downbeat's own code.

    check_episode.py EPISODE_FOLDER [--agent HOST=FOLDER]... [--offset HOST=NANOSECONDS]... [--start-goal-ms 5]

EPISODE_FOLDER is the coordinator's; each --agent is the same episode on an agent's disk. --offset is the true offset of
a host's CLOCK_MONOTONIC: host time minus a clock that all hosts share. Prints a line for each check and, for each
figure, `NAME figure=<number> goal=<number> pass|fail`; the exit code is 0 only when all pass.
"""
import argparse
import hashlib
import json
import pathlib
import subprocess
import sys
import wave

import numpy

failures = 0


def figure(name, value, goal, good):
    global failures
    failures += 0 if good else 1
    print(f"{name} figure={value} goal={goal} {'pass' if good else 'fail'}")


def rows_of(path):
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]


def sha256(path):
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while part := file.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()


def packets(path):
    out = subprocess.run(
        ["ffprobe", "-v", "error", "-count_packets", "-select_streams", "v:0", "-show_entries",
         "stream=nb_read_packets", "-of", "csv=p=0", str(path)], capture_output=True, text=True)
    text = out.stdout.strip().split(",")[0]
    return int(text) if text.isdigit() else -1


def frames_decoded(path):
    out = subprocess.run(
        ["ffprobe", "-v", "error", "-count_frames", "-select_streams", "v:0", "-show_entries",
         "stream=nb_read_frames", "-of", "csv=p=0", str(path)], capture_output=True, text=True)
    text = out.stdout.strip().split(",")[0]
    return int(text) if text.isdigit() else -1


def band_energy(signal, rate, low, high, window=1024, hop=240):
    """Energy of the band in each window, and the time of each window's middle in seconds."""
    count = max(0, (len(signal) - window) // hop + 1)
    if count == 0:
        return numpy.zeros(0), numpy.zeros(0)
    shape = numpy.hanning(window)
    frequencies = numpy.fft.rfftfreq(window, 1 / rate)
    chosen = (frequencies >= low) & (frequencies <= high)
    energy = numpy.array([
        float((numpy.abs(numpy.fft.rfft(signal[i * hop:i * hop + window] * shape))[chosen] ** 2).sum())
        for i in range(count)])
    return energy, (numpy.arange(count) * hop + window / 2) / rate


def chirp_onset(times, energy, expected, search=0.5):
    """When the band's energy first stays above the noise near the expected time; NaN when it doesn't."""
    near = (times > expected - search) & (times < expected + search)
    if not near.any():
        return float("nan"), 0.0
    noise = numpy.median(energy) + 1e-12
    loud = energy > 30 * noise
    for index in numpy.flatnonzero(near):
        if loud[index:index + 40].mean() > 0.9 and len(loud[index:index + 40]) == 40:  # 40 × 5 ms = 200 ms
            return float(times[index]), float(energy[near].max() / noise)
    return float("nan"), float(energy[near].max() / noise)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("episode", type=pathlib.Path)
    parser.add_argument("--agent", action="append", default=[])
    parser.add_argument("--offset", action="append", default=[])
    parser.add_argument("--start-goal-ms", type=float, default=5.0)
    parser.add_argument("--seconds", type=float, help="how long the take must be at least")
    parser.add_argument("--no-chirps", action="store_true")
    options = parser.parse_args()
    agents = dict(pair.split("=", 1) for pair in options.agent)
    offsets = {name: int(value) for name, value in (pair.split("=", 1) for pair in options.offset)}

    hosts = sorted(path.name for path in (options.episode / "hosts").iterdir() if path.is_dir())
    request = json.loads((options.episode / "sync_request.json").read_text())
    anchors, leader = {}, None

    for host in hosts:
        folder = options.episode / "hosts" / host
        point = json.loads((folder / "sync_point.json").read_text())
        anchors[host] = point["monotonic_ns"]
        if point.get("role") == "leader":
            leader = host

        if host in agents:
            there = {p.relative_to(agents[host]): p for p in pathlib.Path(agents[host]).rglob("*") if p.is_file()}
            here = {p.relative_to(folder): p for p in folder.rglob("*") if p.is_file()}
            same = there.keys() == here.keys() and all(sha256(there[k]) == sha256(here[k]) for k in there)
            figure(f"sha256[{host}]", len(there) if same else 0, len(there), same)

        streams = 0
        for path in sorted(folder.glob("*.jsonl")):
            rows = rows_of(path)
            stamps = [row["capture_ns"] for row in rows]
            name = f"{host}/{path.name}"
            streams += 1
            ordered = stamps == sorted(stamps)
            figure(f"rows[{name}]", len(rows), ">0", len(rows) > 0 and ordered)
            if not rows:
                continue
            gap = max((b - a for a, b in zip(stamps, stamps[1:])), default=0) / 1e9
            span = (stamps[-1] - stamps[0]) / 1e9
            first = (stamps[0] - anchors[host]) / 1e9
            figure(f"largest gap s[{name}]", round(gap, 4), 1, gap < 1)
            figure(f"first sample after T0 s[{name}]", round(first, 6), 1, 0 <= first < 1)
            if options.seconds:
                figure(f"span s[{name}]", round(span, 3), options.seconds - 1, span >= options.seconds - 1)
            video = folder / (path.name.removesuffix(".timestamps.jsonl") + ".mp4")
            if video.exists():
                figure(f"packets[{host}/{video.name}]", packets(video), len(rows), packets(video) == len(rows))
                decoded = frames_decoded(video)
                figure(f"decoded[{host}/{video.name}]", decoded, len(rows), decoded == len(rows))
        figure(f"streams[{host}]", streams, ">0", streams > 0)

    if offsets:
        true = {host: anchors[host] - offsets[host] for host in hosts if host in offsets}
        spread = (max(true.values()) - min(true.values())) / 1e6
        figure("start spread ms", round(spread, 4), options.start_goal_ms, spread <= options.start_goal_ms)

    if not options.no_chirps:
        if leader is None:
            figure("leader", 0, 1, False)
        else:
            point = json.loads((options.episode / "hosts" / leader / "sync_point.json").read_text())
            for moment in ("start", "stop"):
                emitted = point.get(f"chirp_{moment}_ns")
                if emitted is None:
                    figure(f"chirp {moment}", "none", "emitted", False)
                    continue
                for host in hosts:
                    for path in sorted((options.episode / "hosts" / host).glob("*.wav")):
                        with wave.open(str(path)) as sound:
                            rate, channels = sound.getframerate(), sound.getnchannels()
                            data = numpy.frombuffer(sound.readframes(sound.getnframes()), dtype="<i2")
                        signal = data.reshape(-1, channels)[:, 0] / 32768
                        stamps = rows_of(path.with_name(path.stem + ".timestamps.jsonl"))
                        begin = stamps[0]["capture_ns"]
                        here = emitted + offsets.get(host, 0) - offsets.get(leader, 0)
                        energy, times = band_energy(signal, rate, 16800, 19200)
                        onset, ratio = chirp_onset(times, energy, (here - begin) / 1e9)
                        error = abs(onset - (here - begin) / 1e9) * 1000
                        figure(f"chirp {moment} ms[{host}/{path.name}]", round(error, 1), 50, error <= 50)

    primaries = [s for h in request["hosts"] for s in h["streams"] if s.get("is_primary")]
    figure("primaries in the request", len(primaries), 1, len(primaries) == 1)
    ids = [s["stream_id"] for h in request["hosts"] for s in h["streams"]]
    qualified = all(s["stream_id"].startswith(h["host_id"] + ".") for h in request["hosts"] for s in h["streams"])
    figure("stream ids in the request", len(set(ids)), len(ids), len(ids) == len(set(ids)) and qualified)
    missing = [i for i in ids if not any((options.episode / "timestamps").glob(f"{i}.*jsonl"))]
    figure("streams without a file in timestamps/", len(missing), 0, not missing)
    for host in request["hosts"]:
        for stream in host["streams"]:
            if "path" in stream:
                video = options.episode / stream["path"].removeprefix("/")
                figure(f"video of the request[{stream['path']}]", int(video.exists()), 1, video.exists())
    sys.exit(1 if failures else 0)


main()
