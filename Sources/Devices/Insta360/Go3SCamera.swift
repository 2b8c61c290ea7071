internal import Platform
package import Protocol
package import Timing

/// An Insta360 Go 3S: told over Bluetooth to start and to stop, its clip is fetched at ingest.
///
/// Concurrency: an actor on its own event loop, on which its link lives too; the sink is called there.
package actor Go3SCamera: ClipCamera {
    package struct Options: Sendable {
        package var target: CameraTarget
        package var access = ClipAccess()
        /// What the camera remembers this host by.
        package var authorizationID: String
        /// How long the link may take to come about.
        package var patience = Interval.seconds(25)
        /// How long a person has for confirming at the camera.
        package var confirmation = Interval.seconds(10)
        package var start = CaptureRetryPolicy.start
        package var stop = CaptureRetryPolicy.stop
        package var question = Interval.seconds(3)
        package var statusPoll = CaptureRetryPolicy.statusPoll

        package init(target: CameraTarget, authorizationID: String) {
            (self.target, self.authorizationID) = (target, authorizationID)
        }
    }

    private static let lowBattery = 15

    package nonisolated let stream: StreamID
    package nonisolated let clips: ClipAccess
    /// Whatever it is called: a camera serves one host.
    package nonisolated var hardware: String? { "camera '\(options.target.word)'" }
    private nonisolated let loop: EventLoop
    private nonisolated let log: Log
    private nonisolated let options: Options
    private let central: LowEnergyCentral
    private let claims: CameraClaims
    private var link: CameraLink?
    private var sink: (any SampleSink)?
    private var permission: CheckedContinuation<CameraAuthorization, Never>?
    private var isRecording = false
    private var isStopping = false
    private var mayBeStray = false
    private var storageIsFull = false
    private var clipName = ""

    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    package init(
        _ stream: StreamID, _ options: Options, central: LowEnergyCentral = LowEnergyCentral(),
        claims: CameraClaims = .ofThisProcess
    ) {
        (self.stream, self.options, self.central, self.claims) = (stream, options, central, claims)
        clips = options.access
        loop = EventLoop(name: "go3s-\(stream)")
        log = Log("camera \(stream)")
    }

    // MARK: Life

    package func open() async throws -> StreamDescription {
        let target = options.target
        if let holder = claims.claim(target.identity, for: stream.rawValue) {
            throw DeviceError(
                .busy, stream: stream, cause: "camera '\(target.word)' belongs to stream '\(holder)' already",
                cure: "give each stream a camera of its own in the configuration")
        }
        do {
            let link = connection()
            try await bringUp(link)
            try await authorize(link)
            try await checkIdle(link)
            return try await describe(link)
        } catch {
            await close()
            throw error
        }
    }

    /// Between two takes the link may have been lost, or the camera begun to record for somebody else.
    package func start(_ sink: any SampleSink) async throws {
        let link = connection()
        try await bringUp(link)
        try await checkIdle(link)
        self.sink = sink
    }

    package func stop() { sink = nil }

    package func close() async {
        sink = nil
        let link = link
        self.link = nil
        permission?.resume(returning: .cancelled)
        permission = nil
        await link?.down()
        claims.release(options.target.identity, of: stream.rawValue)
    }

    package func expectStrayClip() { mayBeStray = true }

    package func endStrayClip() async -> ClipStop? {
        guard claims.claim(options.target.identity, for: stream.rawValue) == nil else { return nil }
        let link = connection()
        do {
            try await bringUp(link)
            try await authorize(link)
        } catch {
            log.warning("whether the camera still records isn't known: \(error)")
            return nil
        }
        guard await isCapturing(link) == true else { return nil }
        mayBeStray = false
        return await stopClip()
    }

    package func keepAwake() async {
        guard claims.claim(options.target.identity, for: stream.rawValue) == nil else { return }
        do { try await connection().up(within: options.patience) } catch {
            log.warning("the camera can't be kept awake: \(error)")
        }
    }

    package func wifi(_ use: CameraLinkMachine.WiFi) async { await link?.wifi(use) }

    private func connection() -> CameraLink {
        if let link { return link }
        let new = CameraLink(options.target, central: central, on: loop) { [weak self] news in
            self?.assumeIsolated { $0.heard(news) }
        }
        link = new
        return new
    }

    private func bringUp(_ link: CameraLink) async throws {
        do { try await link.up(within: options.patience) } catch {
            throw DeviceError(
                .notFound, stream: stream, cause: "camera '\(options.target.word)' can't be reached: \(error)",
                cure: "see whether it is on, near, out of its dock, and not in use by another host or the Insta360 app")
        }
    }

    // MARK: Opening

    private func authorize(_ link: CameraLink) async throws {
        let check = CameraCommand.checkAuthorization(id: options.authorizationID)
        var permission: CameraAuthorization
        do {
            permission = CameraAuthorization(check: try await link.request(check, within: options.question).body)
        } catch CameraFault.refused(_, .notImplemented, _) {
            // A firmware that asks for no permission.
            return
        } catch {
            throw DeviceError(
                .inputOutput, stream: stream, cause: "the camera doesn't say whether this host may use it: \(error)",
                cure: "switch the camera off and on")
        }
        if permission == .required { permission = await ask(link) }
        guard permission != .granted else { return }
        let words = permission.words
        throw DeviceError(
            permission == .connectedByOtherDevice || permission == .systemBusy ? .busy : .accessDenied, stream: stream,
            cause: words.cause, cure: words.cure)
    }

    /// Lets the camera ask its person; what isn't confirmed in time stays required.
    private func ask(_ link: CameraLink) async -> CameraAuthorization {
        do {
            let reply = try await link.request(.requestAuthorization, within: options.question)
            // Some firmwares answer at once and tell the outcome later, others answer with it.
            if ProtobufFields(reply.body)?.number(1) != nil {
                let result = CameraAuthorization(result: reply.body)
                if result != .rejected { return result }
            }
        } catch CameraFault.timedOut {
        } catch {
            return .required
        }
        let limit = loop.schedule(at: HostClock.now + options.confirmation) { [weak self] in
            self?.assumeIsolated { $0.decided(.required) }
        }
        defer { loop.cancel(limit) }
        return await withCheckedContinuation { permission = $0 }
    }

    private func decided(_ result: CameraAuthorization) {
        permission?.resume(returning: result)
        permission = nil
    }

    /// A camera that records is somebody's: it is stopped only when this program may have left it so.
    private func checkIdle(_ link: CameraLink) async throws {
        guard await isCapturing(link) == true else { return }
        guard mayBeStray || isRecording else {
            throw DeviceError(
                .busy, stream: stream, cause: "the camera records already, and not for this host",
                cure: "end that recording at the camera, or take the camera out of the other host's configuration")
        }
        log.warning("the camera still records a take that ended; it is stopped, and its clip stays on its card")
        _ = await stopClip()
        mayBeStray = false
    }

    /// Nil when it doesn't say.
    private func isCapturing(_ link: CameraLink) async -> Bool? {
        guard let reply = try? await link.request(.captureStatus, within: options.question) else { return nil }
        return CameraReplies.capture(reply.body)?.isRecording
    }

    private func describe(_ link: CameraLink) async throws -> StreamDescription {
        do { _ = try await link.request(.setVideoMode, within: options.question) } catch {
            throw DeviceError(
                .inputOutput, stream: stream, cause: "the camera can't be set to video: \(error)",
                cure: "set it to video at the camera, or switch it off and on")
        }
        let name = await link.name
        clipName = name
        var label = name
        if let reply = try? await link.request(.battery, within: options.question),
            let battery = CameraReplies.battery(reply.body)
        {
            label += ", battery \(battery.level) %"
            if battery.level <= Self.lowBattery && !battery.isCharging {
                log.warning("the camera's battery is at \(battery.level) %")
            }
        }
        if storageIsFull {
            throw DeviceError(
                .unsupported, stream: stream, cause: "the camera's card is full",
                cure: "ingest its clips, then delete them")
        }
        return StreamDescription(
            id: stream, kind: .video, deviceKind: Go3SCameraKind.name, deviceIdentity: options.target.identity,
            label: label, nominalRate: nil,
            capabilities: StreamCapabilities(
                producesFile: true, providesAudioTrack: true, requiresIngest: true, supportsPreciseTimestamps: false),
            timestampSource:
                "host time at the acknowledgement of the start, CLOCK_MONOTONIC; the sound track for the rest"
        )
    }

    // MARK: Recording

    package func startClip() async throws -> ClipStart {
        let link = connection()
        var last = "it was never asked"
        for (attempt, patience) in options.start.patience.enumerated() {
            do throws(CameraFault) {
                try await link.up(within: patience)
                let reply = try await begin(link, patience)
                isRecording = true
                let heard = await link.name
                return ClipStart(
                    acknowledged: reply.received, uncertainty: (reply.received - reply.sent) / 2,
                    wall: HostClock.wall - (HostClock.now - reply.received), cameraID: options.target.identity,
                    cameraName: clipName.isEmpty ? heard : clipName)
            } catch {
                last = "\(error)"
                guard error.failure != .final, let pause = options.start.pause(after: attempt) else { break }
                log.warning("attempt \(attempt + 1) to start the camera: \(error)")
                try? await loop.sleep(for: pause)
            }
        }
        throw DeviceError(
            .inputOutput, stream: stream, cause: "the camera didn't start to record: \(last)",
            cure: "see whether its card is full and its battery charged; switch it off and on")
    }

    /// One attempt.
    ///
    /// An answer that was lost is found out by asking what the camera does, so it isn't started twice.
    private func begin(_ link: CameraLink, _ patience: Interval) async throws(CameraFault) -> CameraReply {
        let before = HostClock.now
        let reply: CameraReply
        do throws(CameraFault) {
            reply = try await link.request(.start, within: patience)
        } catch {
            guard error.failure == .recoverable, await isCapturing(link) == true else { throw error }
            // It began somewhere between the request and this answer: a wide anchor, and a true one.
            return CameraReply(body: [], sent: before, received: HostClock.now)
        }
        // Some firmwares acknowledge and don't record.
        if await isCapturing(link) == false {
            try? await loop.sleep(for: .milliseconds(300))
            if await isCapturing(link) == false {
                throw .refused(.start, .error, words: "it acknowledged the start and doesn't record, execute err")
            }
        }
        return reply
    }

    package func stopClip() async -> ClipStop {
        isStopping = true
        defer { (isRecording, isStopping) = (false, false) }
        let link = connection()
        var last = ""
        for (attempt, patience) in options.stop.patience.enumerated() {
            let asked = HostClock.wall
            do throws(CameraFault) {
                try await link.up(within: patience)
                let reply = try await link.request(.stop, within: patience)
                return ClipStop(path: CameraReplies.clipPath(reply.body), wall: asked)
            } catch {
                if error.failure == .alreadyStopped { return ClipStop(wall: asked) }
                // A stop whose answer was lost has stopped all the same.
                if case .timedOut = error, await isCapturing(link) == false { return ClipStop(wall: asked) }
                last = "\(error)"
                guard error.failure != .final, let pause = options.stop.pause(after: attempt) else { break }
                log.warning("attempt \(attempt + 1) to stop the camera: \(error)")
                try? await loop.sleep(for: pause)
            }
        }
        let end = HostClock.now + options.statusPoll
        while HostClock.now < end, await link.isUp {
            if await isCapturing(link) == false { return ClipStop(wall: HostClock.wall) }
            try? await loop.sleep(for: .milliseconds(500))
        }
        return ClipStop(wall: HostClock.wall, failure: "stop_failed: \(last)")
    }

    // MARK: What the camera says by itself

    private func heard(_ news: CameraLink.News) {
        switch news {
        case .notice(.authorization(let result)): decided(result)
        case .notice(.captureStopped) where isRecording && !isStopping:
            sink?.report(.note("camera_self_stopped: the camera ended its recording by itself"))
        case .notice(.batteryLow): sink?.report(.note("the camera's battery is low"))
        case .notice(.storageFull):
            storageIsFull = true
            sink?.report(.note("the camera's card is full"))
        case .notice(.capture(let capture)) where capture.state == 0: storageIsFull = capture.free == 0
        case .notice: break
        case .state(let state, let reason):
            log.info("\(state.rawValue): \(reason)")
            if isRecording, state == .reconnecting { sink?.report(.note("the camera's link was lost: \(reason)")) }
        case .askToWake:
            log.warning("the camera isn't heard: press its power button, or take it out of its dock")
            sink?.report(.note("the camera isn't heard: press its power button, or take it out of its dock"))
        }
    }
}
