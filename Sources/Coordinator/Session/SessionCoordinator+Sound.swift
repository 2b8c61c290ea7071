internal import Platform
internal import Protocol
internal import Timing
internal import Transport

// Whether the chirps will be heard, asked of the microphones before a take.
extension SessionCoordinator {
    /// From the request to the first sweep: the requests' way, and the speaker's own start.
    private static let soundLead = Interval.milliseconds(1_200)
    /// From one sweep to the next: 250 ms of it, its echoes, and the start of the speaker.
    private static let soundSpacing = Interval.milliseconds(1_000)

    /// Lets the leader play quiet sweeps, and asks all hosts what they heard; the hosts are armed with this take.
    ///
    /// - Parameters:
    ///   - settings: of the take.
    ///   - hosts: those that are armed.
    ///   - presets: what is played, in this order; those without a chirp are left out.
    /// - Returns: what stands against the take's chirps, and for whom.
    func checkSound(_ settings: TakeSettings, hosts: [HostID], presets: [ChirpPreset]) async -> SoundFindings {
        let specs = presets.compactMap { preset in
            (preset == .custom ? settings.chirpSpec : preset.startSpec).map { (preset, $0) }
        }
        let begin = HostClock.rigNow + Self.soundLead
        var reports: [HostID: SoundCheckReport] = [:]
        await withTaskGroup(of: (HostID, SoundCheckReport).self) { group in
            for host in hosts {
                guard let link = link(to: host), let mapping = clocks.mapping(of: host, at: begin) else {
                    reports[host] = SoundCheckReport(
                        take: settings.take, hearings: [], error: "its clock isn't known, so it can't be told when")
                    continue
                }
                let probes = specs.enumerated().map { index, spec in
                    SoundCheckCommand.Probe(
                        preset: spec.0, spec: spec.1.probe,
                        at: mapping.map(begin + Self.soundSpacing * Int64(index)))
                }
                let command = SoundCheckCommand(
                    take: settings.take, plays: host == settings.leader, probes: probes)
                let length = Self.soundLead + Self.soundSpacing * Int64(specs.count)
                group.addTask {
                    do {
                        let answer = try await link.request(.soundCheck(command), timeout: length + .seconds(5))
                        if case .soundChecked(let report) = answer { return (host, report) }
                        throw LinkError.closed
                    } catch {
                        let text = Self.withoutName("\(error)", host)
                        return (host, SoundCheckReport(take: settings.take, hearings: [], error: text))
                    }
                }
            }
            for await (host, report) in group { reports[host] = report }
        }
        return SoundFindings(
            reports, leader: settings.leader, preset: settings.chirp, tried: specs.map { $0.0 })
    }
}
