internal import Devices
internal import Platform
internal import Protocol
internal import TestSupport
internal import Testing
internal import Timing

/// Public reports on cameras, each with its symptom replayed by a scripted driver; the numbers are those of our list of
/// reports.
@Suite(.timeLimit(.minutes(1))) struct CameraReportTests {
    private static let monotonic: UInt32 = 0x2000
    private static let copy: UInt32 = 0x4000
    private static let base: Int64 = 3_600_000_000_000
    private static let wall: Int64 = 1_800_000_000_000_000_000

    /// A camera of 30 frames/s whose frames arrive 20 ms after they were taken.
    private struct Replay {
        var intake: FrameIntake
        var samples: [Sample] = []
        var events: [DeviceEvent] = []
        /// Of the next frame, ns after the start.
        var clock: Int64 = 0
        var number: UInt32 = 0

        init(_ encoding: VideoFormat.Encoding = .mjpeg, rate: Double = 30) {
            var description = StreamDescription(
                id: StreamID(unchecked: "cam"), kind: .video, deviceKind: "v4l2", deviceIdentity: "x", label: "x",
                nominalRate: rate, video: VideoFormat(encoding: encoding, width: 64, height: 48),
                capabilities: StreamCapabilities(producesFile: true),
                timestampSource: "driver, CLOCK_MONOTONIC, end of frame")
            description.lossMethod = .sequence
            intake = FrameIntake(
                FrameIntake.Shape(description: description, wholeSize: nil, askedRate: rate))
        }

        enum Stamp { case ofDriver, raw(Int64), realtime }

        mutating func frame(
            _ sequence: UInt32, flags: UInt32 = CameraReportTests.monotonic, stamp: Stamp = .ofDriver,
            period: Int64 = 33_333_333, bytes: [UInt8]? = nil
        ) {
            clock += period
            number &+= 1
            let taken = CameraReportTests.base + clock
            let now = FrameStamper.Clocks(
                monotonic: Timestamp(nanoseconds: taken + 20_000_000),
                wall: CameraReportTests.wall + clock + 20_000_000, boottime: taken + 500_000_000_000)
            let raw: Int64 =
                switch stamp {
                case .ofDriver: taken
                case .raw(let value): value
                case .realtime: CameraReportTests.wall + clock
                }
            let payload = bytes ?? CameraReportTests.jpeg(number)
            let filled = V4L2Filled(
                index: 0, bytesUsed: payload.count, flags: flags, sequence: sequence, stamp: Timestamp(nanoseconds: raw)
            )
            for output in intake.take(filled, bytes: FrameBytes(payload), at: now) {
                switch output {
                case .sample(let sample): samples.append(sample)
                case .event(let event): events.append(event)
                }
            }
        }

        var epochs: [StreamEpoch] {
            events.compactMap { if case .epoch(let epoch) = $0 { epoch } else { nil } }
                .reduce(into: []) { all, epoch in
                    all.removeAll { $0.number == epoch.number }
                    all.append(epoch)
                }
        }
        var lost: Int64 { events.reduce(0) { if case .lost(let count, _) = $1 { $0 + count } else { $0 } } }
        var notes: [String] { events.compactMap { if case .note(let text) = $0 { text } else { nil } } }
        func flagged(_ flag: SampleFlags) -> Int { samples.count { $0.flags.contains(flag) } }
        var isInOrder: Bool { zip(samples, samples.dropFirst()).allSatisfy { $0.capture < $1.capture } }
    }

    /// SOI, a comment with a number (ITU-T T.81, B.2.4.5), EOI.
    static func jpeg(_ number: UInt32) -> [UInt8] {
        let digits = Array("\(number)".utf8)
        return [0xFF, 0xD8, 0xFF, 0xFE, 0, UInt8(digits.count + 2)] + digits + [0xFF, 0xD9]
    }

    // MARK: Stamps

    @Test func `C1 #1 frames without a named clock are stamped on arrival, and say so one by one`() {
        var replay = Replay()
        for index in 0..<90 {
            replay.frame(
                UInt32(index), flags: [Self.monotonic, 0, Self.copy][index % 3],
                stamp: index % 3 == 0 ? .ofDriver : .raw(7))
        }
        #expect(replay.samples.count == 90 && replay.lost == 0)
        #expect(replay.isInOrder)
        for (index, sample) in replay.samples.enumerated() {
            let byDriver = index % 3 == 0
            #expect(sample.flags.contains(.stampedOnArrival) != byDriver)
            // A frame's time, or the driver's millisecond, and what it was moved by.
            #expect(sample.uncertainty >= (byDriver ? .milliseconds(1) : .nanoseconds(33_333_333)))
            #expect(sample.device == Timestamp(nanoseconds: byDriver ? sample.arrival.nanoseconds - 20_000_000 : 7))
            #expect(
                (sample.capture - Timestamp(nanoseconds: sample.arrival.nanoseconds - 20_000_000)).magnitude
                    <= sample.uncertainty)
        }
        // All of one kind have its words.
        for (flags, words) in [(UInt32(0), "doesn't name its clock"), (Self.copy, "copies stamps")] {
            var other = Replay()
            for index in 0..<10 { other.frame(UInt32(index), flags: flags, stamp: .raw(7)) }
            #expect(other.epochs.count == 1)
            #expect(other.epochs.first?.description.timestampSource.contains(words) == true)
            #expect(other.epochs.first?.description.capabilities.supportsPreciseTimestamps == false)
        }
    }

    @Test func `C1 #7 stamps that go over to wall-clock time begin an epoch, and the order is kept`() {
        var replay = Replay()
        for index in 0..<100 { replay.frame(UInt32(index)) }
        for index in 100..<200 { replay.frame(UInt32(index), stamp: .realtime) }
        #expect(replay.samples.count == 200 && replay.lost == 0)
        #expect(replay.isInOrder)
        #expect(replay.epochs.map(\.number) == [0, 1])
        #expect(replay.epochs[1].start == replay.samples[100].capture)
        #expect(
            replay.epochs.map(\.description.timestampSource) == [
                "driver, CLOCK_MONOTONIC, end of frame",
                "arrival in the program, CLOCK_MONOTONIC: the driver says CLOCK_MONOTONIC and gives CLOCK_REALTIME",
            ])
        #expect(replay.flagged(.stampImplausible) == 100)
        // The raw stamps are as they came.
        #expect(replay.samples[150].device?.nanoseconds ?? 0 > Self.wall)
        // And back again.
        for index in 200..<300 { replay.frame(UInt32(index)) }
        #expect(replay.epochs.map(\.number) == [0, 1, 2])
        #expect(replay.isInOrder)
    }

    @Test func `C1 #8 fifty equal stamps are kept raw, flagged, and placed by arrival`() {
        var replay = Replay()
        for index in 0..<10 { replay.frame(UInt32(index)) }
        let stuck = Self.base + replay.clock
        for index in 10..<60 { replay.frame(UInt32(index), stamp: .raw(stuck)) }
        for index in 60..<70 { replay.frame(UInt32(index)) }
        #expect(replay.samples.count == 70 && replay.lost == 0)
        #expect(replay.flagged(.stampRepeats) == 50)
        #expect(replay.samples[10..<60].allSatisfy { $0.device?.nanoseconds == stuck })
        #expect(replay.isInOrder)
        #expect(replay.epochs.count == 1)
        #expect(replay.notes.count { $0.contains("don't always increase") } == 1)
    }

    @Test func `C1 #34 no frame is dropped for its time, whatever the stamps do`() {
        var replay = Replay()
        for index in 0..<300 {
            let wild: [Replay.Stamp] = [.ofDriver, .raw(0), .raw(.max), .raw(.min), .raw(Self.base), .realtime]
            replay.frame(UInt32(index), stamp: index % 7 == 3 ? wild[index / 7 % wild.count] : .ofDriver)
        }
        #expect(replay.samples.count == 300 && replay.lost == 0)
        #expect(replay.samples.map(\.sequence) == (0..<300).map { Int64($0) })
        #expect(replay.isInOrder)
    }

    @Test func `C1 #40 one wild stamp is flagged and is no new clock`() {
        var replay = Replay()
        for index in 0..<100 {
            // A 32-bit counter of microseconds that wraps, and a stamp 50 years ahead.
            replay.frame(UInt32(index), stamp: index == 50 ? .raw(Self.base + 1_577_880_000_000_000_000) : .ofDriver)
        }
        #expect(replay.epochs.count == 1)
        #expect(replay.flagged(.stampImplausible) == 1)
        #expect(replay.isInOrder && replay.samples.count == 100)
    }

    @Test func `C1 #50 a frame has the driver's time, however late it is taken`() {
        var replay = Replay()
        for index in 0..<30 { replay.frame(UInt32(index)) }
        #expect(replay.samples.allSatisfy { $0.capture.nanoseconds == $0.device?.nanoseconds })
        #expect(replay.samples.allSatisfy { $0.arrival - $0.capture == .milliseconds(20) })
    }

    // MARK: Losses

    @Test func `C1 #2 a counter that stands still is no loss, and intervals tell losses from then on`() {
        var replay = Replay()
        for _ in 0..<300 { replay.frame(0) }
        #expect(replay.lost == 0)
        #expect(replay.epochs.map(\.number) == [0])
        #expect(replay.epochs.first?.description.lossMethod == .interval)
        // Three frames are missing: four frame times lie between two frames.
        replay.frame(0, period: 4 * 33_333_333)
        for _ in 0..<30 { replay.frame(0) }
        #expect(replay.lost == 3)
    }

    @Test func `C1 #2 without a counter a camera that halves its rate loses nothing`() {
        var replay = Replay()
        for _ in 0..<150 { replay.frame(0) }
        for _ in 0..<150 { replay.frame(0, period: 66_666_666) }
        for _ in 0..<150 { replay.frame(0) }
        #expect(replay.lost == 0)
        #expect(replay.samples.count == 450)
    }

    @Test func `C1 #4 #5 a counter that begins anew is an epoch and no loss`() {
        var replay = Replay()
        for index in 0...100 { replay.frame(UInt32(index)) }
        for index in 0...100 { replay.frame(UInt32(index)) }
        #expect(replay.lost == 0)
        #expect(replay.epochs.map(\.number) == [0, 1])
        #expect(replay.epochs.last?.cause == "the driver's frame counter began anew")
        #expect(replay.epochs.last?.start == replay.samples[101].capture)
        #expect(replay.epochs.last?.description.lossMethod == .sequence)
    }

    @Test func `C1 #16 #37 #38 a rate that the dark halves is told with the measured one, and stamps are real`() {
        var replay = Replay()
        for index in 0..<150 { replay.frame(UInt32(index)) }
        for index in 150..<300 { replay.frame(UInt32(index), period: 66_666_666) }
        #expect(replay.lost == 0)
        let told = replay.notes.filter { $0.contains("where 30 were asked for") }
        #expect(told.count == 1)
        #expect(told.first?.hasPrefix("frames come at 15 frames/s") == true)
        #expect(told.first?.contains("exposure_dynamic_framerate") == true)
        let span = replay.samples.last.map { $0.capture - replay.samples[0].capture }
        // 149 short intervals and 150 long ones.
        #expect(span == .nanoseconds(149 * 33_333_333 + 150 * 66_666_666))
        for index in 300..<600 { replay.frame(UInt32(index)) }
        #expect(replay.notes.contains { $0.contains("again") })
    }

    // MARK: Bytes

    struct Torn: Sendable, CustomTestStringConvertible {
        let name: String
        let bytes: [UInt8]
        let damaged: Bool
        var testDescription: String { name }
    }

    @Test(arguments: [
        Torn(name: "truncated", bytes: Array(jpeg(123).dropLast(3)), damaged: true),
        Torn(name: "no end", bytes: Array(jpeg(123).dropLast(2)), damaged: true),
        Torn(name: "no beginning", bytes: Array(jpeg(123).dropFirst(2)), damaged: true),
        Torn(name: "noise", bytes: (0..<200).map { UInt8(truncatingIfNeeded: $0 &* 37) }, damaged: true),
        Torn(name: "one byte", bytes: [0xFF], damaged: true),
        Torn(name: "bytes behind the end", bytes: jpeg(5) + [1, 2, 3, 4], damaged: false),
        Torn(name: "padded with zeros", bytes: jpeg(5) + [UInt8](repeating: 0, count: 4096), damaged: false),
        // ITU-T T.81: a scan without a DHT before it uses tables that the decoder has.
        Torn(name: "no Huffman table", bytes: jpeg(6), damaged: false),
    ])
    func `C1 #29 #31 #32 a broken JPEG is kept as it came, flagged, and never stops the camera`(_ row: Torn) {
        var replay = Replay()
        for index in 0..<30 { replay.frame(UInt32(index), bytes: index == 10 ? row.bytes : nil) }
        #expect(replay.samples.count == 30 && replay.lost == 0)
        #expect(replay.flagged(.damaged) == (row.damaged ? 1 : 0))
        guard case .frame(let bytes, _) = replay.samples[10].payload else { return }
        #expect(bytes.array == row.bytes)
        #expect(replay.notes.count { $0.contains("damaged") } == (row.damaged ? 1 : 0))
    }

    @Test func `C1 #31 a compressed frame that the driver marks is kept, and an empty one is counted`() {
        var replay = Replay()
        // 0x40 is V4L2_BUF_FLAG_ERROR.
        for index in 0..<10 {
            replay.frame(UInt32(index), flags: index == 4 ? 0x2040 : 0x2000, bytes: index == 6 ? [] : nil)
        }
        #expect(replay.samples.map(\.sequence) == [0, 1, 2, 3, 4, 5, 7, 8, 9])
        #expect(replay.lost == 1)
        #expect(replay.samples[4].flags == .damaged)
    }

    @Test func `C4 #109 a picture that stands still is flagged and told`() {
        var replay = Replay()
        for index in 0..<100 { replay.frame(UInt32(index), bytes: (40..<80).contains(index) ? Self.jpeg(7) : nil) }
        // The first of the forty is new.
        #expect(replay.flagged(.repeated) == 39)
        #expect(replay.notes.count { $0.hasPrefix("the picture stands still") } == 1)
        #expect(replay.samples.count == 100)
    }

    // MARK: Codecs

    /// Parameter sets as cameras send them; only their headers count here.
    @Test(
        arguments: [
            ([0, 0, 0, 1, 0x67, 0x42, 0, 0, 1, 0x68, 0xCE, 0, 0, 1, 0x65, 0x88], .h264),
            ([0, 0, 0, 1, 0x09, 0x10, 0, 0, 0, 1, 0x27, 0x64, 0, 0, 1, 0x28, 0xEE], .h264),
            (
                [0, 0, 0, 1, 0x40, 0x01, 0x0C, 0, 0, 1, 0x42, 0x01, 1, 0, 0, 1, 0x44, 0x01, 0xC1, 0, 0, 1, 0x26, 0x01],
                .hevc
            ),
            ([0xFF, 0xD8, 0xFF, 0xE0], .mjpeg), ([0, 0, 1, 0x41, 0x9A], nil), ([], nil), ([0, 0, 1], nil),
        ] as [([UInt8], VideoFormat.Encoding?)])
    func `D-19 the encoding is told from the data`(bytes: [UInt8], encoding: VideoFormat.Encoding?) {
        #expect(CodecSniffer.encoding(of: FrameBytes(bytes)) == encoding)
    }

    @Test func `D-19 a stream with the wrong name is recorded as what it is`() {
        let hevc: [UInt8] = [
            0, 0, 0, 1, 0x40, 0x01, 0x0C, 0, 0, 1, 0x42, 0x01, 1, 0, 0, 1, 0x44, 0x01, 9, 0, 0, 1, 0x26, 0x01, 9,
        ]
        var replay = Replay(.h264)
        replay.frame(0, bytes: hevc)
        replay.frame(1, bytes: [0, 0, 0, 1, 0x02, 0x01, 9])
        #expect(replay.epochs.map(\.number) == [0])
        #expect(replay.epochs.first?.description.video?.encoding == .hevc)
        #expect(replay.notes.contains { $0.contains("says h264 and sends hevc") })
        let keys = replay.samples.map { if case .frame(_, let isKey) = $0.payload { isKey } else { false } }
        #expect(keys == [true, false])
    }

    @Test(arguments: [UInt64](1...8))
    func `Whatever bytes, counters and stamps come, nothing crashes and every sample is in order`(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var replay = Replay([.mjpeg, .h264, .hevc][Int(seed % 3)])
        // What start codes and JPEG markers are made of; nil: any byte.
        let telling: [UInt8?] = [0, 0, 0, 1, 0xFF, 0xD8, 0xD9, nil]
        for _ in 0..<2000 {
            let count = Int.random(in: 0...80, using: &generator)
            let bytes = (0..<count).map { _ in
                let byte = UInt8.random(in: 0...255, using: &generator)
                return telling[Int(byte) % telling.count] ?? byte
            }
            replay.frame(
                UInt32.random(in: 0...UInt32.max, using: &generator),
                flags: UInt32.random(in: 0...UInt32.max, using: &generator),
                stamp: .raw(Int64.random(in: Int64.min...Int64.max, using: &generator)),
                period: Int64.random(in: 0...50_000_000, using: &generator), bytes: bytes)
        }
        #expect(replay.isInOrder)
    }
}
