internal import Devices
internal import Episode
internal import Platform
internal import Protocol
internal import Synchronization
internal import Timing

/// One configured stream with its device, its recorder and what is watched of them; it belongs to the agent's thread.
final class StreamSlot {
    enum Stage { case closed, opening, open, running }

    let device: any CaptureDevice
    /// The same device, when it records by itself.
    let camera: (any ClipCamera)?
    /// Begins its clip; what is known of it at the start, nil when it didn't begin.
    var clipTask: Task<PendingClip?, Never>?
    let recorder: StreamRecorder
    var stage = Stage.closed
    var description: StreamDescription?
    /// Why it has no part in the take, or what broke in it.
    var error: String?
    var meter = RateMeter()
    var stall: StallWatch?
    /// Whether it has files in the take that is under way or was the last.
    var isInTake = false
    var hasFirstSample = false
    var hasStopped = false
    /// The driver hasn't come back from an earlier call.
    let stuck = Stuck()

    var stream: StreamID { device.stream }

    init(_ device: any CaptureDevice, recorder: StreamRecorder) {
        self.device = device
        camera = device as? any ClipCamera
        self.recorder = recorder
    }

    final class Stuck: Sendable {
        private let flag = Mutex(false)
        var value: Bool {
            get { flag.withLock { $0 } }
            set { flag.withLock { $0 = newValue } }
        }
    }

    /// Before a take.
    func clear() {
        error = nil
        clipTask = nil
        (isInTake, hasFirstSample, hasStopped) = (false, false, false)
    }

    /// What is said of it when its device was never reached.
    var placeholder: StreamDescription {
        description
            ?? StreamDescription(
                id: stream, kind: .sensor, deviceKind: "unknown", deviceIdentity: "unknown",
                label: "a device that could not be opened", nominalRate: nil,
                capabilities: StreamCapabilities(producesFile: false), timestampSource: "unknown")
    }

    var outcome: StreamOutcome { StreamOutcome(stream: placeholder, error: error, hardware: device.hardware) }

    var state: StreamState {
        if error != nil { return .failed }
        if hasStopped { return .stopped }
        switch stage {
        case .closed: return .idle
        case .opening: return .connecting
        case .open: return .ready
        case .running:
            if stall?.isStalled == true { return .stalled }
            return isInTake && hasFirstSample ? .streaming : .ready
        }
    }

    var status: StreamStatus {
        let figures = recorder.figures
        return StreamStatus(
            id: stream, kind: placeholder.kind, state: state, samples: figures.samples, rate: meter.rate,
            nominalRate: description?.nominalRate, dropped: figures.dropped, bytes: figures.bytes,
            first: figures.first, last: figures.last, error: error ?? figures.error)
    }
}

/// What a stream is expected to write, for the free space that a take needs.
enum StreamCost {
    /// Bytes a second that a device hands over, where that is known: 0 for what it compresses.
    static func delivered(_ stream: StreamDescription) -> Double {
        let rate = min(max(stream.nominalRate ?? 0, 0), 1e7)
        if let audio = stream.audio { return rate * Double(audio.bytesPerFrame) }
        guard let video = stream.video else { return 0 }
        switch video.encoding {
        case .yuyv: return rate * Double(max(video.bytesPerLine, 2 * video.width)) * Double(video.height)
        case .nv12, .yuv420p: return rate * Double(max(video.bytesPerLine, video.width)) * Double(video.height) * 1.5
        case .mjpeg, .h264, .hevc: return 0
        }
    }

    /// Bytes a second.
    static func estimate(_ stream: StreamDescription) -> Int64 {
        let rate = min(max(stream.nominalRate ?? 100, 0), 1e7)
        switch stream.kind {
        case .video:
            guard let video = stream.video else { return 0 }
            let pixels = Double(video.width) * Double(video.height)
            // Measured on moving pictures: encoded by us or by a camera, and as single JPEGs.
            let perPixel = video.encoding == .mjpeg ? 0.25 : 0.1
            return Int64(min(pixels * rate * perPixel, 1e12))
        case .audio: return Int64(rate) * Int64(stream.audio?.bytesPerFrame ?? 2)
        case .sensor: return Int64(rate * Double(160 + 24 * (stream.sensor?.channels.count ?? 1)))
        }
    }
}
