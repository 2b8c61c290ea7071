"""Records with both programs in turn: measure.py PROGRAM WORK [--quick]."""
import os, platform, re, shutil, statistics, subprocess, sys

program, work = sys.argv[1:3]
quick = "--quick" in sys.argv
rounds = 1 if quick else 5
camera = f"{work}/camera.so"
good = True


def make_frames(name, size, arguments):
    """Eight frames, one for each buffer."""
    folder = f"{work}/{name}"
    os.makedirs(folder)
    source = f"testsrc2=s={size}:r=30,noise=alls=12:allf=t"
    subprocess.run(
        ["ffmpeg", "-v", "error", "-f", "lavfi", "-i", source, "-frames:v", "8", *arguments, "-f", "image2",
         "-start_number", "0", f"{folder}/%d.bin"], check=True)
    for number in range(8):
        os.rename(f"{folder}/{number}.bin", f"{folder}/{number}")
    sizes = [os.path.getsize(f"{folder}/{number}") for number in range(8)]
    return folder, statistics.mean(sizes)


def run(words, settings):
    """Processor seconds (user, system) and peak memory in MB of a whole process, and what it printed."""
    environment = dict(os.environ, LD_PRELOAD=camera, **settings)
    output = open(f"{work}/printed", "w+")
    process = subprocess.Popen(words, env=environment, stdout=output, stderr=output)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    output.seek(0)
    text = output.read()
    if process.returncode != 0:
        print(text)
        raise SystemExit(f"{words[0]} failed with {process.returncode}")
    return usage.ru_utime, usage.ru_stime, usage.ru_maxrss / 1024, text


def packets(path):
    text = subprocess.run(
        ["ffprobe", "-v", "error", "-count_packets", "-select_streams", "v:0", "-show_entries",
         "stream=nb_read_packets", "-of", "csv=p=0", path], check=True, capture_output=True, text=True).stdout
    return int(re.search(r"\d+", text).group())


def ours(settings, count):
    folder = f"{work}/ours"
    shutil.rmtree(folder, ignore_errors=True)
    user, system, memory, _ = run([program, folder, str(count), "/dev/video200"], settings)
    return user, system, memory, packets(f"{folder}/cam0.mp4")


def peer(settings, count, arguments):
    target = f"{work}/peer.mp4"
    kind = "mjpeg" if settings["CAMERA_FORMAT"] == "MJPG" else "yuyv422"
    user, system, memory, _ = run(
        ["ffmpeg", "-nostdin", "-v", "error", "-y", "-f", "v4l2", "-input_format", kind, "-video_size",
         settings["CAMERA_SIZE"], "-framerate", "30", "-i", "/dev/video200", "-frames:v", str(count), *arguments,
         target], settings)
    return user, system, memory, packets(target)


def compare(title, settings, count, contestants):
    """Medians of processor seconds for 1000 frames and of peak memory."""
    results = {name: [] for name, _ in contestants}
    for _ in range(rounds):
        for name, contestant in contestants:
            results[name].append(contestant(settings, count))
    print(f"{title}: {count} frames at 30 frames/s, {rounds} times each in turn")
    medians = {}
    for name, rows in results.items():
        cpu = [1000 * (user + system) / frames for user, system, _, frames in rows]
        split = [statistics.median(1000 * row[part] / row[3] for row in rows) for part in (0, 1)]
        memory = [row[2] for row in rows]
        medians[name] = (statistics.median(cpu), statistics.median(memory))
        print(
            f"  {name:34s} {medians[name][0]:7.3f} s of processor for 1000 frames ({min(cpu):.3f}-{max(cpu):.3f}; "
            f"user {split[0]:.3f}, system {split[1]:.3f})  peak {medians[name][1]:6.1f} MB ({min(memory):.1f}-{max(memory):.1f})"
            f"  frames {min(row[3] for row in rows)}")
    return medians


def figure(name, value, goal):
    global good
    good = good and value <= goal
    print(f"capture {name} figure={value:.3f} goal={goal} {'pass' if value <= goal else 'fail'}", flush=True)


version = subprocess.run(["ffmpeg", "-version"], capture_output=True, text=True).stdout.split()[2]
model = re.search(r"model name\s*: (.*)", open("/proc/cpuinfo").read())
print(f"on: {model.group(1) if model else platform.machine()}, {os.cpu_count()} cores, {platform.system()} "
      f"{platform.release()}, ffmpeg {version}, load {os.getloadavg()[0]:.1f}")

folder, size = make_frames("jpeg", "1920x1080", ["-c:v", "mjpeg", "-q:v", "5"])
jpeg = {"CAMERA_FORMAT": "MJPG", "CAMERA_SIZE": "1920x1080", "CAMERA_RATE": "30", "CAMERA_FRAMES": folder}
print(f"MJPEG 1920x1080, {size / 1000:.0f} kB a frame, {size * 30 / 1e6:.1f} MB/s; whole processes, start to closed file")
fragments = ["-c", "copy", "-movflags", "empty_moov+default_base_moof", "-frag_duration", "950000"]
count = 200 if quick else 600
passed = compare("passed through", jpeg, count, [
    ("downbeat", ours),
    ("ffmpeg -c copy", lambda s, n: peer(s, n, ["-c", "copy"])),
    ("ffmpeg -c copy, in fragments", lambda s, n: peer(s, n, fragments)),
])
figure("passthrough_cpu_ratio", passed["downbeat"][0] / passed["ffmpeg -c copy"][0], 1.0)
figure("passthrough_memory_ratio", passed["downbeat"][1] / passed["ffmpeg -c copy"][1], 1.0)

folder, size = make_frames("raw", "1280x720", ["-c:v", "rawvideo", "-pix_fmt", "yuyv422"])
raw = {"CAMERA_FORMAT": "YUYV", "CAMERA_SIZE": "1280x720", "CAMERA_RATE": "30", "CAMERA_FRAMES": folder}
settings = ["-pix_fmt", "yuv420p", "-c:v", "libx264", "-preset", "superfast", "-tune", "zerolatency", "-crf", "21",
            "-bf", "0", "-g", "1000", "-sc_threshold", "0", "-forced-idr", "1",
            "-force_key_frames", "expr:gte(t,n_forced*0.95)"]
encoded = compare("encoded from YUYV 1280x720", raw, 100 if quick else 300, [
    ("downbeat", ours), ("ffmpeg, the same settings", lambda s, n: peer(s, n, settings))])
figure("encode_cpu_ratio", encoded["downbeat"][0] / encoded["ffmpeg, the same settings"][0], 1.05)
figure("encode_memory_ratio", encoded["downbeat"][1] / encoded["ffmpeg, the same settings"][1], 1.05)

for cameras in (2, 4, 8):
    log = f"{work}/log"
    if os.path.exists(log):
        os.remove(log)
    target = f"{work}/many"
    shutil.rmtree(target, ignore_errors=True)
    wanted = 200 if quick else 900
    user, system, memory, text = run(
        [program, target, str(wanted)] + [f"/dev/video{200 + number}" for number in range(cameras)],
        dict(jpeg, CAMERA_LOG=log))
    in_driver = sum(int(line.split()[1]) for line in open(log))
    found = [int(n) for n in re.findall(r"frames=(\d+)", text)]
    lost = sum(int(n) for n in re.findall(r"lost=(-?\d+)", text))
    missing = sum(max(0, wanted - 1 - n) for n in found) + wanted * (cameras - len(found))
    print(f"{cameras} cameras, {wanted} frames each: {(user + system) / (wanted / 30) * 100:.1f} % of one core, "
          f"peak {memory:.0f} MB; the driver wanted a buffer {in_driver} times, {lost} lost by us, {missing} missing")
    figure(f"lost_{cameras}_cameras", float(max(in_driver, lost, missing)), 0)
    shutil.rmtree(target)
sys.exit(0 if good else 1)
