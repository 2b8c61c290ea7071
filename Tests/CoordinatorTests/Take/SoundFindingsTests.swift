internal import Coordinator
internal import Protocol
internal import Testing

/// What the hearings of several hosts come to.
@Suite struct SoundFindingsTests {
    private static let left = HostID(unchecked: "left")
    private static let right = HostID(unchecked: "right")
    private static let take = UniqueID(unchecked: String(repeating: "a", count: 32))

    /// A hearing of a probe, which is 18 dB quieter than a chirp; nil: not heard.
    private static func hearing(
        _ preset: ChirpPreset, _ ratio: Double?, limit: String? = nil
    ) -> SoundCheckReport.Hearing {
        SoundCheckReport.Hearing(
            stream: StreamID(unchecked: "mic"), preset: preset, isHeard: ratio != nil, signalToNoise: ratio ?? -3,
            noise: -55, limit: limit)
    }

    private static func findings(
        _ reports: [HostID: [SoundCheckReport.Hearing]], preset: ChirpPreset = .ultrasonic
    ) -> SoundFindings {
        SoundFindings(
            reports.mapValues { SoundCheckReport(take: take, hearings: $0) }, leader: left, preset: preset,
            tried: [.ultrasonic, .audible])
    }

    @Test func `All is well when each host has a microphone that hears the leader`() {
        // 0 dB of the probe are 18 of the chirp, and 15 are needed.
        let findings = Self.findings([
            Self.left: [Self.hearing(.ultrasonic, 30), Self.hearing(.audible, 35)],
            Self.right: [Self.hearing(.ultrasonic, 0), Self.hearing(.audible, 20)],
        ])
        #expect(findings.problems.isEmpty && findings.advice == nil)
        #expect(findings.suited == [.ultrasonic, .audible])
        #expect(
            findings.facts[Self.right]
                == ["mic hears ultrasonic at 18 dB over the noise, hears audible at 38 dB over the noise"])
    }

    @Test func `A preset that is heard everywhere is advised instead of one that isn't`() {
        let findings = Self.findings([
            Self.left: [Self.hearing(.ultrasonic, 30), Self.hearing(.audible, 35)],
            Self.right: [
                Self.hearing(.ultrasonic, nil, limit: "this microphone can't hear it: at 16000 Hz nothing"),
                Self.hearing(.audible, 20),
            ],
        ])
        #expect(
            findings.problems == [Self.right: ["microphone mic: this microphone can't hear it: at 16000 Hz nothing"]])
        #expect(findings.suited == [.audible])
        #expect(findings.advice == "'audible' is heard by every microphone here, 'ultrasonic' isn't")
    }

    @Test func `What is too weak, and what isn't heard, is said with a cure`() throws {
        let findings = Self.findings([
            Self.left: [Self.hearing(.ultrasonic, -9), Self.hearing(.audible, nil)],
            Self.right: [Self.hearing(.ultrasonic, nil), Self.hearing(.audible, nil)],
        ])
        let weak = try #require(findings.problems[Self.left]?.first)
        #expect(weak.contains("at about 9 dB over the noise, and 15 are needed; turn that speaker up"))
        let deaf = try #require(findings.problems[Self.right]?.first)
        #expect(
            deaf.contains("doesn't hear the ultrasonic sweep of host left (noise in its band: -55 dB of full scale)"))
        #expect(deaf.contains("the microphone neither muted nor covered"))
        #expect(findings.advice == nil && findings.suited.isEmpty)
    }

    @Test func `A host without a microphone isn't blamed`() {
        let findings = Self.findings([Self.left: [Self.hearing(.ultrasonic, 30)], Self.right: []])
        #expect(findings.problems.isEmpty)
        #expect(findings.facts[Self.right] == ["no microphone: only the network clock aligns this host"])
    }

    @Test func `When nothing was played, that is the one problem`() {
        let reports = [
            Self.left: SoundCheckReport(take: Self.take, hearings: [], source: .silent, error: "the speaker is busy"),
            Self.right: SoundCheckReport(take: Self.take, hearings: [Self.hearing(.ultrasonic, nil)]),
        ]
        let findings = SoundFindings(reports, leader: Self.left, preset: .ultrasonic, tried: [.ultrasonic])
        #expect(findings.problems == [Self.left: ["the sound check played nothing: the speaker is busy"]])
    }
}
