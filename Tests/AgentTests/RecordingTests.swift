internal import Devices
internal import Episode
internal import Platform
internal import Protocol
internal import TestSupport
internal import Testing
internal import Timing

@testable internal import Agent

/// Makers of samples; instants in seconds.
enum Samples {
    static func at(_ seconds: Double) -> Timestamp<HostTime> { Timestamp(nanoseconds: 0) + .seconds(seconds) }

    static func row(_ seconds: Double) -> Sample {
        Sample(payload: .values([1]), capture: at(seconds), uncertainty: .zero, arrival: at(seconds))
    }

    static func frame(_ seconds: Double, bytes: Int) -> Sample {
        Sample(
            payload: .frame(FrameBytes([UInt8](repeating: 0, count: bytes)), isKey: true), capture: at(seconds),
            uncertainty: .zero, arrival: at(seconds))
    }

    /// Each sample frame holds its own number, so that a cut can be checked.
    static func sound(_ seconds: Double, first: Int16, frames: Int) -> Sample {
        let values = (0..<frames).map { first &+ Int16(truncatingIfNeeded: $0) }
        return Sample(
            payload: .audio(
                values.flatMap { [UInt8(truncatingIfNeeded: $0), UInt8(truncatingIfNeeded: $0 >> 8)] }, frames: frames),
            capture: at(seconds), uncertainty: .zero, arrival: at(seconds), device: Timestamp(nanoseconds: 7),
            sequence: 9)
    }
}

struct StampGateTests {
    private static let format = AudioFormat(encoding: .s16, rate: 1000, channels: 1)

    @Test(
        "samples with T0 ≤ capture < T1 are inside",
        arguments: [(9.999999999, "before"), (10, "inside"), (19.999999999, "inside"), (20, "after"), (21, "after")])
    func instants(_ seconds: Double, _ expected: String) {
        var gate = StampGate(start: Samples.at(10), stop: Samples.at(20))
        let verdict = gate.judge(Samples.row(seconds))
        let word =
            switch verdict {
            case .before: "before"
            case .inside: "inside"
            case .cut: "cut"
            case .after: "after"
            }
        #expect(word == expected)
        #expect(gate.isPassed == (expected == "after"))
    }

    /// Blocks of 100 sample frames at 1 kHz: frame i is taken i ms after the block's stamp.
    @Test(
        "sound is cut at the sample frame",
        arguments: [
            // the block's stamp in ms, and which of its frames lie in [10 000 ms, 10 250 ms)
            (9_900.0, 0, 0), (9_900.5, 100, 100), (9_901.0, 99, 100), (9_950.0, 50, 100), (9_950.5, 50, 100),
            (9_999.0, 1, 100), (10_000.0, 0, 100), (10_150.0, 0, 100), (10_151.0, 0, 99), (10_200.5, 0, 50),
            (10_249.0, 0, 1), (10_250.0, 0, 0), (10_300.0, 0, 0),
        ])
    func cuts(_ stamp: Double, _ first: Int, _ end: Int) throws {
        var gate = StampGate(start: Samples.at(10), stop: Samples.at(10.25), audio: Self.format)
        let verdict = gate.judge(Samples.sound(stamp / 1000, first: 0, frames: 100))
        let kept: Sample?
        switch verdict {
        case .before, .after: kept = nil
        case .inside(let sample), .cut(let sample): kept = sample
        }
        // 9 900.5 ms + 99 ms is before T0: nothing of that block is inside.
        guard end > first else {
            #expect(kept == nil)
            return
        }
        let sample = try #require(kept)
        guard case .audio(let bytes, let frames) = sample.payload else { throw AgentFixture.Unexpected() }
        #expect(frames == end - first)
        #expect(bytes.count == 2 * frames)
        #expect(Int(bytes[0]) == first)
        #expect(sample.capture == Samples.at(stamp / 1000 + Double(first) / 1000))
        #expect((sample.device == nil) == (first > 0))
    }

    @Test("blocks of any place and length give exactly the frames between T0 and T1, each once")
    func seamless() {
        var generator = SeededGenerator(seed: 11)
        for _ in 0..<200 {
            let rate = [8_000, 44_100, 48_000, 192_000][Int.random(in: 0..<4, using: &generator)]
            let start = Timestamp<HostTime>(
                nanoseconds: Int64.random(in: 1_000_000_000...2_000_000_000, using: &generator))
            let length = Int64.random(in: 1...40_000_000, using: &generator)
            var gate = StampGate(
                start: start, stop: start + .nanoseconds(length),
                audio: AudioFormat(encoding: .s16, rate: rate, channels: 1))
            var frame = 0
            var kept = 0
            let base = start - .milliseconds(20)
            while !gate.isPassed {
                let count = Int.random(in: 1...2000, using: &generator)
                let stamp = base + .seconds(Double(frame) / Double(rate))
                let sample = Sample(
                    payload: .audio([UInt8](repeating: 0, count: 2 * count), frames: count), capture: stamp,
                    uncertainty: .zero, arrival: stamp)
                switch gate.judge(sample) {
                case .inside(let part), .cut(let part): kept += Int(SampleRing.weight(part))
                case .before, .after: break
                }
                frame += count
            }
            // By arithmetic: frames in a stretch of `length`, give or take the one at each end.
            let expected = Double(length) / 1e9 * Double(rate)
            #expect(abs(Double(kept) - expected) <= 1)
        }
    }

    @Test("wild stamps and formats don't crash")
    func wild() {
        for capture in [Int64.min, -1, 0, .max - 1, .max] {
            for rate in [0, 1, 48_000, Int.max] {
                var gate = StampGate(
                    start: Samples.at(1), stop: Timestamp(nanoseconds: .max),
                    audio: AudioFormat(encoding: .s16, rate: rate, channels: 1))
                let sample = Sample(
                    payload: .audio([0, 0], frames: 1), capture: Timestamp(nanoseconds: capture), uncertainty: .zero,
                    arrival: Timestamp(nanoseconds: capture))
                _ = gate.judge(sample)
            }
        }
    }
}

struct SampleRingTests {
    private func all(_ ring: SampleRing) -> [Double] {
        ring.take(atMost: 100_000).entries.compactMap {
            if case .sample(let sample) = $0 { (sample.capture - Samples.at(0)).seconds } else { nil }
        }
    }

    @Test("before a take the newest two seconds are kept, and nothing is counted as lost")
    func preroll() {
        let ring = SampleRing()
        for i in 0..<1000 { ring.deliver(Samples.row(Double(i) / 100)) }
        ring.beginTake(at: Samples.at(9.5)) {}
        let (lost, entries) = ring.take(atMost: 10_000)
        #expect(lost == nil)
        // From 9.99 s back to 7.99 s, both included, each 10 ms.
        #expect(entries.count == 201)
        #expect(ring.arrivals.samples == 1000)
    }

    @Test("before a take the bytes are bounded")
    func idleBytes() {
        var limits = SampleRing.Limits()
        limits.idleBytes = 10_000
        let ring = SampleRing(limits: limits)
        for i in 0..<100 { ring.deliver(Samples.frame(Double(i) / 1000, bytes: 872)) }
        // 872 bytes and 128 for the entry.
        #expect(ring.bytes == 10_000)
    }

    @Test("in a take an overflow is counted and located, from T0 on only")
    func overflow() {
        var limits = SampleRing.Limits()
        limits.count = 10
        let ring = SampleRing(limits: limits)
        ring.beginTake(at: Samples.at(1.005)) {}
        for i in 100..<120 { ring.deliver(Samples.row(Double(i) / 100)) }
        let (lost, entries) = ring.take(atMost: 100)
        // 1.00 … 1.09 had to go; 1.00 was before T0.
        #expect(lost == SampleRing.Overflow(count: 9, from: Samples.at(1.01), last: Samples.at(1.09)))
        #expect(entries.count == 10)
        #expect(ring.take(atMost: 1).lost == nil)
    }

    @Test("lost sound is counted in sample frames")
    func audioOverflow() {
        var limits = SampleRing.Limits()
        limits.count = 1
        let ring = SampleRing(limits: limits)
        ring.beginTake(at: Samples.at(0)) {}
        for i in 0..<3 { ring.deliver(Samples.sound(Double(i), first: 0, frames: 480)) }
        #expect(ring.take(atMost: 9).lost?.count == 960)
    }

    @Test("samples and events come out in order, in batches")
    func order() {
        let ring = SampleRing()
        ring.beginTake(at: Samples.at(0)) {}
        for i in 0..<3000 { ring.deliver(Samples.row(Double(i) / 1000)) }
        ring.report(.note("here"))
        var seen: [Double] = []
        while true {
            let entries = ring.take(atMost: 7).entries
            if entries.isEmpty { break }
            for case .sample(let sample) in entries { seen.append((sample.capture - Samples.at(0)).seconds) }
        }
        #expect(seen.count == 3000)
        #expect(seen == seen.sorted())
        #expect(ring.bytes == 0)
    }

    @Test("the writer is woken once until it has found the ring empty")
    func wakes() async {
        await confirmation(expectedCount: 2) { woken in
            let ring = SampleRing()
            ring.beginTake(at: Samples.at(0)) { woken() }
            for i in 0..<10 { ring.deliver(Samples.row(Double(i))) }
            _ = all(ring)
            #expect(all(ring).isEmpty)
            ring.deliver(Samples.row(11))
        }
    }
}

struct WatchTests {
    private func at(_ seconds: Double) -> Timestamp<HostTime> { Samples.at(seconds) }

    @Test("a stall is max(1 s, 5 periods)", arguments: [(30.0, 1.0), (2.0, 2.5), (0.5, 10.0), (48_000, 1.0)])
    func thresholds(_ rate: Double, _ seconds: Double) {
        #expect(StallWatch(rate: rate, start: at(0)).threshold == .seconds(seconds))
    }

    @Test("a stall and its end are told once each")
    func stall() {
        var watch = StallWatch(rate: 30, start: at(0))
        #expect(watch.look(lastArrival: at(0.4), at: at(0.5)) == nil)
        #expect(watch.look(lastArrival: at(0.4), at: at(1.3)) == nil)
        #expect(watch.look(lastArrival: at(0.4), at: at(1.5)) == .stalled(silentFor: .seconds(1.1)))
        #expect(watch.look(lastArrival: at(0.4), at: at(3)) == nil)
        #expect(watch.isStalled)
        #expect(watch.look(lastArrival: at(3.4), at: at(3.5)) == .recovered(after: .seconds(3)))
        #expect(watch.look(lastArrival: at(3.6), at: at(3.7)) == nil)
    }

    @Test("a device that never delivers is stalled too")
    func never() {
        var watch = StallWatch(rate: nil, start: at(5))
        #expect(watch.look(lastArrival: nil, at: at(5.9)) == nil)
        #expect(watch.look(lastArrival: nil, at: at(6)) == .stalled(silentFor: .seconds(1)))
    }

    @Test("the rate is that of about the last second")
    func rate() {
        var meter = RateMeter()
        #expect(meter.rate == 0)
        // 30 a second for 5 s, then 10 a second for 2 s, read four times a second.
        var count = 0.0
        for step in 0...28 {
            let t = Double(step) / 4
            if step > 0 { count += (t <= 5 ? 30 : 10) / 4 }
            meter.note(Int64(count), at: at(t))
            if t == 5 { #expect(abs(meter.rate - 30) < 1) }
        }
        #expect(abs(meter.rate - 10) < 1)
        meter.note(0, at: at(8))
        #expect(meter.rate == 0)
    }

    @Test("a set wall clock and a suspend are told apart")
    func clocks() {
        // Nobody has told the kernel the leap seconds.
        var tai = 0.0
        func look(_ watch: inout ClockWatch, _ monotonic: Double, wall: Double, boot: Double) -> [ClockWatch.Finding] {
            watch.look(
                monotonic: at(monotonic), wall: Timestamp(nanoseconds: 0) + .seconds(wall),
                boottimeNanoseconds: Interval.seconds(boot).nanoseconds,
                taiNanoseconds: Interval.seconds(wall + tai + 0.000_001).nanoseconds)
        }
        var watch = ClockWatch()
        #expect(look(&watch, 1, wall: 1001, boot: 1).isEmpty)
        // NTP slews by up to 0.5 ms a second.
        #expect(look(&watch, 2, wall: 1002.0005, boot: 2).isEmpty)
        #expect(look(&watch, 3, wall: 1000.0005, boot: 3) == [.stepped(.seconds(-3))])
        // Asleep for a minute: both other clocks went on.
        #expect(look(&watch, 4, wall: 1061.0005, boot: 64) == [.suspended(.seconds(60))])
        #expect(look(&watch, 5, wall: 1062.0005, boot: 65).isEmpty)
        // A PTP daemon came: it tells them, and sets the clock from TAI to UTC.
        tai = 37
        #expect(look(&watch, 6, wall: 1063.0005, boot: 66) == [.leapSeconds(from: 0, to: 37)])
        #expect(look(&watch, 7, wall: 1027.0005, boot: 67) == [.stepped(.seconds(-37))])
        #expect(WallClockRule.name(of: .seconds(-37))?.hasPrefix("TAI minus UTC") == true)
    }

    @Test("levels of known signals", arguments: AudioFormat.Encoding.allCases)
    func levels(_ encoding: AudioFormat.Encoding) {
        // Full-scale halves, alternating: rms and peak are both 0.5.
        let half: [UInt8]
        let minus: [UInt8]
        switch encoding {
        case .s16: (half, minus) = ([0x00, 0x40], [0x00, 0xC0])
        case .s24: (half, minus) = ([0x00, 0x00, 0x40], [0x00, 0x00, 0xC0])
        case .s32: (half, minus) = ([0x00, 0x00, 0x00, 0x40], [0x00, 0x00, 0x00, 0xC0])
        case .f32: (half, minus) = ([0x00, 0x00, 0x00, 0x3F], [0x00, 0x00, 0x00, 0xBF])
        }
        var level = AudioLevel()
        level.add((0..<100).flatMap { $0 % 2 == 0 ? half : minus }, encoding)
        #expect(level.rms == 0.5)
        #expect(level.peak == 0.5)
        #expect(AudioLevel().rms == 0)
    }
}
