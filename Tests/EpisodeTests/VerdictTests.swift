internal import Episode
internal import Platform
internal import Protocol
internal import TestSupport
internal import Testing
internal import Timing

@Suite struct VerdictTests {
    private func figures(_ change: (inout VerdictFigures) -> Void = { _ in }) -> VerdictFigures {
        var stream = VerdictFigures.Stream(id: "bench.cam", kind: .video, nominalRate: 30, samples: 300)
        stream.firstAfterStart = .milliseconds(20)
        stream.lastBeforeStop = .milliseconds(20)
        stream.largestGap = .milliseconds(34)
        stream.containerFrames = 300
        var host = VerdictFigures.Host(id: "bench", streams: [stream])
        host.clockBound = .microseconds(30)
        host.startChirpHeard = true
        host.stopChirpHeard = true
        var figures = VerdictFigures(session: "s", episode: "e", hosts: [host])
        figures.duration = .seconds(10)
        figures.chirp = .ultrasonic
        change(&figures)
        return figures
    }

    private static func pair(_ first: String, _ second: String, _ opinion: SoundWitness.Pair.Opinion)
        -> SoundWitness.Pair
    {
        SoundWitness.Pair(
            first: first, second: second, opinion: opinion, network: .zero, networkBound: .microseconds(50),
            isOneWay: false, text: "\(first) and \(second): the figures")
    }

    struct Case: Sendable, CustomStringConvertible {
        let description: String
        let color: VerdictColor
        let sentence: String
        let change: @Sendable (inout VerdictFigures) -> Void

        init(
            _ description: String, _ color: VerdictColor, _ sentence: String,
            _ change: @escaping @Sendable (inout VerdictFigures) -> Void
        ) {
            self.description = description
            self.color = color
            self.sentence = sentence
            self.change = change
        }
    }

    /// One thing is wrong at a time; 30 frames a second for 10 s are 300.
    @Test(arguments: [
        Case("one sample less", .green, "") { $0.hosts[0].streams[0].samples = 299 },
        Case("1 % less", .amber, "296 of 300 samples") { $0.hosts[0].streams[0].samples = 296 },
        Case("a fifth less", .red, "19.7 % are lacking") { $0.hosts[0].streams[0].samples = 240 },
        Case("25 Hz more", .amber, "its rate isn't what was promised") { $0.hosts[0].streams[0].samples = 320 },
        Case("no rate promised", .green, "") {
            $0.hosts[0].streams[0].nominalRate = nil
            $0.hosts[0].streams[0].samples = 7
        },
        Case("nothing", .red, "has no samples") { $0.hosts[0].streams[0].samples = 0 },
        Case("dropped 3", .amber, "lost 3 samples") { $0.hosts[0].streams[0].dropped = 3 },
        Case("dropped 30", .red, "lost 30 samples") { $0.hosts[0].streams[0].dropped = 30 },
        Case("gap of 3 frames", .green, "") { $0.hosts[0].streams[0].largestGap = .milliseconds(99) },
        Case("gap", .amber, "a gap of 400 ms") { $0.hosts[0].streams[0].largestGap = .milliseconds(400) },
        Case("long gap", .red, "a gap of 2 s") { $0.hosts[0].streams[0].largestGap = .seconds(2) },
        Case("slow stream", .green, "") {
            $0.hosts[0].streams[0].nominalRate = 1
            $0.hosts[0].streams[0].samples = 10
            $0.hosts[0].streams[0].largestGap = .milliseconds(1_001)
            $0.hosts[0].streams[0].lastBeforeStop = .milliseconds(990)
        },
        Case("late", .amber, "begins 300 ms after the start") {
            $0.hosts[0].streams[0].firstAfterStart = .milliseconds(300)
        },
        Case("very late", .red, "begins 3 s after the start") { $0.hosts[0].streams[0].firstAfterStart = .seconds(3) },
        Case("ends early", .red, "ends 5 s before the stop") { $0.hosts[0].streams[0].lastBeforeStop = .seconds(5) },
        Case("pending", .amber, "still on the camera") {
            $0.hosts[0].streams[0].isPending = true
            $0.hosts[0].streams[0].samples = 0
        },
        Case("unaligned", .amber, "is unaligned: no stamps") {
            $0.hosts[0].streams[0].isAligned = false
            $0.hosts[0].streams[0].unalignedReason = "no stamps"
        },
        Case("rows lack", .red, "has 300 frames and 299 time stamps") { $0.hosts[0].streams[0].rows = 299 },
        Case("truncated", .amber, "is truncated") { $0.hosts[0].streams[0].status = "truncated" },
        Case("failed", .red, "failed") { $0.hosts[0].streams[0].status = "failed" },
        Case("an error", .amber, "replugged") { $0.hosts[0].streams[0].errors = ["replugged"] },
        Case("loose clock", .amber, "may be off by 2 ms") { $0.hosts[0].clockBound = .milliseconds(2) },
        Case("bad clock", .red, "may be off by 30 ms") { $0.hosts[0].clockBound = .milliseconds(30) },
        Case("no clock, chirps", .amber, "its chirps can align it") { $0.hosts[0].clockBound = nil },
        Case("no clock, no chirps", .red, "no chirp is known") {
            $0.hosts[0].clockBound = nil
            $0.hosts[0].startChirpHeard = nil
            $0.hosts[0].stopChirpHeard = nil
            $0.chirp = .off
        },
        Case("no start chirp", .amber, "the start chirp isn't in its sound") { $0.hosts[0].startChirpHeard = false },
        Case("nobody listened", .green, "") { $0.hosts[0].startChirpHeard = nil },
        Case("chirps were off", .green, "") {
            $0.hosts[0].startChirpHeard = false
            $0.chirp = .off
        },
        Case("a deaf microphone", .amber, "start chirp isn't in its sound: nothing over 8000 Hz") {
            $0.hosts[0].startChirpHeard = false
            $0.hosts[0].hearingProblem = "nothing over 8000 Hz"
        },
        Case("clocks agree", .green, "") { $0.witness = SoundWitness(pairs: [pair("bench", "desk", .agree)]) },
        Case("sound says too little", .green, "") {
            $0.witness = SoundWitness(pairs: [pair("bench", "desk", .cannotSay)])
        },
        Case("clocks disagree", .red, "hosts bench and desk: the figures") {
            $0.witness = SoundWitness(pairs: [pair("bench", "desk", .disagree)])
        },
        Case("one clock against two", .red, "host desk: it is the one that sound contradicts") {
            $0.witness = SoundWitness(pairs: [
                pair("bench", "desk", .disagree), pair("bench", "ego", .agree), pair("desk", "ego", .disagree),
            ])
        },
        Case("missing, strict", .red, "host bench is missing") { $0.hosts[0].missing = "no answer" },
        Case("missing, warn", .amber, "host bench is missing") {
            $0.hosts[0].missing = "no answer"
            $0.policy = .warn
        },
        Case("missing, allowed", .green, "") {
            $0.hosts[0].missing = "no answer"
            $0.policy = .allow
        },
        Case("recovered", .amber, "its program died") { $0.hosts[0].isRecovered = true },
        Case("suspended", .amber, "it slept") { $0.hosts[0].events = ["it slept for 3 s"] },
        Case("hash", .red, "another content") { $0.findings = ["x has another content (sha256)"] },
        Case("no end", .amber, "aren't both known") { $0.duration = nil },
        Case("wild figures", .red, "") {
            $0.hosts[0].streams[0].nominalRate = .infinity
            $0.hosts[0].streams[0].samples = .max
            $0.hosts[0].streams[0].largestGap = .nanoseconds(.max)
            $0.hosts[0].streams[0].firstAfterStart = .nanoseconds(.min)
            $0.hosts[0].clockBound = .nanoseconds(.max)
        },
    ])
    func oneThingAtATime(_ one: Case) {
        let verdict = VerdictRules().judge(figures(one.change))
        #expect(verdict.color == one.color, "\(verdict.sentences)")
        if !one.sentence.isEmpty {
            #expect(verdict.sentences.contains { $0.contains(one.sentence) }, "\(verdict.sentences)")
        }
        if one.color == .green { #expect(verdict.sentences.isEmpty) }
    }

    @Test func theFileHasItsKeys() throws {
        let folder = try TemporaryFolder()
        try VerdictRules().judge(figures()).write(to: "\(folder.path)/verdict.json")
        #expect(
            String(decoding: try Files.read("\(folder.path)/verdict.json"), as: UTF8.self) == """
                {
                  "color" : "green",
                  "duration_s" : 10,
                  "episode" : "e",
                  "hosts" : [
                    {
                      "clock_bound_us" : 30,
                      "color" : "green",
                      "host_id" : "bench",
                      "reasons" : [

                      ],
                      "streams" : [
                        {
                          "color" : "green",
                          "dropped" : 0,
                          "expected" : 300,
                          "first_after_start_ms" : 20,
                          "kind" : "video",
                          "largest_gap_ms" : 34,
                          "reasons" : [

                          ],
                          "samples" : 300,
                          "stream_id" : "bench.cam"
                        }
                      ]
                    }
                  ],
                  "reasons" : [

                  ],
                  "session_id" : "s"
                }

                """)
    }

    @Test func namesAreNoMarkup() {
        let verdict = VerdictRules().judge(
            figures {
                $0.session = "<script>alert('x')</script>"
                $0.hosts[0].missing = "a < b & \"c\""
            })
        let html = VerdictReport.html(verdict)
        #expect(!html.contains("<script"))
        #expect(html.contains("&lt;script&gt;alert(&#39;x&#39;)"))
        #expect(html.contains("a &lt; b &amp; &quot;c&quot;"))
        #expect(!html.contains("http"))
    }
}
