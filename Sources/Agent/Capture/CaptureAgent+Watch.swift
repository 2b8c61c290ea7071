internal import Episode
internal import Platform
internal import Protocol
internal import Timing

/// Looking after the streams, the disk, the clocks and the lease, some times a second; and the figures for the table.
extension CaptureAgent {
    private static let interval = Interval.milliseconds(250)

    func scheduleTick() {
        tickTimer = loop.schedule(at: HostClock.now + Self.interval) { [weak self] in
            self?.assumeIsolated { agent in
                agent.tick()
                agent.scheduleTick()
            }
        }
    }

    private func tick() {
        let now = HostClock.now
        ticks += 1
        for slot in slots where slot.stage == .running { look(at: slot, now) }
        if ticks % 4 == 0 {
            lookAtDisk()
            lookAtClocks()
            tellDrops()
        }
        if let holder = lease.expire(at: now) {
            released("the lease of coordinator '\(holder.name)' ended: nothing was heard from it")
        }
    }

    private func look(at slot: StreamSlot, _ now: Timestamp<HostTime>) {
        let arrivals = slot.recorder.ring.arrivals
        slot.meter.note(arrivals.samples, at: now)
        if let failure = arrivals.failure, slot.error == nil { streamFailed(slot, failure) }
        guard slot.error == nil, let finding = slot.stall?.look(lastArrival: arrivals.last, at: now) else { return }
        switch finding {
        case .stalled(let silence):
            note(.streamStalled, slot.stream, "nothing came for \((silence.seconds * 10).rounded() / 10) s")
        case .recovered(let silence):
            note(.streamRecovered, slot.stream, "it delivers again after \((silence.seconds * 10).rounded() / 10) s")
        }
    }

    // MARK: What the recorders say

    func noticed(_ stream: StreamID, _ notice: StreamRecorder.Notice) {
        guard let slot = slots.first(where: { $0.stream == stream }) else { return }
        switch notice {
        case .firstSample:
            slot.hasFirstSample = true
            checkStreaming()
        case .failed(let text, let diskIsFull):
            streamFailed(slot, text)
            if diskIsFull { handle(.halt(reason: "disk")) }
        case .dropped(let count, _): droppedUntold[stream, default: 0] += count
        case .note(let text): publish(.warning, stream: stream, text)
        }
    }

    func streamFailed(_ slot: StreamSlot, _ text: String) {
        guard slot.error == nil else { return }
        slot.error = text
        note(.streamFailed, slot.stream, text)
        checkStreaming()
        // A device that broke before T0 has no part in the take; the coordinator sees it in the status.
        guard case .recording = machine.phase, slots.allSatisfy({ !$0.isInTake || $0.error != nil }) else { return }
        handle(.halt(reason: "every stream has failed"))
    }

    /// Tells once that every stream of the take has written: the moment for the start chirp.
    func checkStreaming() {
        guard !hasToldStreaming, hasAnchor, case .recording = machine.phase else { return }
        let inTake = slots.filter { $0.isInTake && $0.error == nil }
        guard !inTake.isEmpty, inTake.allSatisfy(\.hasFirstSample) else { return }
        hasToldStreaming = true
        publish(.allStreaming, "\(inTake.count) streams")
    }

    /// Tells the coordinator and the episode.
    private func note(_ kind: HostEvent.Kind, _ stream: StreamID?, _ message: String) {
        publish(kind, stream: stream, message)
        Self.log.warning("\(stream.map { "\($0): " } ?? "")\(message)")
        guard case .recording = machine.phase else { return }
        tell("\(stream.map { "\($0): " } ?? "")\(message)")
        let event = HostManifest.Event(at: HostClock.now, kind: kind.rawValue, message: message, stream: stream)
        enqueue { [scribe] in
            do { try await scribe.note(event) } catch { Self.log.error("\(error)") }
        }
    }

    private func tellDrops() {
        for (stream, count) in droppedUntold.sorted(by: { $0.key < $1.key }) {
            publish(.samplesDropped, stream: stream, "\(count) samples were lost")
        }
        droppedUntold = [:]
    }

    // MARK: Disk and clocks

    private func lookAtDisk() {
        guard let free = try? Files.freeSpace(at: home.episodes) else { return }
        freeBytes = free
        guard let plan = machine.plan, machine.isBusy else { return }
        let reserve = reserveBytes(plan)
        if free <= reserve {
            guard case .recording = machine.phase else { return }
            note(
                .diskLow, nil,
                "\(free / 1_000_000) MB are left, which is the reserve of \(reserve / 1_000_000) MB: the take is stopped"
            )
            handle(.halt(reason: "disk"))
            return
        }
        // A minute's warning.
        let perSecond = slots.reduce(0) { $0 + ($1.description.map(StreamCost.estimate) ?? 0) }
        guard !isDiskLow, case .recording = machine.phase, free - reserve < perSecond * 60 else { return }
        isDiskLow = true
        note(.diskLow, nil, "\((free - reserve) / 1_000_000) MB are left for recording: less than about a minute")
    }

    private func lookAtClocks() {
        let findings = clocks.look(
            monotonic: HostClock.now, wall: HostClock.wall, boottimeNanoseconds: HostClock.boottimeNanoseconds,
            taiNanoseconds: HostClock.taiNanoseconds)
        for finding in findings {
            switch finding {
            case .stepped(let step):
                let name = WallClockRule.name(of: step).map { " (\($0))" } ?? ""
                note(.clockStep, nil, "the wall clock was set by \(step.seconds) s\(name); nothing is timed by it")
            case .leapSeconds(let old, let new):
                note(
                    .clockStep, nil,
                    "the kernel's TAI minus UTC was set from \(old) s to \(new) s; nothing is timed by it")
            case .suspended(let length): note(.suspended, nil, "the machine was suspended for \(length.seconds) s")
            }
        }
    }

    // MARK: Figures

    var status: HostStatus {
        HostStatus(
            state: session.state, take: machine.plan?.take, episode: machine.plan?.episode,
            streams: slots.map(\.status), freeBytes: freeBytes, now: HostClock.now)
    }

    func snapshot() async -> HostSnapshot {
        let episodes = await store.summaries
        return HostSnapshot(
            status: status, plan: machine.plan, commit: machine.commit,
            chirps: chirpReports.values.sorted { $0.moment == .start && $1.moment == .stop }, episodes: episodes)
    }
}
