internal import Acoustics
internal import Devices
internal import Platform
internal import Protocol
internal import Timing

/// What is played and heard beside the take's chirps: the sweeps of a sound check, and the ticks of a countdown.
extension CaptureAgent {
    private static let mostProbes = 4
    /// A speaker's card is started so much before a sound leaves.
    private static let leastLead = Interval.milliseconds(100)
    private static let farthestLead = Interval.seconds(10)

    // MARK: Sound check

    /// Plays and hears the sweeps; the devices of the armed take are used as they are.
    func soundCheck(_ command: SoundCheckCommand) async throws -> SoundCheckReport {
        guard case .armed(let plan, _, _) = machine.phase, plan.take == command.take else {
            throw Refusal(
                .invalidTransition, "host \(host): a sound check needs an armed take, and this host has none of that id"
            )
        }
        let now = HostClock.now
        let probes = command.probes
        let lengths = probes.map { Interval.seconds(min(max($0.spec.durationMilliseconds, 0), 5_000) / 1000) }
        guard let first = probes.first, let last = probes.last,
            probes.count <= Self.mostProbes, zip(probes, probes.dropFirst()).allSatisfy({ $0.at < $1.at }),
            probes.allSatisfy({ $0.spec.objection == nil })
        else {
            throw Refusal(
                .malformed, "host \(host): a sound check has 1 to \(Self.mostProbes) legal sweeps, one after the other")
        }
        guard first.at - now > Self.leastLead, last.at - now < Self.farthestLead else {
            throw Refusal(
                .tooLate,
                "host \(host): the first sweep is due in \((first.at - now).milliseconds) ms; plan it later, or see why "
                    + "the network is slow")
        }
        var report = SoundCheckReport(take: command.take, hearings: [])
        async let played = play(command)
        try await loop.sleep(until: first.at)
        let noise = recent()
        var heard: [(probe: SoundCheckCommand.Probe, recordings: [Recording])] = []
        for (probe, length) in zip(probes, lengths) {
            try await loop.sleep(until: probe.at + length + ProbeEar.lateness + .milliseconds(100))
            heard.append((probe, recent()))
        }
        (report.source, report.error) = await played
        // Not on this thread, which has the heartbeats to answer.
        let (worker, sounds) = (EventLoop(name: "ear"), heard)
        report.hearings = try await worker.run {
            noise.flatMap { recording in
                let ear = ProbeEar(recording.stream, recording.format, noise: recording.samples, before: first.at)
                return sounds.map { probe, recordings in
                    ear.hearing(of: probe, in: recordings.first { $0.stream == recording.stream }?.samples ?? [])
                }
            }
        }
        return report
    }

    /// What a microphone's ring holds.
    private struct Recording: Sendable {
        var stream: StreamID
        var format: AudioFormat
        var samples: [Sample]
    }

    private func recent() -> [Recording] {
        slots.compactMap { slot in
            guard slot.stage == .running, slot.error == nil, let format = slot.description?.audio else { return nil }
            return Recording(stream: slot.stream, format: format, samples: slot.recorder.ring.recent)
        }
    }

    private func play(_ command: SoundCheckCommand) async -> (source: ChirpSource?, error: String?) {
        guard command.plays else { return (nil, nil) }
        guard let speaker = configuration.speaker, let rate = speakerRate else {
            return (.silent, speakerError ?? "host \(host) has no speaker to play with")
        }
        var source: ChirpSource?
        for probe in command.probes {
            do {
                let emission = try await speaker.play(Chirp.samples(probe.spec, rate: rate), at: probe.at)
                source = emission.source
                let late = emission.instant - probe.at
                guard late < ProbeEar.lateness else {
                    return (source, "the speaker played \(late.milliseconds) ms too late; is this host overloaded?")
                }
            } catch {
                return (.silent, "\(error)")
            }
        }
        return (source, nil)
    }

    // MARK: Countdown

    /// Plays a tick for each second that is left; what is too late already is left out.
    func countDown(_ plan: TakePlan, to start: Timestamp<HostTime>) {
        guard plan.role == .leader, let seconds = plan.countdown, seconds > 0, let speaker = configuration.speaker,
            let rate = speakerRate
        else { return }
        // Unstructured: it is cancelled with the take.
        playing.append(
            Task {
                for left in stride(from: min(seconds, 60), through: 1, by: -1) {
                    let instant = start - .seconds(Double(left))
                    guard instant - HostClock.now > Self.leastLead, !Task.isCancelled else { continue }
                    do {
                        _ = try await speaker.play(CountdownTick.samples(remaining: left, rate: rate), at: instant)
                    } catch is CancellationError {
                        return
                    } catch {
                        // A take without a tick is a take.
                        return Self.log.warning("the countdown can't be heard: \(error)")
                    }
                }
            })
    }
}
