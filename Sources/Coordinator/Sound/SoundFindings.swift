package import Protocol

/// What the sound checks of all hosts come to: who hears the leader's chirps how well, and which preset suits this room.
///
/// Pure.
package struct SoundFindings: Sendable, Hashable {
    /// Sound over noise in the chirp's band that a take's chirp must have at a microphone, dB: five times the amplitude,
    /// as SyncField's event detector wants it.
    package static let least = 15.0

    /// For a person, by host: "host_audio hears ultrasonic at 34 dB, audible at 41 dB".
    package private(set) var facts: [HostID: [String]] = [:]
    /// What stands against the take's own preset, a sentence each with cause and cure.
    package private(set) var problems: [HostID: [String]] = [:]
    /// Which preset to take, when the take's own isn't heard everywhere and another one is.
    package private(set) var advice: String?
    /// The presets that every host with a microphone hears well enough.
    package private(set) var suited: [ChirpPreset] = []

    /// - Parameters:
    ///   - reports: of the hosts that were asked; a host without a microphone has no hearings.
    ///   - leader: the host that played.
    ///   - preset: the take's.
    ///   - tried: the presets that were played.
    package init(
        _ reports: [HostID: SoundCheckReport], leader: HostID, preset: ChirpPreset, tried: [ChirpPreset]
    ) {
        let hosts = reports.keys.sorted()
        if let error = reports[leader]?.error {
            problems[leader, default: []].append("the sound check played nothing: \(error)")
            return
        }
        suited = tried.filter { candidate in
            hosts.allSatisfy { host in
                let hearings = reports[host]?.hearings.filter { $0.preset == candidate } ?? []
                return hearings.isEmpty || hearings.contains { Self.isGood($0) }
            } && reports.values.contains { $0.hearings.contains { $0.preset == candidate } }
        }
        let other = suited.first { $0 != preset }
        for host in hosts {
            guard let report = reports[host] else { continue }
            if let error = report.error { problems[host, default: []].append("its sound check failed: \(error)") }
            facts[host] = Self.facts(report)
            guard !report.hearings.isEmpty else {
                if report.error == nil {
                    facts[host] = ["no microphone: only the network clock aligns this host"]
                }
                continue
            }
            let mine = report.hearings.filter { $0.preset == preset }
            guard !mine.isEmpty, !mine.contains(where: { Self.isGood($0) }) else { continue }
            problems[host, default: []] += mine.map { Self.problem($0, leader: leader, other: other) }
        }
        if !suited.contains(preset), let other, problems.values.contains(where: { !$0.isEmpty }) {
            advice = "'\(other.rawValue)' is heard by every microphone here, '\(preset.rawValue)' isn't"
        }
    }

    /// What the take's chirp will have at the microphone, dB.
    private static func expected(_ hearing: SoundCheckReport.Hearing) -> Double {
        (hearing.signalToNoise ?? -.infinity) + ChirpSpec.probeHeadroom
    }

    private static func isGood(_ hearing: SoundCheckReport.Hearing) -> Bool {
        hearing.isHeard && expected(hearing) >= least
    }

    private static func facts(_ report: SoundCheckReport) -> [String] {
        var streams: [StreamID] = []
        for hearing in report.hearings where !streams.contains(hearing.stream) { streams.append(hearing.stream) }
        return streams.map { stream in
            let words = report.hearings.filter { $0.stream == stream }.map { hearing in
                hearing.isHeard
                    ? "hears \(hearing.preset.rawValue) at \(whole(expected(hearing))) dB over the noise"
                    : "doesn't hear \(hearing.preset.rawValue)"
            }
            return "\(stream) \(words.joined(separator: ", "))"
        }
    }

    private static func problem(_ hearing: SoundCheckReport.Hearing, leader: HostID, other: ChirpPreset?) -> String {
        let instead = other.map { ", or record with --chirp \($0.rawValue), which is heard here" } ?? ""
        let name = "microphone \(hearing.stream)"
        if !hearing.isHeard, let limit = hearing.limit { return "\(name): \(limit)" }
        let preset = hearing.preset.rawValue
        if hearing.isHeard {
            return
                "\(name) will hear the \(preset) chirps of host \(leader) at about \(whole(expected(hearing))) dB over "
                + "the noise, and \(whole(least)) are needed; turn that speaker up or bring it nearer\(instead)"
        }
        let level = hearing.noise.map { " (noise in its band: \(whole($0)) dB of full scale)" } ?? ""
        return
            "\(name) doesn't hear the \(preset) sweep of host \(leader)\(level); see that the speaker is on and loud, "
            + "and the microphone neither muted nor covered\(instead)"
    }

    private static func whole(_ value: Double) -> String {
        value.isFinite ? "\(Int(min(max(value, -999), 999).rounded()))" : "no"
    }
}
