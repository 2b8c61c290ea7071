internal import Protocol
internal import Timing

/// The values whose bytes stand in Vectors/messages.txt, which make_vectors.py writes from the format's description.
enum GoldenMessages {
    static let take = UniqueID(unchecked: "0123456789abcdef0123456789abcdef")
    static let coordinator = UniqueID(unchecked: String(repeating: "f", count: 32))
    static let episode = EpisodeID(unchecked: "ep_20260411_152930_a1b2c3")
    static let stream = StreamDescription(
        id: StreamID(unchecked: "cam ego"), kind: .video, deviceKind: "v4l2", deviceIdentity: "usb-ACME_CAM-A",
        label: "ACME Cam", nominalRate: 29.97,
        video: VideoFormat(encoding: .yuyv, width: 640, height: 480, bytesPerLine: 1280),
        capabilities: StreamCapabilities(producesFile: true),
        timestampSource: "driver, CLOCK_MONOTONIC, end of frame")
    static let outcome = StreamOutcome(stream: stream, error: "busy")
    static let figures = StreamStatus(
        id: StreamID(unchecked: "imu"), kind: .sensor, state: .streaming, samples: 1000, rate: 99.5, nominalRate: 100,
        dropped: 2, bytes: 123_456, first: Timestamp(nanoseconds: 9_007_199_254_740_993),
        last: Timestamp(nanoseconds: 9_007_199_264_740_993))
    static let status = HostStatus(
        state: .recording, take: take, episode: episode, streams: [figures], freeBytes: 1 << 40,
        now: Timestamp(nanoseconds: .max))
    static let plan = TakePlan(
        take: take, session: SessionID(unchecked: "Küche 7"), episode: episode, task: "pick / place",
        participant: "p01", role: .follower, leader: HostID(unchecked: "left-pc"), chirp: .ultrasonic,
        playsTurn: true, policy: .strict, reserveBytes: 2_147_483_648, startTimeout: .seconds(45),
        armTimeout: .seconds(30))
    static let commit = Commit(
        take: take, start: Timestamp(nanoseconds: 3_600_000_000_001), bound: .nanoseconds(12345),
        limit: Timestamp(nanoseconds: 7_200_000_000_000))
    static let chirped = ChirpReport(
        take: take, moment: .start, emitted: Timestamp(nanoseconds: 3_601_000_000_000), source: .softwareFallback)
    static let stopReport = StopReport(
        take: take, episode: episode, streams: [figures], reason: "duration", errors: ["cam ego: gone"])
    static let acknowledgement = TakeReference(take: take)

    static let all: [Message] = [
        .hello(Hello(coordinator: coordinator, name: "desk", version: "0.1.0")),
        .lease(LeaseRequest(coordinator: coordinator, name: "desk", length: .seconds(10))),
        .heartbeat(Empty()),
        .snapshotRequest(Empty()),
        .devices(Empty()),
        .arm(plan),
        .commit(commit),
        .abort(TakeReference(take: take, reason: "host right-pc is silent")),
        .chirp(ChirpCommand(take: take, moment: .stop, at: Timestamp(nanoseconds: 3_700_000_000_000))),
        .stop(StopCommand(take: take, stop: Timestamp(nanoseconds: 3_800_000_000_000), reason: "operator")),
        .soundCheck(
            SoundCheckCommand(
                take: take, plays: true,
                probes: [
                    SoundCheckCommand.Probe(
                        preset: .custom,
                        spec: ChirpSpec(
                            fromHz: 16_000, toHz: 20_000.5, durationMilliseconds: 250, amplitude: 0.125,
                            envelopeMilliseconds: 10), at: Timestamp(nanoseconds: 3_550_000_000_000))
                ])),
        .ingest(IngestRequest(episode: episode)),
        .ingested(IngestRequest(episode: episode)),
        .chunk(ChunkRequest(episode: episode, path: "a b/é.mp4", offset: 1_048_576, length: 65_536)),
        .welcome(
            Welcome(
                hostUUID: take, host: HostID(unchecked: "left-pc"), version: "0.1.0", clockPort: 7880, bulkPort: 7879,
                clockKey: "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")),
        .leased(Lease(coordinator: coordinator, until: Timestamp(nanoseconds: 3_600_000_000_000))),
        .status(status),
        .snapshot(
            HostSnapshot(
                status: status, plan: plan, commit: commit, chirps: [chirped],
                episodes: [
                    EpisodeSummary(
                        episode: episode, session: SessionID(unchecked: "Küche 7"), take: take, progress: .finished,
                        bytes: 99)
                ])),
        .deviceList(
            DeviceList(
                attached: [
                    DeviceList.Attached(
                        kind: "v4l2", identity: "usb-ACME_CAM-A", label: "ACME Cam",
                        abilities: ["YUYV 640x480 at 30/s"])
                ], streams: [outcome])),
        .armed(
            ArmReport(take: take, streams: [outcome], freeBytes: 5, bytesPerSecond: 600_000, canPlayChirps: true)),
        .committed(acknowledgement),
        .aborted(acknowledgement),
        .chirped(chirped),
        .soundChecked(
            SoundCheckReport(
                take: take,
                hearings: [
                    SoundCheckReport.Hearing(
                        stream: StreamID(unchecked: "host_audio"), preset: .audible, isHeard: true,
                        signalToNoise: 21.5, noise: -61.25)
                ], source: .hardware)),
        .stopping(acknowledgement),
        .fileList(
            FileList(
                episode: episode,
                files: [
                    FileEntry(
                        path: "cam ego.mp4", size: 4_294_967_296, sha256: String(repeating: "0", count: 64),
                        mtimeNanoseconds: 1_775_921_370_000_000_001)
                ])),
        .acknowledged(Empty()),
        .chunkData(ChunkHeader(path: "cam ego.mp4", offset: 0)),
        .refused(Refusal(.tooLate, "T0 is past")),
        .event(
            HostEvent(
                kind: .takeFinished, at: Timestamp(nanoseconds: 3_900_000_000_000), take: take, stop: stopReport)),
    ]
}
