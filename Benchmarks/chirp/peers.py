"""Lets the peers align the same pairs of recordings: peers.py FOLDER OURS.tsv.

truth.tsv holds how much later the chirp is in b than in a. All get the same files; the peers get their best settings for
them (audalign: correlation at the full 48 kHz; audio-offset-finder: 48 kHz too, as its own 8 kHz has nothing of 17 kHz).
"""
import contextlib, io, statistics, sys, time
from importlib.metadata import version

import audalign
from audio_offset_finder.audio_offset_finder import find_offset_between_files

folder, ours_file = sys.argv[1:3]
truth = {}
for row in open(f"{folder}/truth.tsv"):
    name, seconds = row.split("\t")
    truth[name] = float(seconds)


def by_audalign(a, b, name):
    recognizer = audalign.CorrelationRecognizer()
    recognizer.config.sample_rate = 48000
    recognizer.config.multiprocessing = False
    with contextlib.redirect_stdout(io.StringIO()):
        found = audalign.align_files(a, b, recognizer=recognizer)
    if not found:
        return float("nan")
    # What has to be put before each file so that they agree: a's content is earlier by its own share.
    return found[f"{name}-a.wav"] - found[f"{name}-b.wav"]


def by_offset_finder(a, b, name):
    found = find_offset_between_files(a, b, fs=48000, hop_length=128, win_length=1024, nfft=2048)
    return -found["time_offset"]


def row(label, errors, times):
    known = [e for e in errors if e == e]
    if not known:
        print(f"  {label:28s} found nothing")
        return float("nan")
    ordered = sorted(known)
    at = lambda q: ordered[min(int(len(ordered) * q), len(ordered) - 1)] * 1e6
    print(
        f"  {label:28s} found {len(known):3d}/{len(errors):3d}  error median {at(0.5):12.1f}  p95 {at(0.95):12.1f} µs"
        f"  time {statistics.median(times):7.3f} s ({min(times):.3f}-{max(times):.3f})"
    )
    return at(0.5)


ours = {}
for line in open(ours_file):
    name, seconds, spent = line.split("\t")
    ours[name] = (float(seconds), float(spent))
print(f"pairs of recordings of 20 s: audalign {version('audalign')}, audio-offset-finder {version('audio-offset-finder')}")
worst = float("inf")
for preset in ("ultrasonic", "audible"):
    names = [name for name in truth if name.endswith(preset)]
    mine = row(f"downbeat, {preset}", [abs(ours[n][0] - truth[n]) for n in names], [ours[n][1] for n in names])
    for label, solve in (("audalign", by_audalign), ("audio-offset-finder", by_offset_finder)):
        errors, times = [], []
        for name in names:
            start = time.monotonic()
            try:
                offset = solve(f"{folder}/{name}-a.wav", f"{folder}/{name}-b.wav", name)
            except Exception as problem:  # a peer that gives up has found nothing
                print(f"  {label}: {problem}", file=sys.stderr)
                offset = float("nan")
            times.append(time.monotonic() - start)
            errors.append(abs(offset - truth[name]))
        theirs = row(f"{label}, {preset}", errors, times)
        worst = min(worst, theirs / mine if theirs == theirs else float("inf"))
print(f"chirp accuracy_over_best_peer={worst:.1f} goal=10 {'pass' if worst >= 10 else 'fail'}")
