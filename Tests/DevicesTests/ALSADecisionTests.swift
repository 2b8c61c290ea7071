internal import Devices
internal import Platform
internal import Protocol
internal import Testing
internal import Timing

/// The sound cards' pure parts.
@Suite struct ALSADecisionTests {
    private static let second: Int64 = 1_000_000_000
    private static func at(_ milliseconds: Int64) -> Timestamp<HostTime> {
        Timestamp(nanoseconds: 100 * second) + .milliseconds(milliseconds)
    }

    private static func status(
        stamp: Timestamp<HostTime>, now: Timestamp<HostTime>, available: Int, delay: Int? = nil
    ) -> PCMStatus {
        PCMStatus(state: .running, stamp: stamp, now: now, available: available, delay: delay ?? available)
    }

    // MARK: Blocks

    @Test func `The first frame of a block is as old as the frames that wait`() {
        var stamper = BlockStamper(rate: 48_000, period: .milliseconds(20), isBatch: false, isMonotonic: true)
        #expect(stamper.update(Self.status(stamp: Self.at(0), now: Self.at(1), available: 1920)).isEmpty)
        // 1920 frames at 48 kHz are 40 ms; the second block of 960 frames begins 20 ms later.
        let first = stamper.stamp(offset: 0, frames: 960)
        #expect(first.capture == Self.at(-40))
        #expect(first.uncertainty == .milliseconds(1))
        #expect(first.device?.nanoseconds == first.capture.nanoseconds)
        #expect(stamper.stamp(offset: 960, frames: 960).capture == Self.at(-20))
        #expect(stamper.end == Self.at(0))
    }

    @Test func `Frames on the way from the converter count, a wild delay doesn't`() {
        for (delay, age) in [(1440, 30), (960 + 48_000, 20), (0, 20), (Int.max, 20), (Int.min, 20)] {
            var stamper = BlockStamper(rate: 48_000, period: .milliseconds(20), isBatch: false, isMonotonic: true)
            _ = stamper.update(Self.status(stamp: Self.at(0), now: Self.at(0), available: 960, delay: delay))
            #expect(stamper.stamp(offset: 0, frames: 960).capture == Self.at(-Int64(age)))
        }
    }

    struct Fallback: Sendable, CustomTestStringConvertible {
        let name: String
        let isMonotonic: Bool
        let stamps: [Int64?]
        let fallsBack: Bool
        var testDescription: String { name }
    }

    /// Stamps in ms against the instants of asking, which are 20 ms apart; nil is zero.
    @Test(arguments: [
        Fallback(name: "good", isMonotonic: true, stamps: [0, 20], fallsBack: false),
        Fallback(name: "zero", isMonotonic: true, stamps: [nil, nil], fallsBack: true),
        Fallback(name: "frozen", isMonotonic: true, stamps: [0, 0], fallsBack: true),
        Fallback(
            name: "since 1970", isMonotonic: true, stamps: [1_700_000_000_000, 1_700_000_000_020], fallsBack: true),
        Fallback(name: "no monotonic stamps", isMonotonic: false, stamps: [0, 20], fallsBack: true),
    ])
    func `A stamp that can't be right is replaced by the instant of reading, and it is said`(_ row: Fallback) {
        var stamper = BlockStamper(
            rate: 48_000, period: .milliseconds(20), isBatch: false, isMonotonic: row.isMonotonic)
        var notes: [String] = []
        var last = (capture: Self.at(0), uncertainty: Interval.zero, device: Timestamp<DeviceTime>?.none)
        for (index, stamp) in row.stamps.enumerated() {
            let now = Self.at(20 * Int64(index) + 1)
            let status = Self.status(
                stamp: stamp.map(Self.at) ?? Timestamp(nanoseconds: 0), now: now, available: 960)
            notes += stamper.update(status)
            last = stamper.stamp(offset: 0, frames: 960)
        }
        // The second block's frames waited 20 ms: it began 20 ms before the stamp (0) or before the reading (1).
        #expect(last.capture == Self.at(row.fallsBack ? 1 : 0))
        #expect((last.device == nil) == row.fallsBack)
        #expect(notes.count == (row.fallsBack ? 1 : 0))
        #expect(last.uncertainty >= (row.fallsBack ? .milliseconds(20) : .milliseconds(1)))
    }

    @Test func `Stamps that jump about make the uncertainty wider`() {
        var stamper = BlockStamper(rate: 48_000, period: .milliseconds(20), isBatch: false, isMonotonic: true)
        // A position in steps of 4 ms, as a timer of 250 Hz makes.
        for (index, error) in [0, 3, 1, 4, 0].enumerated() {
            let now = Self.at(20 * Int64(index) + Int64(error))
            _ = stamper.update(Self.status(stamp: now, now: now, available: 960))
            _ = stamper.stamp(offset: 0, frames: 960)
        }
        let now = Self.at(100)
        _ = stamper.update(Self.status(stamp: now, now: now, available: 960))
        let last = stamper.stamp(offset: 0, frames: 960)
        #expect(last.uncertainty > .nanoseconds(3_700_000) && last.uncertainty < .microseconds(4_100))
    }

    @Test func `A card whose position moves by periods is known to a period`() {
        var stamper = BlockStamper(rate: 48_000, period: .milliseconds(20), isBatch: true, isMonotonic: true)
        _ = stamper.update(Self.status(stamp: Self.at(0), now: Self.at(0), available: 960))
        #expect(stamper.stamp(offset: 0, frames: 960).uncertainty == .milliseconds(20))
    }

    // MARK: Emissions

    private static func shape(isBatch: Bool = false, isMonotonic: Bool = true) -> PCMShape {
        PCMShape(
            format: AudioFormat(encoding: .s16, rate: 48_000, channels: 2), isPadded: false, periodFrames: 480,
            bufferFrames: 19_200, isBatch: isBatch, isMonotonic: isMonotonic)
    }

    @Test func `An emission is where the position and its stamp put the frame`() {
        var estimate = EmissionEstimate(of: 4800, Self.shape())
        // Frame 0 left at 0 ms, so frame 4800 leaves at 100 ms; the position is told up to 2 ms late, and once, by a busy
        // machine, 300 ms late.
        for (instant, lag) in [(0, 0), (10, 2), (20, 1), (330, 300), (340, 2)] as [(Int64, Int64)] {
            let position = Int((instant - lag) * 48)
            estimate.take(
                Self.status(
                    stamp: Self.at(instant), now: Self.at(instant + 1), available: 0, delay: 9600 - position),
                written: 9600)
        }
        #expect(
            estimate.emission
                == Emission(instant: Self.at(100), uncertainty: .milliseconds(2), source: .hardware))
    }

    @Test(arguments: ["no stamps", "frozen", "other clock", "jumping"])
    func `A card without a usable clock is said to be one`(what: String) {
        var estimate = EmissionEstimate(of: 0, Self.shape(isMonotonic: what != "other clock"))
        for index in 0..<3 as Range<Int64> {
            let stamp =
                switch what {
                case "no stamps": Timestamp<HostTime>(nanoseconds: 0)
                case "frozen": Self.at(5)
                default: Self.at(10 * index)
                }
            let position = what == "jumping" ? Int(index * index * 4800) : Int(10 * index * 48)
            estimate.take(
                Self.status(stamp: stamp, now: Self.at(10 * index), available: 0, delay: 4800 - position), written: 4800
            )
        }
        #expect(estimate.emission?.source == .softwareFallback)
        #expect((estimate.emission?.uncertainty ?? .zero) >= .milliseconds(10))
    }

    // MARK: Samples, names, faults

    @Test func `Samples become a card's bytes`() {
        // 0.5 × 32767 = 16383.5, rounded away from zero: 0x4000; −1 is −32767 = 0x8001.
        #expect(
            PCMSamples.bytes([0.5, -1, .nan], .s16, channels: 2, isPadded: false)
                == [0x00, 0x40, 0x00, 0x40, 0x01, 0x80, 0x01, 0x80, 0, 0, 0, 0])
        // 8388607 = 0x7FFFFF; in four bytes the sign goes on: −8388607 = 0xFF800001.
        #expect(PCMSamples.bytes([7], .s24, channels: 1, isPadded: false) == [0xFF, 0xFF, 0x7F])
        #expect(PCMSamples.bytes([-7], .s24, channels: 1, isPadded: true) == [0x01, 0x00, 0x80, 0xFF])
        #expect(PCMSamples.bytes([1], .s32, channels: 1, isPadded: false) == [0xFF, 0xFF, 0xFF, 0x7F])
        // IEEE 754: 0.5 is 0x3F000000.
        #expect(PCMSamples.bytes([0.5], .f32, channels: 1, isPadded: false) == [0, 0, 0, 0x3F])
        #expect(PCMSamples.packed([1, 2, 3, 0xFF, 4, 5, 6, 0]) == [1, 2, 3, 4, 5, 6])
    }

    @Test func `A card's bytes become one channel's samples`() {
        // 0x4000 = 16384/32768; 0x8001 = −32767/32768.
        #expect(
            PCMSamples.channel(2, of: [1, 0, 0x00, 0x40, 9, 9, 0x01, 0x80], .s16, channels: 2) == [0.5, -0.999_969_5])
        // 0x400000 of 2^23, −1 of 2^31, and 0.5, an infinity.
        #expect(PCMSamples.channel(1, of: [0, 0, 0x40], .s24, channels: 1) == [0.5])
        #expect(PCMSamples.channel(1, of: [0, 0, 0, 0x80], .s32, channels: 1) == [-1])
        #expect(PCMSamples.channel(1, of: [0, 0, 0, 0x3F, 0, 0, 0x80, 0x7F], .f32, channels: 1) == [0.5, 0])
        #expect(PCMSamples.channel(3, of: [1, 0], .s16, channels: 1).isEmpty)
    }

    @Test(arguments: [
        ("Loopback", true), ("UAC1Gadget", true), ("PCH_1", true), ("0", false), ("12", false), ("", false),
        ("a,b", false), ("hw:0", false), ("sixteen_letters_", false),
    ])
    func `A card is named by its id, never by its number`(text: String, isLegal: Bool) {
        #expect(PCMName.isCardID(text) == isLegal)
    }

    @Test(
        arguments: [
            (16, .open, .busy, "held by process 9 (pipewire)"), (13, .open, .accessDenied, "may not use"),
            (19, .open, .notFound, "isn't attached"), (19, .read, .disconnected, "unplugged"),
            (77, .read, .disconnected, "unplugged"), (22, .format, .unsupported, "can't do what was asked"),
            (5, .read, .inputOutput, "fails at reading"),
        ] as [(Int32, ALSAFault.Operation, DeviceError.Code, String)])
    func `Each errno is a sentence with cause and cure`(
        errno: Int32, operation: ALSAFault.Operation, code: DeviceError.Code, cause: String
    ) {
        let fault = ALSAFault(
            Errno(rawValue: errno), during: operation, name: "hw:CARD=Mic,DEV=0", cards: { ["'Loopback' (device 1)"] },
            holder: { "process 9 (pipewire)" })
        #expect(fault.code == code)
        #expect(fault.cause.contains(cause) && fault.cause.contains("hw:CARD=Mic,DEV=0"))
        #expect(!fault.cure.isEmpty)
        if code == .notFound { #expect(fault.cure.contains("'Loopback' (device 1)")) }
    }
}
